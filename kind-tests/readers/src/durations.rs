//! `time.ParseDuration` and `Duration.String` (rule 21).

use anyhow::{Context, Result, bail, ensure};
use common::go_compat::duration::GoDuration;
use serde_json::{Value, json};

use crate::{Go, Input, Source, is_one_line};

/// What may be a duration.
#[derive(Debug)]
pub struct Text(String);

const LIMITS: &str = "(9223372036854775807|9223372036854775808|9223372036854775809|2562047|2562048|\
    153722867280|922337203685477580|0|00|18446744073709551616)";

/// Durations as people write them, with their numbers at every limit, and near misses.
pub fn text(source: &mut Source<'_>) -> String {
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

fn whole(source: &mut Source<'_>) -> String {
    let mut text = source.text("[-+]?");
    for _ in 0..=source.below(4) {
        text += &source.weighted(&[(4, "[0-9]{1,3}"), (1, "[0-9]{0,24}"), (1, LIMITS)]);
        text += &source.weighted(&[(6, ""), (3, "\\.[0-9]{0,4}"), (2, "\\.[0-9]{0,30}")]);
        text += &source.weighted(&[(20, "(s|ns|us|\u{b5}s|\u{3bc}s|ms|m|h)"), (1, "(|d|w|S|H|sec|n| s|µ)")]);
    }
    text
}

/// The nanoseconds of a duration that Go has written.
pub fn nanos(written: &Value) -> i64 {
    let read = written.as_str().and_then(|text| text.parse::<GoDuration>().ok());
    read.map_or(0, GoDuration::as_nanos)
}

impl Input for Text {
    fn make(source: &mut Source<'_>) -> Self {
        Self(source.raw_text().unwrap_or_else(|| text(source)))
    }

    /// What is read is what plain arithmetic says, and is read again as it is written.
    fn check(&self) -> Result<()> {
        let text = &self.0;
        let read = match text.parse::<GoDuration>() {
            Ok(read) => read,
            Err(refusal) => return is_one_line(&refusal.to_string()),
        };
        ensure!(read.to_string().parse() == Ok(read), "{text:?} is written as {read}");
        let (nanos, parts) = arithmetic(text).with_context(|| format!("{text:?} is taken"))?;
        // Go rounds each part's fraction in a float64.
        let off = (i128::from(read.as_nanos()) - nanos).abs();
        ensure!(off <= parts, "{text:?}: {} instead of {nanos}", read.as_nanos());
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        let ours = self.0.parse::<GoDuration>().map(|ours| json!({"nanos": ours.as_nanos(), "written": ours.to_string()}));
        let go = go.ask("duration", json!(self.0))?;
        ensure!(go.as_ref().ok() == ours.as_ref().ok(), "Go: {go:?}, we: {ours:?}");
        Ok(())
    }
}

/// The nanoseconds of a text that is a duration, cut off part by part, and the number of its parts.
fn arithmetic(text: &str) -> Result<(i128, i128)> {
    let mut rest = text.trim_start_matches(['+', '-']);
    let (mut total, mut parts) = (0, 0);
    while !rest.is_empty() && rest != "0" {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = rest.split_at(rest.find(|c: char| !is_number(c)).context("no unit")?);
        let (unit, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            unit => bail!("{unit:?} is no unit"),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse()? };
        // 20 digits are more than a nanosecond of an hour needs.
        let fraction: i128 = format!("{fraction:0<20.20}").parse()?;
        total += whole * unit + fraction * unit / 10_i128.pow(20);
        parts += 1;
        rest = after;
    }
    Ok((if text.starts_with('-') { -total } else { total }, parts))
}
