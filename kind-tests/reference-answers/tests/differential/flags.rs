//! Go's `flag` package with the flags of the Go original and of controller-runtime's zap (rules 5, 6, 8).

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use common::flags::{Agent, AgentArgs, Command, parse};
use common::logging::{Encoder, Level, StackLevel, TimeEncoding};
use proptest::prelude::*;
use reference_answers::campaign;
use serde_json::{Value, json};

use super::durations::durations;

/// The bits of what Go reads from "nan".
const GO_NAN: &str = "7ff8000000000001";

const FLAGS: [&str; 18] = [
    "config-file",
    "kubeconfig",
    "metrics-bind-addr",
    "health-bind-addr",
    "pprof-bind-addr",
    "leader-election-namespace",
    "concurrent-reconciles",
    "kube-api-burst",
    "kube-api-qps",
    "enable-leader-election",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-retry-period",
    "zap-devel",
    "zap-encoder",
    "zap-log-level",
    "zap-stacktrace-level",
    "zap-time-encoding",
];

fn lines() -> impl Strategy<Value = Vec<String>> {
    let name = prop_oneof![
        20 => prop::sample::select(FLAGS.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["h", "help", "no-such-flag", "", "-", "Kubeconfig", "zap"]).prop_map(str::to_owned),
    ];
    let dashes = prop_oneof![8 => Just("--"), 8 => Just("-"), 1 => Just("---"), 1 => Just("")];
    let word = (dashes, name, prop::option::weighted(0.7, value())).prop_map(|(dashes, name, value)| {
        format!("{dashes}{name}{}", value.map(|value| format!("={value}")).unwrap_or_default())
    });
    let matching = prop::sample::select(FLAGS.to_vec())
        .prop_flat_map(|name| (Just(name), value_for(name)).prop_map(|(name, value)| format!("--{name}={value}")));
    let word = prop_oneof![
        10 => matching,
        4 => word,
        2 => value(),
        1 => prop::sample::select(vec!["--", "-", "", "=", "--=", "-=x"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(word, 0..5)
}

fn value() -> BoxedStrategy<String> {
    prop_oneof![text(), booleans(), integers(), numbers(), durations(), zap()].boxed()
}

fn value_for(name: &str) -> BoxedStrategy<String> {
    match name {
        "concurrent-reconciles" | "kube-api-burst" => integers().boxed(),
        "kube-api-qps" => numbers().boxed(),
        "enable-leader-election" | "zap-devel" => booleans().boxed(),
        name if name.starts_with("leader-elect-") => durations().boxed(),
        "zap-log-level" => prop_oneof![zap(), integers().boxed(), "[0-9]{1,4}".boxed()].boxed(),
        name if name.starts_with("zap-") => zap(),
        _ => text(),
    }
}

fn text() -> BoxedStrategy<String> {
    prop_oneof!["[ -~]{0,8}", "\\PC{0,4}", "(:8080|0|garden|/etc/config)"].boxed()
}

fn booleans() -> BoxedStrategy<String> {
    prop_oneof![4 => "(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)", 1 => "[a-zA-Z01]{0,5}"].boxed()
}

fn integers() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[-+]?[0-9]{1,4}",
        2 => "[-+]?0[xXoObB]?_?[0-9a-fA-F_]{0,6}",
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => "[-+]?(9223372036854775807|9223372036854775808|9223372036854775809|0x7fffffffffffffff|0x8000000000000000)",
        1 => "[-+0-9_xobXOBa-f. ]{0,8}",
    ]
    .boxed()
}

fn numbers() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[-+]?[0-9]{0,4}(\\.[0-9]{0,4})?([eE][-+]?[0-9]{0,3})?",
        1 => "[-+]?[0-9]{15,25}(\\.[0-9]{0,20})?(e[-+]?[0-9]{1,3})?",
        1 => any::<f64>().prop_map(|number| format!("{number:e}")),
        1 => "[-+]?(inf|INF|Infinity|infinit|nan|NaN|1e308|1e309|1.7976931348623159e308|5e-324|1e-400)",
        1 => "[-+0-9_.eE ]{0,8}",
    ]
    .boxed()
}

fn zap() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "(debug|info|error|panic|DEBUG|Info|warn|fatal|json|console|JSON|Console|epoch|millis|nanos|nano|iso8601|rfc3339|rfc3339nano)",
        2 => "(RFC3339|Rfc3339Nano|EPOCH|ISO8601|Millis|NANOS)",
        1 => "[a-zA-Z0-9]{0,9}",
    ]
    .boxed()
}

#[test]
fn command_lines_are_read_as_go_reads_them() -> Result<()> {
    campaign(
        3_000,
        lines(),
        |words| json!({"flags": words}),
        |words, go| {
            let ours = parse(std::iter::once("prober").chain(words.iter().map(String::as_str)).map(Into::into));
            match (go, ours) {
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
                (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
            }
        },
    )
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
