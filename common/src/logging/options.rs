//! The `--zap-...` flags (rule 8).

use clap::Args;
use tracing::level_filters::LevelFilter;

/// Flags of zap's; the comments of the fields are their help.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ZapOptions {
    /// The least severe lines written: debug, info, error, panic, or a number above 0 for ever more
    /// detail
    #[arg(long = "zap-log-level", value_name = "level", value_parser = level, default_value = "debug")]
    pub level: LevelFilter,
    /// Accepted for compatibility. Lines are JSON
    #[arg(long = "zap-encoder", value_name = "encoder")]
    encoder: Option<String>,
    /// Accepted for compatibility. Times are RFC 3339
    #[arg(long = "zap-time-encoding", value_name = "encoding")]
    time_encoding: Option<String>,
    /// Accepted for compatibility. Lines carry the chain of causes instead of a stack trace
    #[arg(long = "zap-stacktrace-level", value_name = "level")]
    stacktrace_level: Option<String>,
    /// Accepted for compatibility
    #[arg(long = "zap-devel", value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    devel: Option<String>,
}

impl ZapOptions {
    /// The given flags that have no meaning here.
    pub(super) fn ignored(&self) -> String {
        let flags = [
            ("--zap-encoder", &self.encoder),
            ("--zap-time-encoding", &self.time_encoding),
            ("--zap-stacktrace-level", &self.stacktrace_level),
            ("--zap-devel", &self.devel),
        ];
        let given = flags.iter().filter(|(_, value)| value.is_some());
        given.map(|(flag, _)| *flag).collect::<Vec<_>>().join(" ")
    }
}

fn level(text: &str) -> Result<LevelFilter, String> {
    match text.to_ascii_lowercase().as_str() {
        // Nothing is more severe than an error here.
        "panic" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "info" => Ok(LevelFilter::INFO),
        "debug" | "1" => Ok(LevelFilter::DEBUG),
        number if number.parse::<u64>().is_ok_and(|verbosity| verbosity > 1) => {
            Ok(LevelFilter::TRACE)
        }
        _ => Err("expected debug, info, error, panic or a whole number above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct OnlyZap {
        #[command(flatten)]
        zap: ZapOptions,
    }

    #[test]
    fn log_levels_are_words_in_any_case_or_a_verbosity() {
        let levels =
            ["debug", "INFO", "Error", "panic", "1", "5"].map(|text| level(text).expect(text));
        let read = levels.map(|level| level.to_string()).join(" ");
        assert_eq!(read, "debug info error off debug trace");
        for text in ["0", "-1", "warn", "", "1.5", "fatal"] {
            level(text).expect_err(text);
        }
    }

    #[test]
    fn what_is_not_done_is_named_by_its_flag() {
        for (words, ignored) in [
            ("", ""),
            (
                "--zap-encoder=json --zap-encoder=console --zap-devel=false",
                "--zap-encoder --zap-devel",
            ),
            (
                "--zap-time-encoding=nano --zap-stacktrace-level=panic",
                "--zap-time-encoding --zap-stacktrace-level",
            ),
        ] {
            let words = ["zap"].into_iter().chain(words.split_whitespace());
            let OnlyZap { zap } = OnlyZap::try_parse_from(words).expect("accepted");
            assert_eq!((&*zap.ignored(), zap.level), (ignored, LevelFilter::DEBUG));
        }
    }
}
