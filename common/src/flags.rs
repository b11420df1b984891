//! The command line: subcommands and flags, in the syntax of Go's `flag` package (rules 1 to 8).
//!
//! ```text
//! args -> parse -> Command::Usage | Help(agent) | Run(agent, AgentArgs) -> AgentArgs::validate
//! ```
//!
//! Operators' Deployments are written for Go's syntax: `-flag` is `--flag`, a boolean takes its value only after `=`, the first word that
//! is no flag ends the flags and the rest is ignored, `0x10` is a number. clap cannot be taught any of these; by the time its
//! input were rewritten into its own syntax one would have parsed it. What is left is the table in [`table`], and the syntax in
//! [`crate::go_compat`].

mod help;
mod parse;
mod table;

use std::path::PathBuf;
use std::time::Duration;

pub use help::CLI_COMMANDS;
pub use parse::parse;
pub use table::{FLAGS, Flag};

use crate::go_compat::duration::GoDuration;
use crate::logging::ZapOptions;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Takes controllers down while a shoot's nodes cannot reach their API server.
    Prober,
    /// Restarts pods that crash-looped while a Service they need was away.
    Weeder,
}

impl Agent {
    /// Both, in the order the usage lists them.
    pub const ALL: [Self; 2] = [Self::Prober, Self::Weeder];

    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Prober => "keeps machines from being replaced while their nodes cannot reach the API server",
            Self::Weeder => "restarts crash-looping pods once the service they need is back",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Prober => "prober",
            Self::Weeder => "weeder",
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "a process has one")]
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Say on stdout which commands there are; exit 0.
    Usage,
    /// Say on stdout what this command takes; exit 0.
    Help(Agent),
    Run(Agent, AgentArgs),
}

impl Command {
    /// What to print on stdout; nothing for [`Command::Run`].
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Usage => Some(help::usage()),
            Self::Help(agent) => Some(help::of(*agent)),
            Self::Run(..) => None,
        }
    }
}

/// A command line that says nothing sensible: the message goes to stderr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    /// One line for a flag.
    pub message: String,
}

impl UsageError {
    /// The process's exit code, as Go's `flag` package has it.
    pub const EXIT_CODE: u8 = 2;
}

/// Flags that could be read but make no sense; the process ends with exit code 1. Each message names the flags.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgsError(String);

/// The flags of an agent; both have the same (rules 6 to 8).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentArgs {
    /// `--config-file`; empty when not given.
    pub config_file: PathBuf,
    /// `--concurrent-reconciles`: accepted and not needed, work here is per shoot.
    pub concurrent_reconciles: i64,
    /// `--kube-api-qps`: requests per second to the seed.
    pub kube_api_qps: f64,
    /// `--kube-api-burst`: requests to the seed at once.
    pub kube_api_burst: i64,
    /// `--metrics-bind-addr`, as Go writes addresses (`:9643`); "0" for none.
    pub metrics_bind_addr: String,
    /// `--metrics-per-shoot`: whether metrics have a series per shoot.
    pub metrics_per_shoot: bool,
    /// `--health-bind-addr`; "0" or empty for none.
    pub health_bind_addr: String,
    /// `--pprof-bind-addr`: accepted; nothing is served there.
    pub pprof_bind_addr: String,
    pub leader_election: LeaderElection,
    /// `--dry-run`: whether to say what would be written and write nothing.
    pub dry_run: bool,
    /// `--kubeconfig`, when given and not empty.
    pub kubeconfig: Option<PathBuf>,
    pub zap: ZapOptions,
}

/// How replicas agree on one that works. The numbers are client-go's (rule 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    pub enabled: bool,
    /// `--leader-election-namespace`: where the Lease is.
    pub namespace: String,
    /// `--leader-elect-lease-duration`: after this long without renewal another may lead.
    pub lease_duration: Duration,
    /// `--leader-elect-renew-deadline`: after this long without renewal the leader stops.
    pub renew_deadline: Duration,
    /// `--leader-elect-retry-period`: between two attempts.
    pub retry_period: Duration,
}

/// client-go's limits, in requests per second and requests (rule 6); what 0 stands for.
const DEFAULT_QPS: f64 = 5.0;
const DEFAULT_BURST: i64 = 10;

impl Default for AgentArgs {
    fn default() -> Self {
        Self {
            config_file: PathBuf::new(),
            concurrent_reconciles: 1,
            kube_api_qps: DEFAULT_QPS,
            kube_api_burst: DEFAULT_BURST,
            metrics_bind_addr: ":9643".into(),
            metrics_per_shoot: false,
            health_bind_addr: ":9644".into(),
            pprof_bind_addr: ":8081".into(),
            leader_election: LeaderElection::default(),
            dry_run: false,
            kubeconfig: None,
            zap: ZapOptions::default(),
        }
    }
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            enabled: false,
            namespace: "garden".into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl AgentArgs {
    /// Checks what the syntax cannot, and puts the defaults where 0 asks for them.
    ///
    /// # Errors
    /// The first flag that makes no sense.
    pub fn validate(mut self) -> Result<Self, ArgsError> {
        let (qps, burst) = (&mut self.kube_api_qps, &mut self.kube_api_burst);
        if self.config_file.as_os_str().is_empty() {
            return Err(ArgsError("--config-file is missing: the path of the config file".to_owned()));
        }
        if !(qps.is_finite() && *qps >= 0.0) {
            return Err(ArgsError(format!("--kube-api-qps={qps}: expected a number of at least 0 (0 = default, 5)")));
        }
        if *burst < 0 {
            return Err(ArgsError(format!("--kube-api-burst={burst}: expected at least 0 (0 = default, 10)")));
        }
        if *qps == 0.0 {
            *qps = DEFAULT_QPS;
        }
        if *burst == 0 {
            *burst = DEFAULT_BURST;
        }
        if self.leader_election.enabled {
            self.leader_election.validate()?;
        }
        Ok(self)
    }
}

impl LeaderElection {
    fn validate(&self) -> Result<(), ArgsError> {
        let [lease, renew, retry] = [self.lease_duration, self.renew_deadline, self.retry_period].map(GoDuration::from_std);
        let spans = [
            ("leader-elect-lease-duration", lease),
            ("leader-elect-renew-deadline", renew),
            ("leader-elect-retry-period", retry),
        ];
        if let Some((flag, value)) = spans.into_iter().find(|(_, value)| value.as_nanos() <= 0) {
            return Err(ArgsError(format!("--{flag}={value}: expected a duration above 0")));
        }
        let [lease_flag, renew_flag, retry_flag] = spans.map(|(flag, value)| format!("--{flag}={value}"));
        // A leader would lose the Lease before it gives up.
        if renew > lease {
            return Err(ArgsError(format!("{renew_flag} is longer than {lease_flag}")));
        }
        // A leader could not retry.
        if retry >= renew {
            return Err(ArgsError(format!("{retry_flag} is not shorter than {renew_flag}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
