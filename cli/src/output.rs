//! How answers are written: tables as kubectl's, JSON, YAML; progress on stderr of a terminal.

use std::error::Error;
use std::io::{IsTerminal, Write};

use serde::Serialize;

use crate::commands::Format;

/// Writes an answer; `table` says it for people.
pub(crate) fn write(
    answer: &impl Serialize,
    format: Format,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => table(),
        Format::Json => serde_json::to_string_pretty(answer)? + "\n",
        Format::Yaml => serde_saphyr::to_string(answer)?,
    };
    print(text.as_bytes())
}

/// Writes to stdout. A reader that has seen enough, as `head`, is no failure.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
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
    text.chars()
        .map(|letter| {
            if letter.is_control() && letter != '\n' {
                '\u{fffd}'
            } else {
                letter
            }
        })
        .collect()
}

/// A fact under its name, in a line.
pub(crate) fn line(name: &str, value: &str) -> String {
    format!("{:<11}{value}\n", format!("{name}:"))
}

/// Columns under capital headings, two blanks apart, as kubectl's. Colours do not count as width.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| {
        anstream::adapter::strip_str(text)
            .to_string()
            .chars()
            .count()
    };
    let mut widths: Vec<usize> = headings.iter().map(|heading| width(heading)).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (cell, widest) in cells.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(widest - width(cell) + 2));
        }
        line.trim_end().to_owned() + "\n"
    };
    let headings: Vec<String> = headings
        .iter()
        .map(|heading| (*heading).to_owned())
        .collect();
    std::iter::once(&headings)
        .chain(rows)
        .map(|row| line(row))
        .collect()
}

/// Text in a colour that says how it is; [`write`] removes colours where nothing shows them.
pub(crate) fn good(text: &str) -> String {
    format!("\x1b[32m{text}\x1b[0m")
}

pub(crate) fn bad(text: &str) -> String {
    format!("\x1b[31m{text}\x1b[0m")
}

pub(crate) fn warn(text: &str) -> String {
    format!("\x1b[33m{text}\x1b[0m")
}

/// Empties the line of a terminal.
const CLEAR: &str = "\r\x1b[2K";

/// What is being waited for, on stderr: on a terminal one line, which is gone when it is over.
#[derive(Default)]
pub(crate) struct Progress {
    /// What was said last.
    said: String,
}

impl Progress {
    /// Says it from the beginning, on a terminal.
    pub(crate) fn saying(text: &str) -> Self {
        let mut progress = Self::default();
        if std::io::stderr().is_terminal() {
            progress.say(text.to_owned());
        }
        progress
    }

    /// Says what a long wait is for, and for how many seconds so far; where no terminal is in a
    /// line of its own, without the seconds.
    pub(crate) fn tell(&mut self, what: &str, seconds: u64) {
        let counts = std::io::stderr().is_terminal();
        self.say(if counts {
            format!("{what}: {seconds} s")
        } else {
            what.to_owned()
        });
    }

    fn say(&mut self, text: String) {
        if self.said != text {
            let mut stderr = std::io::stderr();
            let _ = if stderr.is_terminal() {
                write!(stderr, "{CLEAR}{text}")
            } else {
                writeln!(stderr, "{text}")
            };
            self.said = text;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.said.is_empty() && std::io::stderr().is_terminal() {
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
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
            &["NAME", "STATE"],
            &[
                vec![bad("kube-controller-manager"), "0".into()],
                vec!["a".into(), good("1")],
            ],
        );
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(
            plain,
            "NAME                     STATE\nkube-controller-manager  0\na                        1\n"
        );
    }
}
