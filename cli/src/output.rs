//! Writes answers: tables as kubectl's, JSON, YAML.

use std::error::Error;
use std::io::Write;

use anyhow::Context;
use serde::Serialize;

use crate::commands::Format;

/// Writes an answer; `table` is for people.
pub(crate) fn write(
    answer: &impl Serialize,
    format: Format,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    print(&render(answer, format, table)?)
}

fn render(
    answer: &impl Serialize,
    format: Format,
    table: impl FnOnce() -> String,
) -> anyhow::Result<String> {
    Ok(match format {
        Format::Table => plain(&table()),
        Format::Json => serde_json::to_string_pretty(answer)? + "\n",
        Format::Yaml => serde_saphyr::to_string(answer)?,
    })
}

/// Writes to stdout. A reader that has seen enough, as `head`, is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout")
        }
        _ => Ok(()),
    }
}

/// Writes why a command fails to stderr.
pub(crate) fn print_error(error: &anyhow::Error) {
    complain(&with_causes(error.as_ref()));
}

/// Writes what fails to stderr. Where stderr takes nothing, the exit code alone says it.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "error: {}", plain(line));
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

/// Columns under capital headings, two blanks apart, as kubectl's.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) -> String {
    let width = |text: &str| text.chars().count();
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

#[cfg(test)]
mod tests {
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
    fn no_answer_steers_a_terminal() {
        for (format, shown) in [
            (Format::Table, "a\u{fffd}[2J\n"),
            (Format::Json, "\"a\\u001b[2J\\n\"\n"),
            (Format::Yaml, "\"a\\e[2J\\n\"\n"),
        ] {
            let rendered = render(&"a\x1b[2J\n", format, || "a\x1b[2J\n".into());
            assert_eq!(rendered.expect("a text"), shown);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let shown = table(
            ["NAME", "STATE"],
            vec![
                ["kube-controller-manager".into(), "0".into()],
                ["ä".into(), "1".into()],
            ],
        );
        assert_eq!(
            shown,
            "NAME                     STATE\nkube-controller-manager  0\nä                        1\n"
        );
    }
}
