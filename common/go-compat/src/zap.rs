//! zap as controller-runtime sets it up: what its flags take (rule 8), the form of a line, and
//! which repetitions are left out.

mod encode;
mod sampler;

use std::str::FromStr;

use strum::{Display, EnumString, VariantNames};

pub use encode::Line;
pub use sampler::Sampler;

/// The least severe lines that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Only what is worse than an error: nothing here is.
    Panic,
    Error,
    /// Information, warnings and errors.
    Info,
    /// Also details of this verbosity, 1 or more: 1 is debug, 2 adds everything there is.
    Verbose(u32),
}

impl Default for Level {
    /// What the Go original presets.
    fn default() -> Self {
        Self::DEBUG
    }
}

impl Level {
    pub const DEBUG: Self = Self::Verbose(1);
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "debug" => Ok(Self::DEBUG),
            "info" => Ok(Self::Info),
            "error" => Ok(Self::Error),
            "panic" => Ok(Self::Panic),
            number => match number.parse::<i64>() {
                // More than there is of detail is all of it.
                Ok(verbosity) if verbosity > 0 => {
                    Ok(Self::Verbose(u32::try_from(verbosity).unwrap_or(u32::MAX)))
                }
                _ => Err("expected debug, info, error, panic or a whole number above 0".into()),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Encoder {
    Json,
    /// Columns for a person, the fields as JSON at the end.
    Console,
}

/// The form of a time; all are UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum TimeEncoding {
    /// `2006-01-02T15:04:05Z`
    #[default]
    Rfc3339,
    /// `2006-01-02T15:04:05.999999999Z`
    Rfc3339Nano,
    /// `2006-01-02T15:04:05.999Z`
    Iso8601,
    /// Seconds since 1970, with a fraction.
    Epoch,
    Millis,
    Nanos,
}

/// The level from which on a stack trace was requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum StackLevel {
    Info,
    #[default]
    Error,
    Panic,
}

#[cfg(test)]
mod tests;
