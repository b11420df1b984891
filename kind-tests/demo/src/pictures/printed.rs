//! The last screen of the demo: what happened, claim by claim, from the text that it has printed.

use anyhow::{Context, Result};

use super::svg::Svg;

/// The picture's name.
pub const FILE: &str = "demo.svg";
/// The line that the summary begins with.
const BEGIN: &str = "What happened";
/// What a letter of a 13 px monospaced font takes at most, and a line, in pixels.
const LETTER: f64 = 7.83;
const LINE: f64 = 18.0;
/// Between the text and the picture's edge, in pixels.
const MARGIN: f64 = 16.0;

pub fn draw(text: &str) -> Result<String> {
    let text = plain(text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let begin = lines.iter().rposition(|line| *line == BEGIN).context("the demo has printed no summary")?;
    let screen = &lines[begin..];
    let mut svg = Svg::default();
    for (number, line) in screen.iter().enumerate() {
        let y = MARGIN + LINE * (number as f64 + 0.75);
        let (class, marked) = mark(line);
        let (shown, rest) = line.split_at(marked);
        if !shown.trim().is_empty() {
            svg.text(&format!("mono strong {class}"), MARGIN, y, shown);
        }
        if !rest.trim().is_empty() {
            // Spaces at the beginning of a line are worth a place, not a letter each.
            let text = rest.trim_start();
            let column = line.chars().count() - text.chars().count();
            svg.text("mono", MARGIN + LETTER * column as f64, y, text);
        }
    }
    let widest = screen.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let (width, height) = (MARGIN * 2.0 + LETTER * widest as f64, MARGIN * 2.0 + LINE * screen.len() as f64);
    Ok(svg.finish("The last screen of the demo", width.ceil(), height))
}

/// How the beginning of a line is shown, and how many bytes of it.
fn mark(line: &str) -> (&'static str, usize) {
    let words = [("  ok", "good"), ("  FAILED", "bad")];
    let found = words.into_iter().find(|(word, _)| line.starts_with(word)).map(|(word, class)| (class, word.len()));
    // What is not indented is a heading or the outcome.
    found.unwrap_or(("", if line.starts_with(' ') { 0 } else { line.len() }))
}

/// The text without the sequences that colour it and move the cursor.
fn plain(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default();
    // A sequence ends with the first byte from @ to ~.
    let rest = pieces.map(|piece| piece.find(|end| ('@'..='~').contains(&end)).map_or("", |end| &piece[end + 1..]));
    std::iter::once(first).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "   0.2s  What happened before is left out.\nWhat happened\n  ok     0 < 1,\n         as \"it\" should be.\n  FAILED \x1b[31mNo & no.\x1b[0m\n\nThe end.\n";

    #[test]
    fn the_summary_is_drawn_and_what_was_before_is_not() {
        let picture = draw(PRINTED).expect("a summary");
        assert!(!picture.contains("left out"), "{picture}");
        for expected in [
            "<text class=\"mono strong \" x=\"16\" y=\"29.5\" xml:space=\"preserve\">What happened</text>",
            "<text class=\"mono strong good\" x=\"16\" y=\"47.5\" xml:space=\"preserve\">  ok</text>",
            ">0 &lt; 1,</text>",
            ">as \"it\" should be.</text>",
            "<text class=\"mono strong bad\" x=\"16\" y=\"83.5\" xml:space=\"preserve\">  FAILED</text>",
            ">No &amp; no.</text>",
            ">The end.</text>",
        ] {
            assert!(picture.contains(expected), "no {expected} in {picture}");
        }
    }

    #[test]
    fn without_a_summary_there_is_no_picture() {
        assert!(draw("Interrupted; everything is ended.\n").is_err());
    }

    #[test]
    fn sequences_for_terminals_are_left_out() {
        assert_eq!(plain("\x1b[?25l\x1b[1;31mred\x1b[0m, plain\x1b["), "red, plain");
    }
}
