//! Writes answers: tables as kubectl's, JSON, YAML; progress on stderr of a terminal.

use std::error::Error;
use std::io::{IsTerminal, Write};

use prober::{Fact, Tone};
use serde::Serialize;

use crate::commands::Format;

/// Writes an answer; `table` is for people.
pub(crate) fn write(
    answer: &impl Serialize,
    format: Format,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    print(&match format {
        Format::Table => table(),
        Format::Json => serde_json::to_string_pretty(answer)? + "\n",
        Format::Yaml => serde_saphyr::to_string(answer)?,
    })
}

/// Writes to stdout. A reader that has seen enough, as `head`, is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// An error with its causes, for people.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    plain(&common::logging::with_causes(error))
}

/// Text from elsewhere, without what could steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    let steers = |letter: char| letter.is_control() && letter != '\n';
    text.replace(steers, "\u{fffd}")
}

/// Plain text in the colour of its tone; [`print`] removes colours where nothing shows them.
pub(crate) fn paint(tone: Tone, text: &str) -> String {
    let text = plain(text);
    let colour = match tone {
        _ if text.is_empty() => return text,
        Tone::Soft => return text,
        Tone::Bad => 31,
        Tone::Good => 32,
        Tone::Warn => 33,
    };
    format!("\x1b[{colour}m{text}\x1b[0m")
}

/// One line for each fact.
pub(crate) fn lines(facts: &[Fact]) -> String {
    let width = facts.iter().map(|fact| fact.name.len()).max();
    let width = 1 + width.unwrap_or_default();
    let line = |fact: &Fact| {
        let name = format!("{}:", fact.name);
        format!("{name:<width$} {}\n", paint(fact.tone, &fact.text))
    };
    facts.iter().map(line).collect()
}

/// A count in a table; `-` if it is not known.
pub(crate) fn count(count: Option<i32>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// Columns under capital headings, two blanks apart, as kubectl's. Colours do not count as width.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) -> String {
    let width = |text: &str| {
        anstream::adapter::strip_str(text)
            .to_string()
            .chars()
            .count()
    };
    let mut lines = vec![headings.map(str::to_owned)];
    lines.extend(rows);
    let mut widths = [0; N];
    for line in &lines {
        for (widest, cell) in widths.iter_mut().zip(line) {
            *widest = (*widest).max(width(cell));
        }
    }
    let mut text = String::new();
    for line in lines {
        let padded = line.iter().zip(widths).map(|(cell, widest)| {
            let padding = " ".repeat(widest - width(cell));
            format!("{cell}{padding}")
        });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A line on stderr that says what is waited for, until dropped; nothing where no terminal is.
pub(crate) struct Progress;

impl Progress {
    /// Clears the line of a terminal.
    const CLEAR: &str = "\r\x1b[2K";

    pub(crate) fn start(text: &str) -> Self {
        Self::show(text);
        Self
    }

    fn show(text: &str) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            let _ = write!(stderr, "{}{text}", Self::CLEAR);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        Self::show("");
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn each_cause_of_an_error_is_written_once_and_steers_no_terminal() {
        let with_causes_of = |error: anyhow::Error| with_causes(error.as_ref());
        let error = anyhow::anyhow!("refused\x1b[2J")
            .context("no connection")
            .context("no connection: refused");
        assert_eq!(
            with_causes_of(error),
            "no connection: refused: refused\u{fffd}[2J"
        );
        let twice = Err::<(), _>(anyhow::anyhow!("refused")).context("no connection: refused");
        assert_eq!(
            with_causes_of(twice.expect_err("an error")),
            "no connection: refused"
        );
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_whatever_its_colour() {
        let shown = table(
            ["NAME", "STATE"],
            vec![
                [paint(Tone::Bad, "kube-controller-manager"), "0".into()],
                ["a".into(), paint(Tone::Good, "1")],
            ],
        );
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(
            plain,
            "NAME                     STATE\nkube-controller-manager  0\na                        1\n"
        );
    }
}
