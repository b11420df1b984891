//! `time.ParseDuration` (rule 21).

use anyhow::{Result, bail, ensure};
use go_compat::duration::GoDuration;
use serde_json::{Value, json};

use crate::{Choices, GoProgram, ReaderInput, is_one_line};

/// What may be a duration.
#[derive(Debug)]
pub struct DurationText(String);

/// As people write them, at times with a number of any length or at a limit, or with no unit.
const WHOLE: &str = "[-+]?(([0-9]{1,3}|[0-9]{1,3}|[0-9]{1,3}|[0-9]{1,3}|[0-9]{0,24}|922337203685477580[789]|2562047|2562048|\
    153722867280|922337203685477580|0|00|18446744073709551616)(|\\.[0-9]{0,3})\
    ((s|ns|us|\u{b5}s|\u{3bc}s|ms|m|h)|(s|ns|ms|m|h)|(s|us|ms|m|h)|(s|ms|m|h)|(|d|w|S|H|sec|n| s|µ))){1,4}";

/// Durations, with their numbers at every limit, and near misses.
pub fn text(source: &mut Choices<'_>) -> String {
    let mut text = source.text(WHOLE);
    match source.below(10) {
        0..6 => {}
        6..8 => source.spill(&mut text, "[-+.0-9smhnuµ\u{3bc} _e]"),
        _ => text = source.text("([-+.0-9smhnu]{0,8}|\\PC{0,6})"),
    }
    text
}

/// The nanoseconds of a duration that Go has written.
pub fn nanos(written: &Value) -> i64 {
    let text = written.as_str().unwrap_or_default();
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let size = text.trim_start_matches('-').parse::<GoDuration>();
    size.map_or(sign.min(0), |read| sign * read.0.as_nanos() as i64)
}

impl ReaderInput for DurationText {
    /// Also with fractions of any length, which Go rounds.
    fn make(source: &mut Choices<'_>) -> Self {
        let text = source.raw_text().unwrap_or_else(|| text(source));
        Self(match source.below(4) {
            3 => text.replace('.', &source.text("\\.[0-9]{0,27}")),
            _ => text,
        })
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
        let ours = self.0.parse::<GoDuration>();
        match (go.ask("duration", json!(self.0))?, ours) {
            (Err(_), Err(_)) => Ok(()),
            // No duration has a use for a sign.
            (Ok(_), Err(_)) if self.0.starts_with('-') => Ok(()),
            (Ok(go), Ok(ours)) => self.agree(&go, ours),
            // As much as fits, but for what Go rounds away.
            (Err(_), Ok(ours)) if i64::MAX as u128 - ours.0.as_nanos() <= PARTS => Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        }
    }
}

/// The most parts of a duration: Go's binary fractions may cost each a nanosecond.
const PARTS: u128 = 5;

impl DurationText {
    fn agree(&self, go: &Value, ours: GoDuration) -> Result<()> {
        let is_long = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count() > 3;
        let may_differ = self.0.split('.').skip(1).any(is_long);
        let nanos = ours.0.as_nanos();
        let apart = u128::from(go["nanos"].as_u64().unwrap_or_default()).abs_diff(nanos);
        ensure!(
            apart == 0 || may_differ && apart <= PARTS,
            "Go reads {go}, we {nanos}"
        );
        Ok(())
    }
}
