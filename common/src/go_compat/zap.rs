//! zap as controller-runtime sets it up: the `--zap-...` flags (rule 8), the form of a line, and which repetitions are left out.

pub(crate) mod encode;
pub(crate) mod sampler;

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZapOptions {
    /// `--zap-log-level`. Default debug, which is what the Go original presets.
    pub level: Level,
    /// `--zap-encoder`, when given; see [`ZapOptions::effective_encoder`].
    pub encoder: Option<Encoder>,
    /// `--zap-devel`: written for a person, nothing left out.
    pub devel: bool,
    /// `--zap-time-encoding`. Default RFC 3339.
    pub time_encoding: TimeEncoding,
    /// `--zap-stacktrace-level`: accepted; a line carries its causes instead.
    pub stacktrace_level: StackLevel,
}

impl Default for ZapOptions {
    fn default() -> Self {
        Self {
            level: Level::DEBUG,
            encoder: None,
            devel: false,
            time_encoding: TimeEncoding::Rfc3339,
            stacktrace_level: StackLevel::Error,
        }
    }
}

impl ZapOptions {
    /// The encoder asked for, else what `--zap-devel` implies.
    pub fn effective_encoder(&self) -> Encoder {
        self.encoder.unwrap_or(if self.devel { Encoder::Console } else { Encoder::Json })
    }

    /// Whether repeated lines are left out after the first hundred of a second: not for a developer, and not from verbosity 2 on (rule 9).
    pub fn samples(&self) -> bool {
        !self.devel && self.level.verbosity() < 2
    }
}

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

impl Level {
    pub const DEBUG: Self = Self::Verbose(1);

    /// The `n` of the most detailed lines written; 0 when no details are.
    pub fn verbosity(self) -> u32 {
        match self {
            Self::Panic | Self::Error | Self::Info => 0,
            Self::Verbose(verbosity) => verbosity,
        }
    }
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
                Ok(verbosity) if verbosity > 0 => Ok(Self::Verbose(u32::try_from(verbosity).unwrap_or(u32::MAX))),
                _ => Err("expected debug, info, error, panic or a whole number above 0".into()),
            },
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic => f.write_str("panic"),
            Self::Error => f.write_str("error"),
            Self::Info => f.write_str("info"),
            Self::Verbose(1) => f.write_str("debug"),
            Self::Verbose(verbosity) => write!(f, "{verbosity}"),
        }
    }
}

/// Defines an enum whose values are words, read in any case.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text.to_ascii_lowercase().as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("expected one of {}", [$($word),+].join(", "))),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)+ })
            }
        }
    };
}

words! {
    Encoder {
        Json = "json",
        /// Columns for a person, the fields as JSON at the end.
        Console = "console",
    }
}

words! {
    /// The form of a time; all are UTC.
    TimeEncoding {
        /// `2006-01-02T15:04:05Z`
        Rfc3339 = "rfc3339",
        /// `2006-01-02T15:04:05.999999999Z`
        Rfc3339Nano = "rfc3339nano",
        /// `2006-01-02T15:04:05.999Z`
        Iso8601 = "iso8601",
        /// Seconds since 1970, with a fraction.
        Epoch = "epoch",
        Millis = "millis",
        Nanos = "nanos",
    }
}

words! {
    /// From which level on a stack trace was asked for.
    StackLevel {
        Info = "info",
        Error = "error",
        Panic = "panic",
    }
}
