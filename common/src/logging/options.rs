//! The `--zap-...` flags (rule 8).

use clap::{ArgAction, Args};
use go_compat::flag;
use go_compat::zap::{Encoder, Level, StackLevel, TimeEncoding};

/// What is said of a field here is what the help says of its flag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ZapOptions {
    /// The least severe lines written: debug, info, error, panic, or a number above 0 for ever more
    /// detail
    #[arg(long = "zap-log-level", value_name = "level", default_value = "debug")]
    pub level: Level,
    /// How lines are written: json or console. The default is json, with --zap-devel console
    #[arg(long = "zap-encoder", value_name = "encoder", value_parser = flag::word::<Encoder>)]
    pub encoder: Option<Encoder>,
    /// How times are written: rfc3339, rfc3339nano, iso8601, epoch, millis or nanos
    #[arg(long = "zap-time-encoding", value_name = "encoding", value_parser = flag::word::<TimeEncoding>, default_value_t)]
    pub time_encoding: TimeEncoding,
    /// Accepted for compatibility: info, error or panic. Lines carry the chain of causes instead of
    /// a stack trace
    #[arg(long = "zap-stacktrace-level", value_name = "level", value_parser = flag::word::<StackLevel>, default_value_t)]
    pub stacktrace_level: StackLevel,
    /// Write for a person: console lines, none left out however often they repeat
    #[arg(long = "zap-devel", action = ArgAction::Set, value_name = "bool", value_parser = flag::boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub devel: bool,
}

impl ZapOptions {
    /// The encoder asked for, else what `--zap-devel` implies.
    pub(crate) fn effective_encoder(&self) -> Encoder {
        self.encoder.unwrap_or(if self.devel {
            Encoder::Console
        } else {
            Encoder::Json
        })
    }

    /// Whether repeated lines are left out after the first hundred of a second: not for a
    /// developer, and not from verbosity 2 on (rule 9).
    pub(super) fn samples(&self) -> bool {
        !self.devel && !matches!(self.level, Level::Verbose(2..))
    }
}
