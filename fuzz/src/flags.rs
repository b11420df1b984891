//! Command lines.

use std::ffi::OsString;
use std::time::Duration;

use arbitrary::Arbitrary;
use common::flags::{AgentArgs, Command, parse};

/// The words of a command line, most of them flags.
#[derive(Arbitrary, Debug)]
pub enum Word {
    /// A flag with any value, by its place in the list.
    Flag(u8, Option<String>),
    /// A flag with a value that may suit it.
    Usual(u8, Usual),
    /// Anything.
    Any(String),
}

/// Values that some flag takes.
#[derive(Arbitrary, Debug)]
pub enum Usual {
    Boolean(bool),
    Integer(i64),
    Hexadecimal(u64),
    Number(f64),
    Nanoseconds(u64),
    Level(u8),
}

const NAMES: [&str; 19] = [
    "config-file",
    "kubeconfig",
    "kube-api-qps",
    "kube-api-burst",
    "concurrent-reconciles",
    "metrics-bind-addr",
    "metrics-per-shoot",
    "health-bind-addr",
    "pprof-bind-addr",
    "enable-leader-election",
    "leader-election-namespace",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-retry-period",
    "zap-log-level",
    "zap-encoder",
    "zap-time-encoding",
    "zap-stacktrace-level",
    "zap-devel",
];

impl Word {
    fn text(&self) -> String {
        let name = |index: &u8| NAMES[usize::from(*index) % NAMES.len()];
        match self {
            Self::Flag(index, None) => format!("--{}", name(index)),
            Self::Flag(index, Some(value)) => format!("-{}={value}", name(index)),
            Self::Usual(index, usual) => {
                let value = match usual {
                    Usual::Boolean(value) => value.to_string(),
                    Usual::Integer(value) => value.to_string(),
                    Usual::Hexadecimal(value) => format!("{value:#x}"),
                    Usual::Number(value) => format!("{value:?}"),
                    Usual::Nanoseconds(value) => format!("{value}ns"),
                    Usual::Level(level) => ["debug", "info", "error", "panic", "json", "console", "epoch", "nanos", "rfc3339"]
                        [usize::from(level % 9)]
                    .to_owned(),
                };
                format!("--{}={value}", name(index))
            }
            Self::Any(text) => text.clone(),
        }
    }
}

/// What is understood says the same when it is written out; what makes sense is in range; a refusal is one line.
pub fn check(words: &[Word]) {
    let words = std::iter::once("prober".to_owned()).chain(words.iter().map(Word::text));
    let args = match parse(words.map(OsString::from)) {
        Ok(Command::Run(_, args)) => args,
        Ok(command) => return assert!(command.text().is_some_and(|text| !text.is_empty())),
        Err(refusal) => return super::must_be_one_line(&refusal.to_string()),
    };
    // Not a number is not equal to itself.
    if !args.kube_api_qps.is_nan() {
        match parse(written(&args).into_iter().map(OsString::from)) {
            Ok(Command::Run(_, again)) => assert_eq!(args, again),
            other => panic!("{:?} gives {other:?}", written(&args)),
        }
    }
    match args.validate() {
        Ok(args) => {
            assert!(args.kube_api_qps > 0.0 && args.kube_api_qps.is_finite() && args.kube_api_burst > 0);
            assert!(!args.config_file.as_os_str().is_empty());
            let election = &args.leader_election;
            let retries = Duration::ZERO < election.retry_period && election.retry_period < election.renew_deadline;
            assert!(!election.enabled || retries && election.renew_deadline <= election.lease_duration);
        }
        Err(refusal) => super::must_be_one_line(&refusal.to_string()),
    }
}

/// The words that mean these flags.
fn written(args: &AgentArgs) -> Vec<String> {
    let AgentArgs { leader_election: election, zap, .. } = args;
    let span = |duration: Duration| format!("{}ns", duration.as_nanos());
    let mut words = vec!["prober".to_owned()];
    let mut say = |name: &str, value: String| words.push(format!("--{name}={value}"));
    say("config-file", args.config_file.display().to_string());
    say("kube-api-qps", format!("{:?}", args.kube_api_qps));
    say("kube-api-burst", args.kube_api_burst.to_string());
    say("concurrent-reconciles", args.concurrent_reconciles.to_string());
    say("metrics-bind-addr", args.metrics_bind_addr.clone());
    say("metrics-per-shoot", args.metrics_per_shoot.to_string());
    say("health-bind-addr", args.health_bind_addr.clone());
    say("pprof-bind-addr", args.pprof_bind_addr.clone());
    say("enable-leader-election", election.enabled.to_string());
    say("leader-election-namespace", election.namespace.clone());
    say("leader-elect-lease-duration", span(election.lease_duration));
    say("leader-elect-renew-deadline", span(election.renew_deadline));
    say("leader-elect-retry-period", span(election.retry_period));
    say("zap-log-level", zap.level.to_string());
    say("zap-time-encoding", zap.time_encoding.to_string());
    say("zap-stacktrace-level", zap.stacktrace_level.to_string());
    say("zap-devel", zap.devel.to_string());
    if let Some(kubeconfig) = &args.kubeconfig {
        say("kubeconfig", kubeconfig.display().to_string());
    }
    if let Some(encoder) = zap.encoder {
        say("zap-encoder", encoder.to_string());
    }
    words
}
