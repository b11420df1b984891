//! The command line: subcommands and flags, in the syntax of Go's `flag` package (rules 1 to 8).
//!
//! ```text
//! args -> parse -> CommandLine::Usage | Help(agent) | Run(agent, AgentArgs) -> AgentArgs::validate
//! ```
//!
//! Operators' Deployments are written for Go's syntax: `-flag` is `--flag`, a boolean takes its
//! value only after `=`, the first word that is no flag ends the flags and the rest is ignored,
//! `0x10` is a number. clap cannot be taught any of these. `parse` knows which word is what,
//! [`flag`] how values are spelt, and clap which flags there are: it is handed each one as
//! `--flag=value`.

mod help;
mod parse;

use std::any::TypeId;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Arg, ArgAction, Args, ValueEnum};
use go_compat::duration::GoDuration;
use go_compat::flag;
use strum::{EnumMessage, EnumString, IntoStaticStr, VariantArray};

pub use help::CLI_COMMANDS;
pub use parse::parse;

use crate::logging::ZapOptions;

/// An agent, with its purpose and its description in the help.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    EnumMessage,
    EnumString,
    IntoStaticStr,
    ValueEnum,
    VariantArray,
)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Agent {
    #[strum(
        message = "keeps machines from being replaced while their nodes cannot reach the API server",
        detailed_message = "\
Checks the node leases of every shoot of this seed. When most of them are no longer renewed although the
shoot's API server answers, the nodes have lost the way to it and will soon be taken for dead. The prober then scales
the configured controllers to 0, so that none of them replaces machines that are well, and scales them
back, in order, when the leases are renewed again."
    )]
    Prober,
    #[strum(
        message = "restarts crash-looping pods once the service they need is back",
        detailed_message = "\
Watches the configured Services in every namespace of this seed. When one becomes ready, pods that depend on it
and are in CrashLoopBackOff are deleted for a while, so that they start again at once instead of waiting
minutes for their next try."
    )]
    Weeder,
}

impl Agent {
    pub const ALL: &[Self] = Self::VARIANTS;

    pub const fn name(self) -> &'static str {
        self.into_str()
    }

    pub fn purpose(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}

#[expect(clippy::large_enum_variant, reason = "a process has one")]
#[derive(Clone, Debug, PartialEq)]
pub enum CommandLine {
    /// Say on stdout which commands there are; exit 0.
    Usage,
    /// Say on stdout what this agent takes; exit 0.
    Help(Agent),
    Run(Agent, AgentArgs),
}

impl CommandLine {
    /// What to print on stdout; nothing for [`CommandLine::Run`].
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Usage => Some(help::usage()),
            Self::Help(agent) => Some(help::of(*agent)),
            Self::Run(..) => None,
        }
    }
}

/// A command line that cannot be understood: the message, one line for a flag, goes to stderr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    /// The process's exit code, as Go's `flag` package has it.
    pub(crate) const EXIT_CODE: u8 = 2;
}

/// The flags of an agent; both have the same (rules 6 to 8). What is said of a field here is what
/// the help says of its flag. A path that is not given is empty.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AgentArgs {
    /// The agent's config file (YAML). Required.
    #[arg(long, value_name = "path", value_parser = str::parse::<PathBuf>, default_value = "")]
    pub config_file: PathBuf,
    /// How to reach the seed. Without it: the file named by $KUBECONFIG, the service account of the
    /// pod, ~/.kube/config.
    #[arg(long, value_name = "path", value_parser = str::parse::<PathBuf>, default_value = "")]
    pub kubeconfig: PathBuf,
    /// How many writes per second the prober makes to restore, on average; protective writes and
    /// all else are not limited, nor is the weeder. 0 means the default.
    #[arg(long, value_name = "number", value_parser = flag::number, default_value = "5.0")]
    pub kube_api_qps: f64,
    /// How many writes to restore the prober may make at once before the average holds. 0 means the
    /// default.
    #[arg(long, value_name = "int", value_parser = flag::integer, default_value_t = DEFAULT_BURST)]
    pub kube_api_burst: i64,
    /// Accepted for compatibility. Shoots are worked on independently of each other, without such a
    /// limit.
    #[arg(long, value_name = "int", value_parser = flag::integer, default_value = "1")]
    pub concurrent_reconciles: i64,
    /// Where /metrics is served, as host:port or :port. 0 serves nothing; nothing means :8080.
    #[arg(
        long,
        alias = "metrics-bind-address",
        value_name = "address",
        default_value = ":9643"
    )]
    pub metrics_bind_addr: String,
    /// Show metrics that distinguish shoots, so that their number grows with that of the shoots.
    /// For the prober.
    #[arg(long, action = ArgAction::Set, value_parser = flag::boolean, default_value = "false")]
    pub metrics_per_shoot: bool,
    /// Where /healthz, /readyz and the status page (/, /statusz, /statusz.json) are served, as
    /// host:port or :port. 0 or nothing serves nothing.
    #[arg(
        long,
        alias = "health-bind-address",
        value_name = "address",
        default_value = ":9644"
    )]
    pub health_bind_addr: String,
    /// Accepted for compatibility. Nothing is served there and no port is opened.
    #[arg(long, value_name = "address", default_value = ":8081")]
    pub pprof_bind_addr: String,
    /// Say and count what would be written, and write nothing: no scaling, no deletion, no Event,
    /// no Lease. Such a replica takes no part in leader election, so that it can run beside others.
    #[arg(long, action = ArgAction::Set, value_parser = flag::boolean, default_value = "false")]
    pub dry_run: bool,
    #[command(flatten)]
    pub leader_election: LeaderElection,
    #[command(flatten)]
    pub zap: ZapOptions,
}

/// How replicas agree on one that works. The numbers are client-go's (rule 6).
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct LeaderElection {
    /// Let several replicas elect a leader. Of the weeder only the leader deletes; the leader of
    /// the prober acts first.
    #[arg(long = "enable-leader-election", action = ArgAction::Set, value_parser = flag::boolean, default_value = "false")]
    pub enabled: bool,
    /// The namespace of the Lease by which the replicas agree.
    #[arg(
        long = "leader-election-namespace",
        value_name = "name",
        default_value = "garden"
    )]
    pub namespace: String,
    /// How long the others wait for a renewal before one of them takes over.
    #[arg(long = "leader-elect-lease-duration", value_name = "duration", value_parser = flag::duration, default_value = "15s")]
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up. At most the lease duration.
    #[arg(long = "leader-elect-renew-deadline", value_name = "duration", value_parser = flag::duration, default_value = "10s")]
    pub renew_deadline: Duration,
    /// The wait between two tries to take or renew the Lease. Less than the renew deadline.
    #[arg(long = "leader-elect-retry-period", value_name = "duration", value_parser = flag::duration, default_value = "2s")]
    pub retry_period: Duration,
}

/// All flags, in the order of the help; both agents have the same.
pub fn command() -> clap::Command {
    let command = clap::Command::new("agent")
        .no_binary_name(true)
        .disable_help_flag(true)
        .args_override_self(true);
    // clap takes the full stop from the end of what is said of a field.
    AgentArgs::augment_args(command).mut_args(|flag| {
        let help = format!("{}.", flag.get_help().cloned().unwrap_or_default());
        flag.help(help)
    })
}

/// A flag's name and its aliases.
pub fn names(flag: &Arg) -> impl Iterator<Item = &str> {
    let aliases = flag.get_aliases().unwrap_or_default();
    flag.get_long().into_iter().chain(aliases)
}

/// Whether a flag may stand alone. Its value, if any, comes after `=`.
pub fn is_switch(flag: &Arg) -> bool {
    flag.get_value_parser().type_id() == TypeId::of::<bool>()
}

/// What the help calls a flag's value.
pub fn takes(flag: &Arg) -> &str {
    flag.get_value_names()
        .and_then(|names| names.first())
        .map_or("", |name| name.as_str())
}

/// What holds without the flag; empty for nothing.
pub fn default(flag: &Arg) -> String {
    flag.get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect()
}

/// client-go's limits, in requests per second and requests (rule 6); what 0 stands for.
const DEFAULT_QPS: f64 = 5.0;
const DEFAULT_BURST: i64 = 10;

impl AgentArgs {
    /// Checks what the syntax cannot, and puts the defaults where 0 asks for them.
    ///
    /// # Errors
    /// The first flag that makes no sense, by its name; the process ends with exit code 1.
    pub fn validate(mut self) -> anyhow::Result<Self> {
        let (qps, burst) = (&mut self.kube_api_qps, &mut self.kube_api_burst);
        ensure!(
            !self.config_file.as_os_str().is_empty(),
            "--config-file is missing: the path of the config file"
        );
        ensure!(
            qps.is_finite() && *qps >= 0.0,
            "--kube-api-qps={qps}: expected a number of at least 0 (0 = default, 5)"
        );
        ensure!(
            *burst >= 0,
            "--kube-api-burst={burst}: expected at least 0 (0 = default, 10)"
        );
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
    fn validate(&self) -> anyhow::Result<()> {
        let lease = ("lease-duration", self.lease_duration);
        let renew = ("renew-deadline", self.renew_deadline);
        let retry = ("retry-period", self.retry_period);
        let shown =
            |(flag, duration)| format!("--leader-elect-{flag}={}", GoDuration::from_std(duration));
        for flag in [lease, renew, retry] {
            ensure!(
                !flag.1.is_zero(),
                "{}: expected a duration above 0",
                shown(flag)
            );
        }
        // A leader would lose the Lease before it gives up.
        ensure!(
            self.renew_deadline <= self.lease_duration,
            "{} is longer than {}",
            shown(renew),
            shown(lease)
        );
        // A leader could not retry.
        ensure!(
            self.retry_period < self.renew_deadline,
            "{} is not shorter than {}",
            shown(retry),
            shown(renew)
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests;
