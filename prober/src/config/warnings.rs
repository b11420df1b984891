//! Warnings of what a config may say and what will then surprise its author.

use std::time::Duration;

use go_compat::duration::GoDuration;
use prober_core::config::{Config, Dependent, ResourceRef};

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

pub(super) fn of(config: &Config) -> Vec<String> {
    let grace = config.node_monitor_grace;
    let expired = grace.mul_f64(EXPIRED_AT);
    let earliest = LEASE_RENEWAL.mul_f64(RENEWALS_AT_LEAST);
    let mut warnings = Vec::new();
    if expired < earliest {
        let [grace, earliest, renewal] = [grace, earliest, LEASE_RENEWAL].map(GoDuration);
        warnings.push(format!(
            "kcmNodeMonitorGraceDuration: {grace} is so short that the lease of a kubelet with default settings \
             (renewed every {renewal}) counts as expired after {earliest} only: protection may come too late"
        ));
    }
    for (index, dependent) in config.dependents.iter().enumerate() {
        let entry = format!("dependentResourceInfos[{index}]");
        warnings.extend(of_kind(&entry, &dependent.resource));
        warnings.extend(of_delay(&entry, dependent, grace - expired));
    }
    warnings
}

/// D-8: a misspelt kind would otherwise be noticed in an outage only.
fn of_kind(entry: &str, resource: &ResourceRef) -> Option<String> {
    let (api_version, kinds) = SCALABLE
        .iter()
        .find(|(api_version, _)| *api_version == resource.api_version)?;
    let is_known = kinds.contains(&resource.kind.as_str());
    let (kind, kinds) = (&resource.kind, kinds.join(", "));
    (!is_known).then(|| {
        format!(
            "{entry}.ref.kind: {api_version} has no kind {kind:?} that can be scaled (it has {kinds}): \
             {resource} will not be protected"
        )
    })
}

/// D-35: each second waited in a scale-down is a second less until kube-controller-manager marks
/// the nodes Unknown.
fn of_delay(entry: &str, dependent: &Dependent, window: Duration) -> Option<String> {
    let delay = dependent.scale_down.initial_delay;
    let consequence = match delay {
        Duration::ZERO => return None,
        _ if delay >= window => "it comes too late",
        _ => "protection comes that much later",
    };
    let [delay, window] = [delay, window].map(GoDuration);
    Some(format!(
        "{entry}.scaleDown.initialDelay: {delay} of the {window} at most between the verdict and the moment when \
         kube-controller-manager marks the nodes Unknown: {consequence}"
    ))
}
