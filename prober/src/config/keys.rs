//! Every key of the config file: what it takes, its default, what it means.

use common::document::Key;

const fn key(name: &'static str, takes: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key { name, takes, default, meaning }
}

pub const ROOT: &[Key] = &[
    key(
        "kubeConfigSecretName",
        "a name",
        "",
        "The Secret in the shoot's namespace on the seed whose key `kubeconfig` leads to the shoot",
    ),
    key(
        "probeInterval",
        "a duration of at least 1s",
        "10s",
        "The longest wait between two probes; when the verdict could fall earlier, the prober looks then",
    ),
    key("initialDelay", "a duration", "30s", "From the moment a shoot may be probed to the first write"),
    key("probeTimeout", "a duration above 0", "30s", "The longest that a whole probe may take"),
    key(
        "backoffJitterFactor",
        "a number of at least 0",
        "0.2",
        "The wait between probes is stretched by up to this share of itself, so that shoots do not move in step",
    ),
    key(
        "kcmNodeMonitorGraceDuration",
        "a duration above 0",
        "40s",
        "How long kube-controller-manager waits for a lease's renewal before it gives the node up; a shoot's own `nodeMonitorGracePeriod` wins. A lease counts as expired after 0.75 of it",
    ),
    key(
        "nodeLeaseFailureFraction",
        "a number above 0 and at most 1",
        "0.6",
        "The share of candidate leases that must be expired for a scale-down",
    ),
    key(
        "scaleUpStabilization",
        "a duration",
        "0s",
        "How long the leases must be renewed before anything is restored. Not in the Go original",
    ),
    key(
        "restoreOnlyHeldDown",
        "true or false",
        "false",
        "Restore only what the watchdog took down, and not whatever is configured and found at 0. Not in the Go original",
    ),
    key(
        "standbyProtects",
        "true or false",
        "true",
        "Let a replica that does not lead protect when the leader has not acted in time. Not in the Go original",
    ),
    key("dependentResourceInfos", "a list of at least one", "", "What is scaled; no resource twice"),
];

/// An entry of `dependentResourceInfos`.
pub const DEPENDENT: &[Key] = &[
    key("ref", "an object", "", "The resource, in every shoot's namespace on the seed"),
    key("optional", "true or false", "false", "Whether its absence is no error"),
    key("scaleUp", "an object", "", "Its turn when controllers come back"),
    key("scaleDown", "an object", "", "Its turn when controllers are taken down"),
];

/// `ref`.
pub const REF: &[Key] = &[
    key("apiVersion", "`group/version`, or `version`", "", "As in a manifest"),
    key("kind", "a kind with replicas or a scale subresource", "", "As in a manifest"),
    key("name", "a name", "", "The object's name"),
];

/// `scaleUp` and `scaleDown`.
pub const SCALE: &[Key] = &[
    key("level", "a whole number", "0", "Lower levels go first, equal ones together; may be negative"),
    key(
        "initialDelay",
        "a duration",
        "0s",
        "The wait before it is scaled, once its level has begun and only if there is something to scale. In `scaleDown` protection comes that much later",
    ),
    key(
        "timeout",
        "a duration above 0",
        "30s",
        "The longest that its requests may take; on the way down an answer is waited for 5 s at most, then it is asked anew",
    ),
];
