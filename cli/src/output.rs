//! Writes answers: tables as kubectl's, JSON, YAML.

use std::array::from_fn;
use std::io::{ErrorKind, Write};

use anyhow::Context;
use serde::Serialize;

use crate::commands::Format;

/// Writes an answer; `table` is for people.
pub(crate) fn write(
    answer: &impl Serialize,
    format: Format,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    print(&plain(&match format {
        Format::Table => table(),
        Format::Json => serde_json::to_string_pretty(answer)? + "\n",
        Format::Yaml => serde_saphyr::to_string(answer)?,
    }))
}

/// Writes to stdout. A reader that has seen enough, as `head`, is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Writes what fails to stderr. Where stderr takes nothing, the exit code alone says it.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "error: {}", plain(line));
}

/// Text from elsewhere, without what could steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    let steers = |letter: char| letter.is_control() && letter != '\n';
    text.replace(steers, "\u{fffd}")
}

/// Columns under capital headings, two blanks apart, as kubectl's.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) -> String {
    let mut lines = vec![headings.map(str::to_owned)];
    lines.extend(rows);
    let widths: [usize; N] = from_fn(|column| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default()
    });
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(widths);
        let padded: String = cells
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        text += padded.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_steers_a_terminal() {
        assert_eq!(plain("a\x1b[2J\n"), "a\u{fffd}[2J\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["controller", "0"], ["ä", "1"]];
        let shown = table(
            ["NAME", "STATE"],
            rows.map(|row| row.map(str::to_owned)).into(),
        );
        assert_eq!(shown, "NAME        STATE\ncontroller  0\nä           1\n");
    }
}
