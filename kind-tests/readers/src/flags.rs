//! Go's `flag` package with the flags of the Go original and of controller-runtime's zap (rules 5, 6, 8).

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use common::flags::{Agent, AgentArgs, Command, parse};
use common::logging::{Encoder, Level, StackLevel, TimeEncoding};
use serde_json::{Value, json};

use crate::{Go, Input, Source, durations, is_one_line};

/// A command line behind `prober`.
#[derive(Debug)]
pub struct Words(Vec<String>);

/// The bits of what Go reads from "nan".
const GO_NAN: &str = "7ff8000000000001";

const FLAGS: &str = "(config-file|kubeconfig|metrics-bind-addr|health-bind-addr|pprof-bind-addr|\
    leader-election-namespace|concurrent-reconciles|kube-api-burst|kube-api-qps|enable-leader-election|\
    leader-elect-lease-duration|leader-elect-renew-deadline|leader-elect-retry-period|zap-devel|zap-encoder|\
    zap-log-level|zap-stacktrace-level|zap-time-encoding)";
/// One that the Go original does not have.
const OURS: &str = "metrics-per-shoot";

fn word(source: &mut Source<'_>) -> String {
    match source.below(17) {
        0..10 => {
            let name = if source.below(50) == 49 { OURS.to_owned() } else { source.text(FLAGS) };
            format!("--{name}={}", value_for(source, &name))
        }
        10..14 => {
            let dashes = source.pick(&["--", "--", "--", "-", "-", "-", "---", ""]);
            let name = match source.below(21) {
                0..20 => source.text(FLAGS),
                _ => source.text("(h|help|no-such-flag||-|Kubeconfig|zap)"),
            };
            let value = if source.percent(70) { format!("={}", any_value(source)) } else { String::new() };
            format!("{dashes}{name}{value}")
        }
        14..16 => any_value(source),
        _ => source.text("(--|-||=|--=|-=x)"),
    }
}

fn any_value(source: &mut Source<'_>) -> String {
    source.pick(&[text, boolean, integer, number, durations::text, zap])(source)
}

fn value_for(source: &mut Source<'_>, name: &str) -> String {
    match name {
        "concurrent-reconciles" | "kube-api-burst" => integer(source),
        "kube-api-qps" => number(source),
        "enable-leader-election" | "zap-devel" | OURS => boolean(source),
        "zap-log-level" => match source.below(3) {
            0 => zap(source),
            1 => integer(source),
            _ => source.text("[0-9]{1,4}"),
        },
        name if name.starts_with("leader-elect-") => durations::text(source),
        name if name.starts_with("zap-") => zap(source),
        _ => text(source),
    }
}

fn text(source: &mut Source<'_>) -> String {
    source.text("([ -~]{0,8}|\\PC{0,4}|(:8080|0|garden|/etc/config))")
}

fn boolean(source: &mut Source<'_>) -> String {
    match source.below(5) {
        0..4 => source.text("(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)"),
        _ => source.text("[a-zA-Z01]{0,5}"),
    }
}

fn integer(source: &mut Source<'_>) -> String {
    match source.below(9) {
        0..4 => source.text("[-+]?[0-9]{1,4}"),
        4..6 => source.text("[-+]?0[xXoObB]?_?[0-9a-fA-F_]{0,6}"),
        6 => source.any::<i64>().to_string(),
        7 => source
            .text("[-+]?(9223372036854775807|9223372036854775808|9223372036854775809|0x7fffffffffffffff|0x8000000000000000)"),
        _ => source.text("[-+0-9_xobXOBa-f. ]{0,8}"),
    }
}

fn number(source: &mut Source<'_>) -> String {
    match source.below(8) {
        0..4 => source.text("[-+]?[0-9]{0,4}(|\\.[0-9]{0,4})(|[eE][-+]?[0-9]{0,3})"),
        4 => source.text("[-+]?[0-9]{15,25}(|\\.[0-9]{0,20})(|e[-+]?[0-9]{1,3})"),
        5 => format!("{:e}", source.any::<f64>()),
        6 => source.text("[-+]?(inf|INF|Infinity|infinit|nan|NaN|1e308|1e309|1.7976931348623159e308|5e-324|1e-400)"),
        _ => source.text("[-+0-9_.eE ]{0,8}"),
    }
}

fn zap(source: &mut Source<'_>) -> String {
    match source.below(7) {
        0..4 => source.text(
            "(debug|info|error|panic|DEBUG|Info|warn|fatal|json|console|JSON|Console|epoch|millis|nanos|nano|iso8601|rfc3339|rfc3339nano)",
        ),
        4..6 => source.text("(RFC3339|Rfc3339Nano|EPOCH|ISO8601|Millis|NANOS)"),
        _ => source.text("[a-zA-Z0-9]{0,9}"),
    }
}

impl Input for Words {
    fn make(source: &mut Source<'_>) -> Self {
        Self(source.list(5, word))
    }

    /// What is understood says the same when it is written out; what makes sense is in range; a refusal is one line.
    fn check(&self) -> Result<()> {
        let args = match self.parse() {
            Ok(Command::Run(_, args)) => args,
            Ok(command) => {
                ensure!(command.text().is_some_and(|text| !text.is_empty()), "{command:?} says nothing");
                return Ok(());
            }
            Err(refusal) => return is_one_line(&refusal.to_string()),
        };
        // Not a number is not equal to itself.
        if !args.kube_api_qps.is_nan() {
            match parse(written(&args).into_iter().map(OsString::from)) {
                Ok(Command::Run(_, again)) => ensure!(args == again, "{:?} gives {again:?}", written(&args)),
                other => bail!("{:?} gives {other:?}", written(&args)),
            }
        }
        match args.validate() {
            Ok(args) => {
                ensure!(args.kube_api_qps > 0.0 && args.kube_api_qps.is_finite() && args.kube_api_burst > 0);
                ensure!(!args.config_file.as_os_str().is_empty());
                let election = &args.leader_election;
                let retries = Duration::ZERO < election.retry_period && election.retry_period < election.renew_deadline;
                ensure!(!election.enabled || retries && election.renew_deadline <= election.lease_duration);
                Ok(())
            }
            Err(refusal) => is_one_line(&refusal.to_string()),
        }
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        if self.0.iter().any(|word| word.contains(OURS)) {
            return Ok(());
        }
        match (go.ask(&json!({"flags": self.0}))?, self.parse()) {
            (Ok(mut go), Ok(Command::Run(Agent::Prober, args))) => {
                // No number is like any other; both agents refuse it later.
                if args.kube_api_qps.is_nan() && go["kube-api-qps"] == json!(GO_NAN) {
                    go["kube-api-qps"] = json!(format!("{:x}", args.kube_api_qps.to_bits()));
                }
                let ours = shown(&args, &go);
                ensure!(go == ours, "Go: {go}, we: {ours}");
                Ok(())
            }
            // Rule 4 and D-4: Go ends in silence, we say what there is.
            (Err(error), Ok(Command::Help(Agent::Prober))) if error == "flag: help requested" => Ok(()),
            (Err(_), Err(_)) => Ok(()),
            (Ok(_), Err(error)) if decided(&error.message) => Ok(()),
            // Go also takes a number with `_` between its digits, which nobody writes.
            (Ok(_), Err(error)) if error.message.contains("expected a number") && self.0.concat().contains('_') => Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        }
    }
}

impl Words {
    fn parse(&self) -> Result<Command, common::flags::UsageError> {
        parse(std::iter::once("prober").chain(self.0.iter().map(String::as_str)).map(OsString::from))
    }
}

/// What we refuse on purpose and Go takes.
fn decided(refusal: &str) -> bool {
    // No flag could mean a negative duration; the Go original would fail later, with another message.
    refusal.ends_with("expected a duration that is not negative")
}

/// What we read, in the words of the Go program.
fn shown(args: &AgentArgs, go: &Value) -> Value {
    let election = &args.leader_election;
    json!({
        "text": {
            "config-file": args.config_file,
            "kubeconfig": args.kubeconfig.clone().unwrap_or_default(),
            "metrics-bind-addr": args.metrics_bind_addr,
            "health-bind-addr": args.health_bind_addr,
            "pprof-bind-addr": args.pprof_bind_addr,
            "leader-election-namespace": election.namespace,
        },
        "numbers": {"concurrent-reconciles": args.concurrent_reconciles, "kube-api-burst": args.kube_api_burst},
        "spans": {
            "leader-elect-lease-duration": nanos(election.lease_duration),
            "leader-elect-renew-deadline": nanos(election.renew_deadline),
            "leader-elect-retry-period": nanos(election.retry_period),
        },
        "kube-api-qps": format!("{:x}", args.kube_api_qps.to_bits()),
        "enable-leader-election": election.enabled,
        "zap-devel": args.zap.devel,
        "zap-level": level(args.zap.level, &go["zap-level"]),
        // Our default is spelt out where Go's depends on --zap-devel.
        "zap-stacktrace-level": match args.zap.stacktrace_level {
            StackLevel::Error if go["zap-stacktrace-level"].is_null() => Value::Null,
            StackLevel::Info => json!(0),
            StackLevel::Error => json!(2),
            StackLevel::Panic => json!(4),
        },
        "zap-encoder": args.zap.encoder.map(|encoder| match encoder {
            Encoder::Json => "json",
            Encoder::Console => "console",
        }),
        // The moment 1,700,000,000.123456789 s after 1970.
        "zap-time-encoding": match args.zap.time_encoding {
            TimeEncoding::Rfc3339 => "2023-11-14T22:13:20Z",
            TimeEncoding::Rfc3339Nano => "2023-11-14T22:13:20.123456789Z",
            TimeEncoding::Iso8601 => "2023-11-14T22:13:20.123Z",
            TimeEncoding::Epoch => "1700000000.123457",
            TimeEncoding::Millis => "1700000000123.456787",
            TimeEncoding::Nanos => "1700000000123456789",
        },
    })
}

/// zap counts down for more detail. Beyond 128 its eight bits wrap, so that more detail is less or none: not repeated here.
fn level(level: Level, go: &Value) -> Value {
    match level {
        Level::Panic => json!(4),
        Level::Error => json!(2),
        Level::Info => json!(0),
        Level::Verbose(verbosity) if verbosity > 128 => go.clone(),
        Level::Verbose(verbosity) => json!(-i64::from(verbosity)),
    }
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// The words that mean what is shown.
fn written(args: &AgentArgs) -> Vec<String> {
    let (shown, zap) = (shown(args, &Value::Null), &args.zap);
    let mut words = vec!["prober".to_owned()];
    let mut say = |name: &str, value: String| words.push(format!("--{name}={value}"));
    for (name, text) in shown["text"].as_object().into_iter().flatten() {
        say(name, text.as_str().unwrap_or_default().to_owned());
    }
    for (name, number) in shown["numbers"].as_object().into_iter().flatten() {
        say(name, number.to_string());
    }
    for (name, nanos) in shown["spans"].as_object().into_iter().flatten() {
        say(name, format!("{nanos}ns"));
    }
    say("kube-api-qps", format!("{:?}", args.kube_api_qps));
    say(OURS, args.metrics_per_shoot.to_string());
    say("enable-leader-election", args.leader_election.enabled.to_string());
    say("zap-log-level", zap.level.to_string());
    say("zap-time-encoding", zap.time_encoding.to_string());
    say("zap-stacktrace-level", zap.stacktrace_level.to_string());
    say("zap-devel", zap.devel.to_string());
    if let Some(encoder) = zap.encoder {
        say("zap-encoder", encoder.to_string());
    }
    words
}
