//! Syntax of Go's `flag` package: flags and their values. The error of each parser describes the
//! expected value.

use std::str::FromStr;
use std::time::Duration;

use strum::VariantNames;

use crate::duration::GoDuration;

/// Splits a flag with one or two dashes into its name and the value after `=`, if any. The name may
/// be empty or begin with a dash, as in `--=1` and `---flag`. Returns `None` for a word that ends
/// the flags: `--`, or one that is not a flag.
pub fn split(word: &str) -> Option<(&str, Option<&str>)> {
    let flag = word
        .strip_prefix('-')
        .filter(|flag| !matches!(*flag, "" | "-"))?;
    let flag = flag.strip_prefix('-').unwrap_or(flag);
    Some(match flag.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (flag, None),
    })
}

/// Parses the values that Go's `strconv.ParseBool` accepts.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".into()),
    }
}

/// Parses an integer in Go syntax: `10`, `-0x0a`, `0o12`, `012`, `0b1010`, `1_000`.
pub fn integer(text: &str) -> Result<i64, String> {
    let expected = || "expected a whole number that fits in 64 bits".to_owned();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { "-" } else { "" };
    let prefix = unsigned.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (radix, digits) = match prefix.as_str() {
        "0x" => (16, &unsigned[2..]),
        "0o" => (8, &unsigned[2..]),
        "0b" => (2, &unsigned[2..]),
        _ if unsigned.len() > 1 && unsigned.starts_with('0') => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // Go allows one underscore between two digits, and between a prefix (including the octal 0) and
    // the first digit.
    let digits = if radix == 10 {
        digits
    } else {
        digits.strip_prefix('_').unwrap_or(digits)
    };
    let well_formed = digits
        .split('_')
        .all(|group| !group.is_empty() && group.chars().all(|c| c.is_digit(radix)));
    if !well_formed {
        return Err(expected());
    }
    i64::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), radix)
        .map_err(|_| expected())
}

/// Parses a decimal number: `20`, `20.0`, `2e1`, and also `inf` and `nan`, which only a range check
/// can refuse. Like Go, it accepts neither a sign before `nan` nor a value beyond float64.
pub fn number(text: &str) -> Result<f64, String> {
    let is_gos = |number: &f64| {
        let text = text.to_ascii_lowercase();
        number.is_finite() || text.contains("inf") || text == "nan"
    };
    let number = text.parse().ok().filter(is_gos);
    number.ok_or_else(|| "expected a number".into())
}

/// Parses a Go duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    text.parse()
        .map(GoDuration::to_std)
        .map_err(|error| format!("expected {error}"))
}

/// Parses one of the names of an enum, ignoring case.
pub fn word<T: FromStr + VariantNames>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("expected one of {}", T::VARIANTS.join(", ")))
}

#[cfg(test)]
mod tests;
