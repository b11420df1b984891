//! All flags: name, what it takes, what it means, and how it gets into [`AgentArgs`]. The parser and the help both read this table.

use std::path::PathBuf;

use super::AgentArgs;
use crate::go_compat::duration::GoDuration;
use crate::go_compat::flag;

/// One flag of an agent.
pub(super) struct Flag {
    /// Without its dashes.
    pub(super) name: &'static str,
    /// Another name for it; the reference's help names it so, and its parser does not know it (rule 7).
    pub(super) alias: Option<&'static str>,
    /// What the help calls the value; empty for a switch, which needs none.
    pub(super) takes: &'static str,
    /// One or two sentences.
    pub(super) help: &'static str,
    /// Takes the value over, or says what was expected.
    pub(super) set: fn(&mut AgentArgs, &str) -> Result<(), String>,
    /// The value in words, to show the default by.
    pub(super) show: fn(&AgentArgs) -> String,
}

impl Flag {
    /// Whether the flag may stand alone. Its value, if any, comes after `=`.
    pub(super) fn is_switch(&self) -> bool {
        self.takes.is_empty()
    }

    /// The flag of that name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FLAGS.iter().find(|flag| flag.name == name || flag.alias == Some(name))
    }
}

/// The flags in the order of the help.
pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "config-file",
        alias: None,
        takes: "path",
        help: "The agent's config file (YAML). Required.",
        set: |args, text| {
            args.config_file = PathBuf::from(text);
            Ok(())
        },
        show: |args| args.config_file.display().to_string(),
    },
    Flag {
        name: "kubeconfig",
        alias: None,
        takes: "path",
        help: "How to reach the seed. Without it: the file named by $KUBECONFIG, the service account of the pod, ~/.kube/config.",
        set: |args, text| {
            args.kubeconfig = (!text.is_empty()).then(|| PathBuf::from(text));
            Ok(())
        },
        show: |_| String::new(),
    },
    Flag {
        name: "kube-api-qps",
        alias: None,
        takes: "number",
        help: "How many writes per second the prober makes to restore, on average; protective writes and all else are not limited, \
               nor is the weeder. 0 means the default.",
        set: |args, text| flag::number(text).map(|qps| args.kube_api_qps = qps),
        show: |args| format!("{:?}", args.kube_api_qps),
    },
    Flag {
        name: "kube-api-burst",
        alias: None,
        takes: "int",
        help: "How many writes to restore the prober may make at once before the average holds. 0 means the default.",
        set: |args, text| flag::integer(text).map(|burst| args.kube_api_burst = burst),
        show: |args| args.kube_api_burst.to_string(),
    },
    Flag {
        name: "concurrent-reconciles",
        alias: None,
        takes: "int",
        help: "Accepted for compatibility. Shoots are worked on independently of each other, without such a limit.",
        set: |args, text| flag::integer(text).map(|count| args.concurrent_reconciles = count),
        show: |args| args.concurrent_reconciles.to_string(),
    },
    Flag {
        name: "metrics-bind-addr",
        alias: Some("metrics-bind-address"),
        takes: "address",
        help: "Where /metrics is served, as host:port or :port. 0 serves nothing; nothing means :8080.",
        set: |args, text| set_text(&mut args.metrics_bind_addr, text),
        show: |args| args.metrics_bind_addr.clone(),
    },
    Flag {
        name: "metrics-per-shoot",
        alias: None,
        takes: "",
        help: "Show metrics that tell shoots apart, so that their number grows with that of the shoots. For the prober.",
        set: |args, text| flag::boolean(text).map(|per_shoot| args.metrics_per_shoot = per_shoot),
        show: |args| args.metrics_per_shoot.to_string(),
    },
    Flag {
        name: "health-bind-addr",
        alias: Some("health-bind-address"),
        takes: "address",
        help: "Where /healthz, /readyz and the status page (/, /statusz, /statusz.json) are served, as host:port or :port. \
               0 or nothing serves nothing.",
        set: |args, text| set_text(&mut args.health_bind_addr, text),
        show: |args| args.health_bind_addr.clone(),
    },
    Flag {
        name: "pprof-bind-addr",
        alias: None,
        takes: "address",
        help: "Accepted for compatibility. Nothing is served there and no port is opened.",
        set: |args, text| set_text(&mut args.pprof_bind_addr, text),
        show: |args| args.pprof_bind_addr.clone(),
    },
    Flag {
        name: "dry-run",
        alias: None,
        takes: "",
        help: "Say and count what would be written, and write nothing: no scaling, no deletion, no Event, no Lease. \
               Such a replica takes no part in leader election, so that it can run beside others.",
        set: |args, text| flag::boolean(text).map(|dry_run| args.dry_run = dry_run),
        show: |args| args.dry_run.to_string(),
    },
    Flag {
        name: "enable-leader-election",
        alias: None,
        takes: "",
        help: "Let several replicas elect a leader. Of the weeder only the leader deletes; the leader of the prober acts first.",
        set: |args, text| flag::boolean(text).map(|enabled| args.leader_election.enabled = enabled),
        show: |args| args.leader_election.enabled.to_string(),
    },
    Flag {
        name: "leader-election-namespace",
        alias: None,
        takes: "name",
        help: "The namespace of the Lease by which the replicas agree.",
        set: |args, text| set_text(&mut args.leader_election.namespace, text),
        show: |args| args.leader_election.namespace.clone(),
    },
    Flag {
        name: "leader-elect-lease-duration",
        alias: None,
        takes: "duration",
        help: "How long the others wait for a renewal before one of them takes over.",
        set: |args, text| flag::duration(text).map(|duration| args.leader_election.lease_duration = duration),
        show: |args| GoDuration::from_std(args.leader_election.lease_duration).to_string(),
    },
    Flag {
        name: "leader-elect-renew-deadline",
        alias: None,
        takes: "duration",
        help: "How long the leader tries to renew before it gives up. At most the lease duration.",
        set: |args, text| flag::duration(text).map(|duration| args.leader_election.renew_deadline = duration),
        show: |args| GoDuration::from_std(args.leader_election.renew_deadline).to_string(),
    },
    Flag {
        name: "leader-elect-retry-period",
        alias: None,
        takes: "duration",
        help: "The wait between two tries to take or renew the Lease. Less than the renew deadline.",
        set: |args, text| flag::duration(text).map(|duration| args.leader_election.retry_period = duration),
        show: |args| GoDuration::from_std(args.leader_election.retry_period).to_string(),
    },
    Flag {
        name: "zap-log-level",
        alias: None,
        takes: "level",
        help: "The least severe lines written: debug, info, error, panic, or a number above 0 for ever more detail.",
        set: |args, text| text.parse().map(|level| args.zap.level = level),
        show: |args| args.zap.level.to_string(),
    },
    Flag {
        name: "zap-encoder",
        alias: None,
        takes: "encoder",
        help: "How lines are written: json or console. With --zap-devel the default is console.",
        set: |args, text| text.parse().map(|encoder| args.zap.encoder = Some(encoder)),
        show: |args| args.zap.effective_encoder().to_string(),
    },
    Flag {
        name: "zap-time-encoding",
        alias: None,
        takes: "encoding",
        help: "How times are written: rfc3339, rfc3339nano, iso8601, epoch, millis or nanos.",
        set: |args, text| text.parse().map(|encoding| args.zap.time_encoding = encoding),
        show: |args| args.zap.time_encoding.to_string(),
    },
    Flag {
        name: "zap-stacktrace-level",
        alias: None,
        takes: "level",
        help: "Accepted for compatibility: info, error or panic. Lines carry the chain of causes instead of a stack trace.",
        set: |args, text| text.parse().map(|level| args.zap.stacktrace_level = level),
        show: |args| args.zap.stacktrace_level.to_string(),
    },
    Flag {
        name: "zap-devel",
        alias: None,
        takes: "",
        help: "Write for a person: console lines, none left out however often they repeat.",
        set: |args, text| flag::boolean(text).map(|devel| args.zap.devel = devel),
        show: |args| args.zap.devel.to_string(),
    },
];

fn set_text(target: &mut String, text: &str) -> Result<(), String> {
    text.clone_into(target);
    Ok(())
}
