//! Values of flags as Go's `flag` package takes them. The error of each parser describes the expected
//! value.

use std::time::Duration;

use crate::duration::{GoDuration, GoDurationError};

/// Parses the values that Go's `strconv.ParseBool` accepts.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".into()),
    }
}

/// Parses a Go duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let read = text.parse().map(|GoDuration(duration)| duration);
    read.map_err(|error: GoDurationError| error.to_string())
}
