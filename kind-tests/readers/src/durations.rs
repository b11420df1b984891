//! `time.ParseDuration` and `Duration.String` (rule 21).

use anyhow::{Context, Result, bail, ensure};
use common::go_compat::duration::GoDuration;
use serde_json::json;

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
        8 => source.text("[-+.0-9smhnu]{0,8}"),
        _ => source.text("\\PC{0,6}"),
    }
}

fn whole(source: &mut Source<'_>) -> String {
    let sign = source.text("[-+]?");
    let parts = 1 + source.below(4);
    (0..parts).fold(sign, |text, _| text + &part(source))
}

fn part(source: &mut Source<'_>) -> String {
    let digits = match source.below(12) {
        0..8 => source.text("[0-9]{1,3}"),
        8..10 => source.text("[0-9]{0,24}"),
        _ => source.text(LIMITS),
    };
    let fraction = match source.below(11) {
        0..6 => String::new(),
        6..9 => source.text("\\.[0-9]{0,4}"),
        _ => source.text("\\.[0-9]{0,30}"),
    };
    let unit = match source.below(21) {
        0..20 => source.text("(s|ns|us|\u{b5}s|\u{3bc}s|ms|m|h)"),
        _ => source.text("(|d|w|S|H|sec|n| s|µ)"),
    };
    digits + &fraction + &unit
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
        match (go.ask(&json!({"duration": self.0}))?, self.0.parse::<GoDuration>()) {
            (Ok(go), Ok(ours)) => {
                ensure!(go["nanos"] == json!(ours.as_nanos()), "Go reads {}, we {}", go["nanos"], ours.as_nanos());
                ensure!(go["written"] == json!(ours.to_string()), "Go writes {}, we {ours}", go["written"]);
                Ok(())
            }
            (Err(_), Err(_)) => Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        }
    }
}

/// The nanoseconds of a text that is a duration, cut off part by part, and the number of its parts.
fn arithmetic(text: &str) -> Result<(i128, i128)> {
    let mut rest = text.trim_start_matches(['+', '-']);
    let (mut total, mut parts) = (0, 0);
    while !rest.is_empty() && rest != "0" {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').context("no unit")?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
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
        let fraction: String = fraction.chars().chain("0".repeat(20).chars()).take(20).collect();
        total += whole * unit + fraction.parse::<i128>()? * unit / 10_i128.pow(20);
        parts += 1;
        rest = after;
    }
    Ok((if text.starts_with('-') { -total } else { total }, parts))
}
