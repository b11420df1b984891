//! Values of flags as Go's `flag` package takes them. The error of each parser describes the expected
//! value.

use std::time::Duration;

use crate::duration::GoDuration;

/// Parses the values that Go's `strconv.ParseBool` accepts.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".into()),
    }
}

/// Parses a whole number, which is hexadecimal behind `0x`.
pub fn integer(text: &str) -> Result<i64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a whole number that fits in 64 bits".into())
}

/// Parses a Go duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    text.parse()
        .map(|GoDuration(duration)| duration)
        .map_err(|error| format!("expected {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_decimal_or_behind_0x_hexadecimal() {
        for (text, expected) in [
            ("7", 7),
            ("-7", -7),
            ("0x1F", 31),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(integer(text), Ok(expected), "{text}");
        }
        for text in ["", "1.0", "0x", "1_000", "9223372036854775808"] {
            assert!(integer(text).is_err(), "{text:?}");
        }
    }
}
