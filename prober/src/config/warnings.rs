//! Warnings of what a config may say and what will then surprise its author.

use std::time::Duration;

use prober_core::config::{Config, Dependent};

/// Share of the grace after which a lease counts as expired (rule 47), and the earliest that one of
/// a kubelet with default settings does, after one and a half of its renewals (D-79).
const EXPIRED_AT: f64 = 0.75;
const EARLIEST: Duration = Duration::from_secs(15);

/// Kinds of `apps/v1` that can be scaled. Other groups have custom resources, not known here.
const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "ReplicaSet"];

pub(super) fn of(config: &Config) -> Vec<String> {
    let grace = config.node_monitor_grace;
    let expiry = grace.mul_f64(EXPIRED_AT);
    let mut warnings = Vec::new();
    if expiry < EARLIEST {
        warnings.push(format!(
            "kcmNodeMonitorGraceDuration: {grace:?} is so short that the lease of a kubelet with default settings \
             counts as expired after {EARLIEST:?} only: protection may come too late"
        ));
    }
    for (index, dependent) in config.dependents.iter().enumerate() {
        let Dependent {
            resource,
            scale_down,
            ..
        } = dependent;
        let (entry, kind) = (format!("dependentResourceInfos[{index}]"), &resource.kind);
        // D-8: a misspelt kind would otherwise be noticed in an outage only.
        if resource.api_version == "apps/v1" && !KINDS.contains(&kind.as_str()) {
            warnings.push(format!(
                "{entry}.ref.kind: {kind:?} is none of {KINDS:?}: it will not be protected"
            ));
        }
        // D-35: a scale-down has no more time than this.
        let (delay, window) = (scale_down.initial_delay, grace.saturating_sub(expiry));
        if !delay.is_zero() {
            warnings.push(format!(
                "{entry}.scaleDown.initialDelay: protection comes {delay:?} later, of the {window:?} at most until \
                 kube-controller-manager marks the nodes Unknown"
            ));
        }
    }
    warnings
}
