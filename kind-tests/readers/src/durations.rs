//! `time.ParseDuration` and `Duration.String` (rule 21).

use anyhow::{Result, ensure};
use go_compat::duration::GoDuration;
use serde_json::{Value, json};

use crate::{Choices, GoProgram, ReaderInput, is_one_line};

/// What may be a duration.
#[derive(Debug)]
pub struct DurationText(String);

const LIMITS: &str = "(9223372036854775807|9223372036854775808|9223372036854775809|2562047|2562048|\
    153722867280|922337203685477580|0|00|18446744073709551616)";

/// Durations as people write them, with their numbers at every limit, and near misses.
pub fn text(source: &mut Choices<'_>) -> String {
    match source.below(10) {
        0..6 => whole(source),
        6..8 => {
            let mut text = whole(source);
            source.spill(&mut text, "[-+.0-9smhnuµ\u{3bc} _e]");
            text
        }
        _ => source.text("([-+.0-9smhnu]{0,8}|\\PC{0,6})"),
    }
}

fn whole(source: &mut Choices<'_>) -> String {
    let mut text = source.text("[-+]?");
    for _ in 0..=source.below(4) {
        text += &source.weighted(&[(4, "[0-9]{1,3}"), (1, "[0-9]{0,24}"), (1, LIMITS)]);
        text += &source.weighted(&[(6, ""), (3, "\\.[0-9]{0,4}"), (2, "\\.[0-9]{0,30}")]);
        text += &source.weighted(&[
            (20, "(s|ns|us|\u{b5}s|\u{3bc}s|ms|m|h)"),
            (1, "(|d|w|S|H|sec|n| s|µ)"),
        ]);
    }
    text
}

/// The nanoseconds of a duration that Go has written.
pub fn nanos(written: &Value) -> i64 {
    let read = written
        .as_str()
        .and_then(|text| text.parse::<GoDuration>().ok());
    read.map_or(0, GoDuration::as_nanos)
}

impl ReaderInput for DurationText {
    fn make(source: &mut Choices<'_>) -> Self {
        Self(source.raw_text().unwrap_or_else(|| text(source)))
    }

    /// What is read is read again as it is written.
    fn check(&self) -> Result<()> {
        match self.0.parse::<GoDuration>() {
            Ok(read) => ensure!(
                read.to_string().parse() == Ok(read),
                "{:?} is written as {read}",
                self.0
            ),
            Err(refusal) => is_one_line(&refusal.to_string())?,
        }
        Ok(())
    }

    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        let ours = self
            .0
            .parse::<GoDuration>()
            .map(|ours| json!({"nanos": ours.as_nanos(), "written": ours.to_string()}));
        let go = go.ask("duration", json!(self.0))?;
        ensure!(
            go.as_ref().ok() == ours.as_ref().ok(),
            "Go: {go:?}, we: {ours:?}"
        );
        Ok(())
    }
}
