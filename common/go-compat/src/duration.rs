//! Go durations: `1h15m30.5s`, `250ms`, `0`.
//!
//! Every user-supplied duration (config file, flags, a shoot's `nodeMonitorGracePeriod`) was
//! written for Go's `time.ParseDuration` and must have the same meaning here. Negative ones are
//! refused, since nothing has a use for them. As `#[serde(with = "...")]` this module reads and
//! writes a [`Duration`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de};

/// A duration in Go's spelling: nanoseconds, of which there are no more than fit in 63 bits (292
/// years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct GoDuration(#[serde(deserialize_with = "deserialize")] pub Duration);

/// Describes the expected text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a duration like \"30s\" or \"1h15m\", not negative (units: ns, us, ms, s, m, h)")]
pub struct GoDurationError;

const SECOND: u128 = 1_000_000_000;

/// Number of digits of a fraction that count. Further ones are below a nanosecond in any unit.
const FRACTION_DIGITS: usize = 18;

impl FromStr for GoDuration {
    type Err = GoDurationError;

    /// Parses like Go's `time.ParseDuration`; what is below a nanosecond is cut off.
    fn from_str(text: &str) -> Result<Self, GoDurationError> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let nanos = if text == "0" { Some(0) } else { nanos(text) };
        let duration = nanos.map(|nanos| Self(Duration::from_nanos(nanos.unsigned_abs())));
        duration.ok_or(GoDurationError)
    }
}

/// Sums numbers, each with its unit. Returns `None` for any other text.
fn nanos(mut text: &str) -> Option<i64> {
    let is_numeric = |c: char| c.is_ascii_digit() || c == '.';
    let mut sum: i64 = 0;
    loop {
        let (number, rest) = text.split_at(text.find(|c| !is_numeric(c))?);
        let (unit, rest) = rest.split_at(rest.find(is_numeric).unwrap_or(rest.len()));
        let unit = match unit {
            "ns" => 1,
            // U+00B5 is the micro sign, U+03BC the Greek letter mu. Go accepts both.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return None;
        }
        let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS)];
        let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
        let nanos = digits.checked_mul(unit)? / 10_u128.pow(fraction.len() as u32);
        sum = sum.checked_add(nanos.try_into().ok()?)?;
        if rest.is_empty() {
            return Some(sum);
        }
        text = rest;
    }
}

impl fmt::Display for GoDuration {
    /// Formats in one unit, as Rust does and Go reads: `4530.5s`, `250ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Duration::ZERO => f.write_str("0s"),
            duration => write!(f, "{duration:?}"),
        }
    }
}

pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&GoDuration(*duration))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    // One error for all that is no duration, also for what is no text.
    let text = String::deserialize(deserializer).unwrap_or_default();
    let GoDuration(duration) = text.parse().map_err(de::Error::custom)?;
    Ok(duration)
}

/// A duration of so many seconds where it is missing or null:
/// `#[serde(default = "Seconds::<10>::value", with = "Seconds::<10>")]`.
pub struct Seconds<const DEFAULT: u64>;

impl<const DEFAULT: u64> Seconds<DEFAULT> {
    pub const fn value() -> Duration {
        Duration::from_secs(DEFAULT)
    }

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(duration, serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let read = Option::deserialize(deserializer)?;
        Ok(read.map_or(Self::value(), |GoDuration(duration)| duration))
    }
}

#[cfg(test)]
mod tests;
