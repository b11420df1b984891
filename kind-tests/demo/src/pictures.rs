//! The demo's last screen as the README and the book show it: what happened, claim by claim. `make
//! pictures` draws it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

/// How the classes look, by day and at night.
const STYLE: &str = include_str!("pictures.css");
/// The line that the summary begins with.
const BEGIN: &str = "What happened";
/// What a letter of a 13 px monospaced font takes at most, and a line, in pixels.
const LETTER: f64 = 7.83;
const LINE: f64 = 18.0;
/// Between the text and the picture's edge, in pixels.
const MARGIN: f64 = 16.0;

/// Draws what an earlier run has printed, which is read from our standard input, into a folder.
pub fn draw(folder: &Path) -> Result<()> {
    let printed = std::io::read_to_string(std::io::stdin())?;
    Ok(std::fs::write(folder.join("demo.svg"), picture(&printed)?)?)
}

fn picture(printed: &str) -> Result<String> {
    let lines: Vec<&str> = printed.lines().collect();
    let begin = lines
        .iter()
        .rposition(|line| *line == BEGIN)
        .context("the demo has printed no summary")?;
    let screen = &lines[begin..];
    let widest = screen
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or_default();
    let (width, height) = (
        (MARGIN * 2.0 + LETTER * widest as f64).ceil(),
        MARGIN * 2.0 + LINE * screen.len() as f64,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>The last screen of the demo</title>\n<style>\n{STYLE}</style>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
        width - 1.0,
        height - 1.0
    );
    for (number, line) in screen.iter().enumerate() {
        let y = MARGIN + LINE * (number as f64 + 0.75);
        let verdict = [("good", "  ok"), ("bad", "  FAILED")]
            .into_iter()
            .find(|(_, word)| line.starts_with(word));
        // What is not indented is a heading or the outcome.
        let (class, word) = verdict.unwrap_or(("", if line.starts_with(' ') { "" } else { line }));
        let (word, rest) = (escaped(word), escaped(&line[word.len()..]));
        writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\"><tspan class=\"strong {class}\">{word}</tspan>{rest}</text>"
        )?;
    }
    Ok(svg + "</svg>\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
