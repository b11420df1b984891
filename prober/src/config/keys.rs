//! Every key of the config file: what it takes, its default (the Go original's where it has the key, rule 22), what it means. The reader,
//! what is shown of a config and docs/configure.md are made of these.

use common::document::Key;

const fn key(name: &'static str, takes: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key { name, takes, default, meaning }
}

pub const KUBECONFIG_SECRET_NAME: Key = key(
    "kubeConfigSecretName",
    "a name",
    "",
    "The Secret in the shoot's namespace on the seed whose key `kubeconfig` leads to the shoot",
);
pub const PROBE_INTERVAL: Key = key(
    "probeInterval",
    "a duration of at least 1s",
    "10s",
    "The longest wait between two probes; when the verdict could fall earlier, the prober looks then",
);
pub const INITIAL_DELAY: Key =
    key("initialDelay", "a duration", "30s", "From the moment a shoot may be probed to the first write");
pub const PROBE_TIMEOUT: Key = key("probeTimeout", "a duration above 0", "30s", "The longest that a whole probe may take");
pub const BACKOFF_JITTER_FACTOR: Key = key(
    "backoffJitterFactor",
    "a number of at least 0",
    "0.2",
    "The wait between probes is stretched by up to this share of itself, so that shoots do not move in step",
);
pub const NODE_MONITOR_GRACE: Key = key(
    "kcmNodeMonitorGraceDuration",
    "a duration above 0",
    "40s",
    "How long kube-controller-manager waits for a lease's renewal before it gives the node up; a shoot's own `nodeMonitorGracePeriod` wins. A lease counts as expired after 0.75 of it",
);
pub const NODE_LEASE_FAILURE_FRACTION: Key = key(
    "nodeLeaseFailureFraction",
    "a number above 0 and at most 1",
    "0.6",
    "The share of candidate leases that must be expired for a scale-down",
);
pub const SCALE_UP_STABILIZATION: Key = key(
    "scaleUpStabilization",
    "a duration",
    "0s",
    "How long the leases must be renewed before anything is restored. Not in the Go original",
);
pub const RESTORE_ONLY_HELD_DOWN: Key = key(
    "restoreOnlyHeldDown",
    "true or false",
    "false",
    "Restore only what the watchdog took down, and not whatever is configured and found at 0. Not in the Go original",
);
pub const STANDBY_PROTECTS: Key = key(
    "standbyProtects",
    "true or false",
    "true",
    "Let a replica that does not lead protect when the leader has not acted in time. Not in the Go original",
);
pub const DEPENDENTS: Key = key("dependentResourceInfos", "a list of at least one", "", "What is scaled; no resource twice");

/// At the top.
pub const ROOT: &[Key] = &[
    KUBECONFIG_SECRET_NAME,
    PROBE_INTERVAL,
    INITIAL_DELAY,
    PROBE_TIMEOUT,
    BACKOFF_JITTER_FACTOR,
    NODE_MONITOR_GRACE,
    NODE_LEASE_FAILURE_FRACTION,
    SCALE_UP_STABILIZATION,
    RESTORE_ONLY_HELD_DOWN,
    STANDBY_PROTECTS,
    DEPENDENTS,
];

pub const RESOURCE: Key = key("ref", "an object", "", "The resource, in every shoot's namespace on the seed");
pub const OPTIONAL: Key = key("optional", "true or false", "false", "Whether its absence is no error");
pub const SCALE_UP: Key = key("scaleUp", "an object", "", "Its turn when controllers come back");
pub const SCALE_DOWN: Key = key("scaleDown", "an object", "", "Its turn when controllers are taken down");

/// An entry of `dependentResourceInfos`.
pub const DEPENDENT: &[Key] = &[RESOURCE, OPTIONAL, SCALE_UP, SCALE_DOWN];

pub const API_VERSION: Key = key("apiVersion", "`group/version`, or `version`", "", "As in a manifest");
pub const KIND: Key = key("kind", "a kind with replicas or a scale subresource", "", "As in a manifest");
pub const NAME: Key = key("name", "a name", "", "The object's name");

/// `ref`.
pub const REF: &[Key] = &[API_VERSION, KIND, NAME];

pub const LEVEL: Key = key("level", "a whole number", "0", "Lower levels go first, equal ones together; may be negative");
pub const SCALE_INITIAL_DELAY: Key = key(
    "initialDelay",
    "a duration",
    "0s",
    "The wait before it is scaled, once its level has begun and only if there is something to scale. In `scaleDown` protection comes that much later",
);
pub const SCALE_TIMEOUT: Key = key(
    "timeout",
    "a duration above 0",
    "30s",
    "The longest that its requests may take; on the way down an answer is waited for 5 s at most, then it is asked anew",
);

/// `scaleUp` and `scaleDown`.
pub const SCALE: &[Key] = &[LEVEL, SCALE_INITIAL_DELAY, SCALE_TIMEOUT];
