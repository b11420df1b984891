//! What a config may say, and what will then surprise its author.

use std::time::Duration;

use common::document::ConfigValue;
use go_compat::duration::GoDuration;
use prober_core::config::{Config, Dependent};

/// A kubelet renews its lease every quarter of leaseDurationSeconds, which is 40 s by default.
const LEASE_RENEWAL: Duration = Duration::from_secs(10);

/// The share of the grace after which a lease counts as expired (rule 47), and how many renewals
/// must fit in it (D-79).
const EXPIRED_AT: f64 = 0.75;
const RENEWALS_AT_LEAST: f64 = 1.5;

/// The kinds that can be scaled in the API groups every cluster has. Others are custom resources
/// and not known here.
const SCALABLE: [(&str, &[&str]); 2] = [
    ("apps/v1", &["Deployment", "StatefulSet", "ReplicaSet"]),
    ("v1", &["ReplicationController"]),
];

pub(super) fn warn(config: &Config, root: &ConfigValue<'_>) {
    let grace = config.node_monitor_grace;
    let expired = grace.mul_f64(EXPIRED_AT);
    let earliest = LEASE_RENEWAL.mul_f64(RENEWALS_AT_LEAST);
    if expired < earliest {
        let [grace, earliest, renewal] = [grace, earliest, LEASE_RENEWAL].map(GoDuration::from_std);
        root.warn(format!(
            "kcmNodeMonitorGraceDuration: {grace} is so short that the lease of a kubelet with default settings \
             (renewed every {renewal}) counts as expired after {earliest} only: protection may come too late"
        ));
    }
    for (index, dependent) in config.dependents.iter().enumerate() {
        let entry = format!("dependentResourceInfos[{index}]");
        warn_of_kind(&entry, dependent, root);
        warn_of_delay(&entry, dependent, grace - expired, root);
    }
}

/// D-8: a misspelt kind would otherwise be noticed in an outage only.
fn warn_of_kind(entry: &str, dependent: &Dependent, root: &ConfigValue<'_>) {
    let resource = &dependent.resource;
    let known = SCALABLE
        .iter()
        .find(|(api_version, _)| *api_version == resource.api_version);
    if let Some((api_version, kinds)) = known
        && !kinds.contains(&resource.kind.as_str())
    {
        let kinds = kinds.join(", ");
        root.warn(format!(
            "{entry}.ref.kind: {api_version} has no kind {:?} that can be scaled (it has {kinds}): \
             {resource} will not be protected",
            resource.kind,
        ));
    }
}

/// D-35: each second waited in a scale-down is a second less until kube-controller-manager marks
/// the nodes Unknown.
fn warn_of_delay(entry: &str, dependent: &Dependent, window: Duration, root: &ConfigValue<'_>) {
    let delay = dependent.scale_down.initial_delay;
    if delay.is_zero() {
        return;
    }
    let consequence = if delay >= window {
        "it comes too late"
    } else {
        "protection comes that much later"
    };
    let [delay, window] = [delay, window].map(GoDuration::from_std);
    root.warn(format!(
        "{entry}.scaleDown.initialDelay: {delay} of the {window} at most between the verdict and the moment when \
         kube-controller-manager marks the nodes Unknown: {consequence}"
    ));
}
