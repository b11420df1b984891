//! Go durations: `1h15m30.5s`, `250ms`, `-1.5h`, `0`.
//!
//! Every user-supplied duration (config file, flags, a shoot's `nodeMonitorGracePeriod`) was
//! written for Go's `time.ParseDuration` and must have the same meaning here.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A signed number of nanoseconds in 64 bits, like Go's `time.Duration` (about 292 years either
/// way).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoDurationError {
    /// Empty, or only a sign.
    #[error("it is empty")]
    Empty,
    #[error("a number is missing")]
    NoNumber,
    #[error("a number has no unit (ns, us, ms, s, m, h)")]
    NoUnit,
    /// A unit that Go does not know, shortened if long.
    #[error("unknown unit {0:?} (ns, us, ms, s, m, h)")]
    UnknownUnit(String),
    #[error("it does not fit in 64 bits of nanoseconds")]
    Overflow,
}

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Maximum length of an unknown unit in its error.
const SHOWN: usize = 20;

/// Largest magnitude, which only a negative duration can reach.
const LIMIT: u64 = 1 << 63;

impl GoDuration {
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Converts to a `std` duration; `None` if negative.
    pub fn to_std(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }

    /// Converts from a `std` duration, saturating at the maximum.
    pub fn from_std(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for GoDuration {
    type Err = GoDurationError;

    /// Parses like Go's `time.ParseDuration`, exact to the nanosecond.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(GoDurationError::Empty);
        }
        let mut total = 0;
        while !rest.is_empty() {
            total += take_part(&mut rest)?;
            if total > i128::from(LIMIT) {
                return Err(GoDurationError::Overflow);
            }
        }
        let signed = if text.starts_with('-') { -total } else { total };
        let nanos = i64::try_from(signed).map_err(|_| GoDurationError::Overflow)?;
        Ok(Self(nanos))
    }
}

/// Parses one number with its unit off the front of the text. Returns nanoseconds.
fn take_part(text: &mut &str) -> Result<i128, GoDurationError> {
    let is_digit = |c: char| c.is_ascii_digit();
    let whole = take_while(text, is_digit);
    let mut fraction = "";
    if let Some(after_point) = text.strip_prefix('.') {
        *text = after_point;
        fraction = take_while(text, is_digit);
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(GoDurationError::NoNumber);
    }
    let unit = unit_nanos(take_while(text, |c| c != '.' && !is_digit(c)))?;
    let whole: u64 = format!("0{whole}")
        .parse()
        .map_err(|_| GoDurationError::Overflow)?;
    Ok(i128::from(whole) * i128::from(unit) + i128::from(fraction_nanos(fraction, unit)))
}

fn take_while<'a>(text: &mut &'a str, belongs: impl Fn(char) -> bool) -> &'a str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    let (taken, rest) = text.split_at(end);
    *text = rest;
    taken
}

/// Nanoseconds of `0.<fraction>` units. Go computes this in float64, truncates to whole
/// nanoseconds, and drops digits beyond 63 bits. Doing the same gives the same last nanosecond.
fn fraction_nanos(fraction: &str, unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale: f64 = 1.0;
    for digit in fraction.bytes().map(|byte| u64::from(byte - b'0')) {
        if value > (LIMIT - 1) / 10 || value * 10 + digit > LIMIT {
            break;
        }
        value = value * 10 + digit;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn unit_nanos(name: &str) -> Result<u64, GoDurationError> {
    match name {
        "" => Err(GoDurationError::NoUnit),
        "ns" => Ok(1),
        // U+00B5 is the micro sign, U+03BC the Greek letter mu. Go accepts both.
        "us" | "\u{b5}s" | "\u{3bc}s" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(SECOND),
        "m" => Ok(MINUTE),
        "h" => Ok(HOUR),
        other => {
            let shown = other.chars().take(SHOWN).collect();
            Err(GoDurationError::UnknownUnit(shown))
        }
    }
}

impl fmt::Display for GoDuration {
    /// Formats like Go's `Duration.String`: `1h15m30.5s`, `250ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let nanos = self.0.unsigned_abs();
        match nanos {
            0 => return f.write_str("0s"),
            1..MINUTE => return write!(f, "{:?}", Duration::from_nanos(nanos)),
            MINUTE..HOUR => write!(f, "{}m", nanos / MINUTE)?,
            _ => write!(f, "{}h{}m", nanos / HOUR, nanos % HOUR / MINUTE)?,
        }
        write!(f, "{}", nanos % MINUTE / SECOND)?;
        if !nanos.is_multiple_of(SECOND) {
            let fraction = format!("{:09}", nanos % SECOND);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str("s")
    }
}

#[cfg(test)]
mod tests;
