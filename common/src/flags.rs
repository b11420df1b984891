//! The flags of an agent (rules 5 to 8).
//!
//! Operators' Deployments are written for Go's `flag` package: a switch takes its value only after
//! `=`, the last repetition wins, and the first word that is no flag ends the flags. Each is a
//! setting of clap's here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{ArgAction, Args, Parser, ValueEnum};
use go_compat::flag;
use strum::IntoStaticStr;

use crate::logging::ZapOptions;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, ValueEnum)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Agent {
    Prober,
    Weeder,
}

impl Agent {
    pub const fn name(self) -> &'static str {
        self.into_str()
    }
}

/// The flags of an agent; both have the same.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(
    args_override_self = true,
    next_line_help = true,
    after_help = "--flag=value or --flag value; a switch takes its value only after \"=\". Flags end at the first word that is \
none.\nDurations are written as 300ms, 15s, 1m30s, 2h."
)]
pub struct AgentArgs {
    /// The agent's config file (YAML). Required
    #[arg(long, value_name = "path")]
    pub config_file: PathBuf,
    /// The kubeconfig of the seed. Without it: the file named by $KUBECONFIG, the service account of
    /// the pod, ~/.kube/config
    #[arg(long, value_name = "path", value_parser = str::parse::<PathBuf>)]
    pub kubeconfig: Option<PathBuf>,
    /// Writes per second with which the prober restores, on average; protective writes and all else
    /// are not limited, nor is the weeder. 0 means the default
    #[arg(long, value_name = "number", default_value = "5.0")]
    pub kube_api_qps: f64,
    /// Writes to restore that the prober may make at once before the average holds. 0 means the
    /// default
    #[arg(long, value_name = "int", default_value_t = DEFAULT_BURST)]
    pub kube_api_burst: u32,
    /// Accepted for compatibility. Shoots are worked on independently of each other, without such a
    /// limit
    #[arg(long, value_name = "int", default_value = "1")]
    pub concurrent_reconciles: i64,
    /// Address of /metrics, as host:port or :port. 0 serves nothing; nothing means :8080
    #[arg(
        long,
        visible_alias = "metrics-bind-address",
        value_name = "address",
        default_value = ":9643"
    )]
    pub metrics_bind_addr: String,
    /// Accepted for compatibility. /statusz.json shows each shoot
    #[arg(long, action = ArgAction::Set, value_name = "bool", value_parser = flag::boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub metrics_per_shoot: bool,
    /// Address of /healthz, /readyz and the status page (/, /statusz, /statusz.json), as host:port
    /// or :port. 0 or nothing serves nothing
    #[arg(
        long,
        visible_alias = "health-bind-address",
        value_name = "address",
        default_value = ":9644"
    )]
    pub health_bind_addr: String,
    /// Accepted for compatibility. Nothing is served there and no port is opened
    #[arg(long, value_name = "address", default_value = ":8081")]
    pub pprof_bind_addr: String,
    /// Say and count what would be written, and write nothing: no scaling, no deletion, no Event,
    /// no Lease. Such a replica takes no part in leader election, so that it can run beside others
    #[arg(long, action = ArgAction::Set, value_name = "bool", value_parser = flag::boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub dry_run: bool,
    #[command(flatten)]
    pub leader_election: LeaderElection,
    #[command(flatten)]
    pub zap: ZapOptions,
    /// Words behind the flags, which Go's programs ignore
    #[arg(hide = true, trailing_var_arg = true)]
    ignored: Vec<OsString>,
}

/// Election of the replica that works. The numbers are client-go's (rule 6).
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct LeaderElection {
    /// Let several replicas elect a leader. Of the weeder only the leader deletes; the leader of
    /// the prober acts first
    #[arg(long = "enable-leader-election", action = ArgAction::Set, value_name = "bool", value_parser = flag::boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enabled: bool,
    /// The namespace of the Lease by which the replicas agree
    #[arg(
        long = "leader-election-namespace",
        value_name = "name",
        default_value = "garden"
    )]
    pub namespace: String,
    /// Wait of the others for a renewal before one of them takes over
    #[arg(long = "leader-elect-lease-duration", value_name = "duration", value_parser = flag::duration, default_value = "15s")]
    pub lease_duration: Duration,
    /// Time for which the leader tries to renew before it gives up. At most the lease duration
    #[arg(long = "leader-elect-renew-deadline", value_name = "duration", value_parser = flag::duration, default_value = "10s")]
    pub renew_deadline: Duration,
    /// Wait between two tries to take or renew the Lease. Less than the renew deadline
    #[arg(long = "leader-elect-retry-period", value_name = "duration", value_parser = flag::duration, default_value = "2s")]
    pub retry_period: Duration,
}

/// client-go's limits, in requests per second and requests (rule 6); what 0 stands for.
const DEFAULT_QPS: f64 = 5.0;
const DEFAULT_BURST: u32 = 10;

impl AgentArgs {
    /// Checks what the syntax cannot, and puts the defaults where 0 asks for them.
    ///
    /// # Errors
    /// The first flag that makes no sense, by its name; the process ends with exit code 1.
    pub fn validate(mut self) -> anyhow::Result<Self> {
        let qps = self.kube_api_qps;
        ensure!(
            qps.is_finite() && qps >= 0.0,
            "--kube-api-qps={qps}: expected a number of at least 0 (0 = default, 5)"
        );
        if qps == 0.0 {
            self.kube_api_qps = DEFAULT_QPS;
        }
        if self.kube_api_burst == 0 {
            self.kube_api_burst = DEFAULT_BURST;
        }
        if self.leader_election.enabled {
            self.leader_election.validate()?;
        }
        Ok(self)
    }
}

impl LeaderElection {
    fn validate(&self) -> anyhow::Result<()> {
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        ensure!(
            !retry.is_zero(),
            "--leader-elect-retry-period={retry:?}: expected a duration above 0"
        );
        // A leader would lose the Lease before it gives up.
        ensure!(
            renew <= lease,
            "--leader-elect-renew-deadline={renew:?} is longer than --leader-elect-lease-duration={lease:?}"
        );
        // A leader could not retry.
        ensure!(
            retry < renew,
            "--leader-elect-retry-period={retry:?} is not shorter than --leader-elect-renew-deadline={renew:?}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests;
