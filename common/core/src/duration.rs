//! Durations as Go writes them: `1h15m30.5s`, `250ms`, `-1.5h`, `0`.
//!
//! Every duration a user gives (config file, flags, a shoot's `nodeMonitorGracePeriod`) was written
//! for Go's `time.ParseDuration`; it must mean here what it means there (rule 21).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A signed span of time in whole nanoseconds, from -2^63 to 2^63 - 1, like Go's `time.Duration`
/// (about 292 years either way).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoDurationError {
    /// Nothing, or a sign alone.
    #[error("it is empty")]
    Empty,
    #[error("a number is missing")]
    NoNumber,
    #[error("a number has no unit (ns, us, ms, s, m, h)")]
    NoUnit,
    /// A unit Go does not know, shortened when long.
    #[error("unknown unit {0:?} (ns, us, ms, s, m, h)")]
    UnknownUnit(String),
    #[error("it does not fit in 64 bits of nanoseconds")]
    Overflow,
}

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The most letters of an unknown unit that are repeated in its error.
const SHOWN: usize = 20;

/// The largest magnitude: only a negative duration may reach it.
const LIMIT: u64 = 1 << 63;

impl GoDuration {
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The same span as a `std` duration; `None` when it is negative.
    pub fn to_std(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }

    /// The same span as Go would hold it; longer ones end at the largest.
    pub fn from_std(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for GoDuration {
    type Err = GoDurationError;

    /// Reads what Go's `time.ParseDuration` reads, to the nanosecond.
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

/// Takes one number with its unit off the text: its nanoseconds.
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

/// The nanoseconds of `0.<fraction>` units. Go does this in float64 and cuts off what is left of a
/// nanosecond; digits beyond what 63 bits hold are dropped. Doing the same keeps the last
/// nanosecond the same.
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
        // U+00B5 is the micro sign, U+03BC the Greek letter mu: Go takes both.
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
    /// Writes what Go's `Duration.String` writes: `1h15m30.5s`, `250ms`, `0s`.
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
