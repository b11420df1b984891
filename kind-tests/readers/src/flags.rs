//! Go's `flag` package with the flags of the Go original and of controller-runtime's zap (rules 5,
//! 6, 8).

use std::ffi::OsString;
use std::iter;
use std::time::Duration;

use anyhow::{Error, Result, bail, ensure};
use common::flags::{Agent, AgentArgs, CommandLine, UsageError, parse};
use common::logging::Level;
use serde_json::json;

use crate::{Choices, GoProgram, ReaderInput, durations, is_one_line};

/// A command line behind `prober`.
#[derive(Debug)]
pub struct FlagWords(Vec<String>);

/// The last two the Go original does not have.
const FLAGS: &str = "(config-file|kubeconfig|metrics-bind-addr|health-bind-addr|pprof-bind-addr|\
    leader-election-namespace|concurrent-reconciles|kube-api-burst|kube-api-qps|enable-leader-election|\
    leader-elect-lease-duration|leader-elect-renew-deadline|leader-elect-retry-period|zap-devel|zap-encoder|\
    zap-log-level|zap-stacktrace-level|zap-time-encoding|dry-run|metrics-per-shoot)";

/// What values look like, and how often.
type Values = &'static [(usize, &'static str)];

const TEXT: Values = &[(1, "([ -~]{0,8}|\\PC{0,4}|(:8080|0|garden|/etc/config))")];
const BOOLEAN: Values = &[
    (4, "(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)"),
    (1, "[a-zA-Z01]{0,5}"),
];
const INTEGER: Values = &[
    (4, "[-+]?[0-9]{1,4}"),
    (2, "[-+]?0[xXoObB]?_?[0-9a-fA-F_]{0,6}"),
    (1, "-?[0-9]{15,20}"),
    (
        1,
        "[-+]?(9223372036854775807|9223372036854775808|9223372036854775809|0x7fffffffffffffff|0x8000000000000000)",
    ),
    (1, "[-+0-9_xobXOBa-f. ]{0,8}"),
];
const NUMBER: Values = &[
    (4, "[-+]?[0-9]{0,4}(|\\.[0-9]{0,4})(|[eE][-+]?[0-9]{0,3})"),
    (1, "[-+]?[0-9]{15,25}(|\\.[0-9]{0,20})(|e[-+]?[0-9]{1,3})"),
    (
        1,
        "-?[0-9]\\.[0-9]{0,17}e-?([0-9]{1,2}|[12][0-9]{2}|30[0-9]|32[0-9])",
    ),
    (
        1,
        "[-+]?(inf|INF|Infinity|infinit|nan|NaN|1e308|1e309|1\\.7976931348623159e308|5e-324|1e-400)",
    ),
    (1, "[-+0-9_.eE ]{0,8}"),
];
const ZAP: Values = &[
    (
        2,
        "(debug|info|error|panic|DEBUG|Info|warn|fatal|json|console|JSON|Console)",
    ),
    (2, "(epoch|millis|nanos|nano|iso8601|rfc3339|rfc3339nano)"),
    (2, "(RFC3339|Rfc3339Nano|EPOCH|ISO8601|Millis|NANOS)"),
    (1, "[a-zA-Z0-9]{0,9}"),
];

fn word(source: &mut Choices<'_>) -> String {
    match source.below(17) {
        0..10 => {
            let name = source.text(FLAGS);
            format!("--{name}={}", value_for(source, &name))
        }
        10..14 => {
            let dashes = source.text("(--|--|--|-|-|-|---|)");
            let name =
                source.weighted(&[(20, FLAGS), (1, "(h|help|no-such-flag||-|Kubeconfig|zap)")]);
            let value = if source.percent(70) {
                format!("={}", any_value(source))
            } else {
                String::new()
            };
            dashes + &name + &value
        }
        14..16 => any_value(source),
        _ => source.text("(--|-||=|--=|-=x)"),
    }
}

fn any_value(source: &mut Choices<'_>) -> String {
    match source.pick(&[
        Some(TEXT),
        Some(BOOLEAN),
        Some(INTEGER),
        Some(NUMBER),
        Some(ZAP),
        None,
    ]) {
        Some(values) => source.weighted(values),
        None => durations::text(source),
    }
}

fn value_for(source: &mut Choices<'_>, name: &str) -> String {
    let values = match name {
        "concurrent-reconciles" | "kube-api-burst" => INTEGER,
        "kube-api-qps" => NUMBER,
        "enable-leader-election" | "zap-devel" | "dry-run" | "metrics-per-shoot" => BOOLEAN,
        "zap-log-level" => source.pick(&[ZAP, INTEGER, &[(1, "[0-9]{1,4}")]]),
        name if name.starts_with("leader-elect-") => return durations::text(source),
        name if name.starts_with("zap-") => ZAP,
        _ => TEXT,
    };
    source.weighted(values)
}

impl ReaderInput for FlagWords {
    fn make(source: &mut Choices<'_>) -> Self {
        Self(source.list(5, word))
    }

    /// What is understood says the same when it is written out; what makes sense is in range; a
    /// refusal is one line.
    fn check(&self) -> Result<()> {
        let args = match self.parse() {
            Ok(CommandLine::Run(_, args)) => args,
            Ok(command) => {
                ensure!(
                    command.text().is_some_and(|text| !text.is_empty()),
                    "{command:?} says nothing"
                );
                return Ok(());
            }
            Err(refusal) => return is_one_line(&refusal.to_string()),
        };
        // Not a number is not equal to itself.
        if !args.kube_api_qps.is_nan() {
            let (written, run) = (
                Self(written(&args)),
                CommandLine::Run(Agent::Prober, args.clone()),
            );
            ensure!(
                written.parse().as_ref() == Ok(&run),
                "{written:?} gives {:?}",
                written.parse()
            );
        }
        match args.validate() {
            Ok(args) => {
                ensure!(
                    args.kube_api_qps > 0.0
                        && args.kube_api_qps.is_finite()
                        && args.kube_api_burst > 0
                );
                ensure!(!args.config_file.as_os_str().is_empty());
                let election = &args.leader_election;
                let retries = Duration::ZERO < election.retry_period
                    && election.retry_period < election.renew_deadline;
                ensure!(
                    !election.enabled
                        || retries && election.renew_deadline <= election.lease_duration
                );
                Ok(())
            }
            Err(refusal) => is_one_line(&refusal.to_string()),
        }
    }

    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        match (go.ask("flags", json!(self.0))?, self.parse()) {
            (Ok(mut read), Ok(CommandLine::Run(Agent::Prober, args))) => {
                let ours = go
                    .ask("flags", json!(written(&args)))?
                    .map_err(Error::msg)?;
                // zap counts down for more detail. Beyond 128 its eight bits wrap, so that more
                // detail is less or none: not repeated here.
                if matches!(args.zap.level, Level::Verbose(129..)) {
                    read["zap-log-level"] = ours["zap-log-level"].clone();
                }
                ensure!(read == ours, "Go: {read}, we: {ours}");
                Ok(())
            }
            // Rule 4 and D-4: Go ends in silence, we say what there is.
            (Err(error), Ok(CommandLine::Help(Agent::Prober)))
                if error == "flag: help requested" =>
            {
                Ok(())
            }
            (Err(_), Err(_)) => Ok(()),
            // No flag could mean a negative duration; the Go original would fail later, with
            // another message.
            (Ok(_), Err(error))
                if error.to_string().contains("expected a duration")
                    && self.0.concat().contains('-') =>
            {
                Ok(())
            }
            // Go also takes a number with `_` between its digits, which nobody writes.
            (Ok(_), Err(error))
                if error.to_string().contains("expected a number")
                    && self.0.concat().contains('_') =>
            {
                Ok(())
            }
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        }
    }
}

impl FlagWords {
    fn parse(&self) -> Result<CommandLine, UsageError> {
        parse(
            iter::once("prober")
                .chain(self.0.iter().map(String::as_str))
                .map(OsString::from),
        )
    }
}

/// The words that say what we read, with nothing left to defaults but the encoder, for which there
/// is no word.
fn written(args: &AgentArgs) -> Vec<String> {
    let AgentArgs {
        leader_election: election,
        zap,
        ..
    } = args;
    let span = |duration: Duration| format!("{}ns", duration.as_nanos());
    let level = match zap.level {
        Level::DEBUG => "debug".to_owned(),
        Level::Verbose(verbosity) => verbosity.to_string(),
        named => format!("{named:?}").to_lowercase(),
    };
    let words = [
        ("config-file", args.config_file.display().to_string()),
        ("kubeconfig", args.kubeconfig.display().to_string()),
        ("metrics-bind-addr", args.metrics_bind_addr.clone()),
        ("health-bind-addr", args.health_bind_addr.clone()),
        ("pprof-bind-addr", args.pprof_bind_addr.clone()),
        ("leader-election-namespace", election.namespace.clone()),
        (
            "concurrent-reconciles",
            args.concurrent_reconciles.to_string(),
        ),
        ("kube-api-burst", args.kube_api_burst.to_string()),
        ("kube-api-qps", format!("{:?}", args.kube_api_qps)),
        ("enable-leader-election", election.enabled.to_string()),
        ("leader-elect-lease-duration", span(election.lease_duration)),
        ("leader-elect-renew-deadline", span(election.renew_deadline)),
        ("leader-elect-retry-period", span(election.retry_period)),
        ("dry-run", args.dry_run.to_string()),
        ("metrics-per-shoot", args.metrics_per_shoot.to_string()),
        ("zap-devel", zap.devel.to_string()),
        ("zap-log-level", level),
        ("zap-stacktrace-level", zap.stacktrace_level.to_string()),
        ("zap-time-encoding", zap.time_encoding.to_string()),
    ];
    let encoder = zap
        .encoder
        .map(|encoder| ("zap-encoder", encoder.to_string()));
    words
        .into_iter()
        .chain(encoder)
        .map(|(name, value)| format!("--{name}={value}"))
        .collect()
}
