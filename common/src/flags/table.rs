//! All flags: name, what it takes, where its value is in [`AgentArgs`], and what it means. The parser and the help both read this table.

use super::AgentArgs;
use crate::go_compat::flag::Value;

pub struct Flag {
    /// Without its dashes.
    pub name: &'static str,
    /// Another name for it; the Go original's help names it so, and its parser does not know it (rule 7).
    pub alias: Option<&'static str>,
    /// What the help calls the value; empty for a switch, which needs none.
    pub takes: &'static str,
    pub help: &'static str,
    pub(super) value: fn(&mut AgentArgs) -> &mut dyn Value,
}

const fn flag(name: &'static str, takes: &'static str, value: fn(&mut AgentArgs) -> &mut dyn Value, help: &'static str) -> Flag {
    Flag { name, alias: None, takes, help, value }
}

impl Flag {
    const fn or(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Whether the flag may stand alone. Its value, if any, comes after `=`.
    pub fn is_switch(&self) -> bool {
        self.takes.is_empty()
    }

    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FLAGS.iter().find(|flag| flag.name == name || flag.alias == Some(name))
    }

    pub fn default(&self) -> String {
        (self.value)(&mut AgentArgs::default()).to_text()
    }
}

/// The flags of an agent in the order of the help; both agents have the same.
pub const FLAGS: &[Flag] = &[
    flag("config-file", "path", |args| &mut args.config_file, "The agent's config file (YAML). Required."),
    flag(
        "kubeconfig",
        "path",
        |args| &mut args.kubeconfig,
        "How to reach the seed. Without it: the file named by $KUBECONFIG, the service account of the pod, ~/.kube/config.",
    ),
    flag(
        "kube-api-qps",
        "number",
        |args| &mut args.kube_api_qps,
        "How many writes per second the prober makes to restore, on average; protective writes and all else are not limited, \
               nor is the weeder. 0 means the default.",
    ),
    flag(
        "kube-api-burst",
        "int",
        |args| &mut args.kube_api_burst,
        "How many writes to restore the prober may make at once before the average holds. 0 means the default.",
    ),
    flag(
        "concurrent-reconciles",
        "int",
        |args| &mut args.concurrent_reconciles,
        "Accepted for compatibility. Shoots are worked on independently of each other, without such a limit.",
    ),
    flag(
        "metrics-bind-addr",
        "address",
        |args| &mut args.metrics_bind_addr,
        "Where /metrics is served, as host:port or :port. 0 serves nothing; nothing means :8080.",
    )
    .or("metrics-bind-address"),
    flag(
        "metrics-per-shoot",
        "",
        |args| &mut args.metrics_per_shoot,
        "Show metrics that distinguish shoots, so that their number grows with that of the shoots. For the prober.",
    ),
    flag(
        "health-bind-addr",
        "address",
        |args| &mut args.health_bind_addr,
        "Where /healthz, /readyz and the status page (/, /statusz, /statusz.json) are served, as host:port or :port. \
               0 or nothing serves nothing.",
    )
    .or("health-bind-address"),
    flag(
        "pprof-bind-addr",
        "address",
        |args| &mut args.pprof_bind_addr,
        "Accepted for compatibility. Nothing is served there and no port is opened.",
    ),
    flag(
        "dry-run",
        "",
        |args| &mut args.dry_run,
        "Say and count what would be written, and write nothing: no scaling, no deletion, no Event, no Lease. \
               Such a replica takes no part in leader election, so that it can run beside others.",
    ),
    flag(
        "enable-leader-election",
        "",
        |args| &mut args.leader_election.enabled,
        "Let several replicas elect a leader. Of the weeder only the leader deletes; the leader of the prober acts first.",
    ),
    flag(
        "leader-election-namespace",
        "name",
        |args| &mut args.leader_election.namespace,
        "The namespace of the Lease by which the replicas agree.",
    ),
    flag(
        "leader-elect-lease-duration",
        "duration",
        |args| &mut args.leader_election.lease_duration,
        "How long the others wait for a renewal before one of them takes over.",
    ),
    flag(
        "leader-elect-renew-deadline",
        "duration",
        |args| &mut args.leader_election.renew_deadline,
        "How long the leader tries to renew before it gives up. At most the lease duration.",
    ),
    flag(
        "leader-elect-retry-period",
        "duration",
        |args| &mut args.leader_election.retry_period,
        "The wait between two tries to take or renew the Lease. Less than the renew deadline.",
    ),
    flag(
        "zap-log-level",
        "level",
        |args| &mut args.zap.level,
        "The least severe lines written: debug, info, error, panic, or a number above 0 for ever more detail.",
    ),
    flag(
        "zap-encoder",
        "encoder",
        |args| &mut args.zap.encoder,
        "How lines are written: json or console. With --zap-devel the default is console.",
    ),
    flag(
        "zap-time-encoding",
        "encoding",
        |args| &mut args.zap.time_encoding,
        "How times are written: rfc3339, rfc3339nano, iso8601, epoch, millis or nanos.",
    ),
    flag(
        "zap-stacktrace-level",
        "level",
        |args| &mut args.zap.stacktrace_level,
        "Accepted for compatibility: info, error or panic. Lines carry the chain of causes instead of a stack trace.",
    ),
    flag(
        "zap-devel",
        "",
        |args| &mut args.zap.devel,
        "Write for a person: console lines, none left out however often they repeat.",
    ),
];
