//! Every key of the config file with the field it is read into: what it takes, its default (the Go
//! original's where it has the key, rule 22), what it means. The config's types, the reader, what
//! is shown of a config and docs/configure.md are made of these tables.

use std::time::Duration;

use common::document::{Key, Object, Value};
use prober_core::config::{Config, Dependent, OwnerCheck, ResourceRef, ScaleInfo};
use prober_core::owner::Template;

use super::read;

const fn key(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key {
        name,
        takes,
        default,
        meaning,
    }
}

/// Reads a type of the config.
pub(super) trait FromObject: Sized {
    /// Every error is noted in the document, `None` says that there was one.
    fn from_object(object: &Object<'_>) -> Option<Self>;
}

/// The keys of a type of the config, and its reader. A row is `field = function of the reader, key,
/// takes, default, meaning`; an empty default says that the key must be there.
macro_rules! object {
    (
        $name:ident by $keys:ident {$(
            $field:ident = $read:ident($($with:expr)?), $key:literal, $takes:literal, $default:literal, $meaning:literal;
        )*}
    ) => {
        pub const $keys: &[Key] = &[$(key($key, $takes, $default, $meaning)),*];

        impl FromObject for $name {
            fn from_object(object: &Object<'_>) -> Option<Self> {
                object.warn_of_unknown($keys);
                // Everything is read before the first `?`, so that all errors are found.
                $(let $field = read::$read(object, key($key, $takes, $default, $meaning) $(, $with)?);)*
                Some(Self { $($field: $field?),* })
            }
        }
    };
}

/// The shortest probe interval accepted: shorter ones would hammer every API server of the seed
/// (D-9).
const SHORTEST_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The same for the owner record: shorter ones would hammer a DNS server that all shoots share.
const SHORTEST_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The smallest duration above 0.
const POSITIVE: Duration = Duration::from_nanos(1);

object! {
    Config by ROOT {
        kubeconfig_secret_name = name("the name of a Secret"), "kubeConfigSecretName", "a name", "",
            "The Secret in the shoot's namespace on the seed whose key `kubeconfig` leads to the shoot";
        probe_interval = duration(SHORTEST_PROBE_INTERVAL), "probeInterval", "a duration of at least 1s", "10s",
            "The longest wait between two probes; when the verdict could fall earlier, the prober looks then";
        initial_delay = duration(Duration::ZERO), "initialDelay", "a duration", "30s",
            "From the moment a shoot may be probed to the first write";
        probe_timeout = duration(POSITIVE), "probeTimeout", "a duration above 0", "30s",
            "The longest that a whole probe may take";
        backoff_jitter_factor = number(|factor| factor.is_finite() && *factor >= 0.0), "backoffJitterFactor",
            "a number of at least 0", "0.2",
            "The wait between probes is stretched by up to this share of itself, so that shoots do not move in step";
        node_monitor_grace = duration(POSITIVE), "kcmNodeMonitorGraceDuration", "a duration above 0", "40s",
            "How long kube-controller-manager waits for a lease's renewal before it gives the node up; a shoot's own `nodeMonitorGracePeriod` wins. A lease counts as expired after 0.75 of it";
        node_lease_failure_fraction = number(|fraction| *fraction > 0.0 && *fraction <= 1.0), "nodeLeaseFailureFraction",
            "a number above 0 and at most 1", "0.6",
            "The share of candidate leases that must be expired for a scale-down";
        scale_up_stabilization = duration(Duration::ZERO), "scaleUpStabilization", "a duration", "0s",
            "How long the leases must be renewed before anything is restored. Not in the Go original";
        restore_only_held_down = or_default(Value::boolean), "restoreOnlyHeldDown", "true or false", "false",
            "Restore only what the watchdog took down, and not whatever is configured and found at 0. Not in the Go original";
        standby_protects = or_default(Value::boolean), "standbyProtects", "true or false", "true",
            "Let a replica that does not lead protect when the leader has not acted in time. Not in the Go original";
        owner_check = owner_check(), "ownerCheck", "an object", "none",
            "Ask a DNS record whose the shoot is, and write nothing for a shoot that is not ours. Not in the Go original";
        dependents = dependents(), "dependentResourceInfos", "a list of at least one", "",
            "What is scaled; no resource twice";
    }
}

object! {
    Dependent by DEPENDENT {
        resource = resource(), "ref", "an object", "", "The resource, in every shoot's namespace on the seed";
        optional = or_default(Value::boolean), "optional", "true or false", "false", "Whether its absence is no error";
        scale_up = scale(), "scaleUp", "an object", "", "Its turn when controllers come back";
        scale_down = scale(), "scaleDown", "an object", "", "Its turn when controllers are taken down";
    }
}

object! {
    ResourceRef by REF {
        api_version = api_version(), "apiVersion", "`group/version`, or `version`", "", "As in a manifest";
        kind = name("a kind, as Deployment"), "kind", "a kind with replicas or a scale subresource", "", "As in a manifest";
        name = name("the name of a resource"), "name", "a name", "", "The object's name";
    }
}

object! {
    ScaleInfo by SCALE {
        level = or_default(Value::integer), "level", "a whole number", "0",
            "Lower levels go first, equal ones together; may be negative";
        initial_delay = duration(Duration::ZERO), "initialDelay", "a duration", "0s",
            "The wait before it is scaled, once its level has begun and only if there is something to scale. In `scaleDown` protection comes that much later";
        timeout = duration(POSITIVE), "timeout", "a duration above 0", "30s",
            "The longest that its requests may take; on the way down an answer is waited for 5 s at most, then it is requested again";
    }
}

object! {
    OwnerCheck by OWNER_CHECK {
        name = template(Template::parse_name), "name", "a DNS name with placeholders", "",
            "The name of the TXT record, as `owner.{{domain}}`";
        value = template(Template::parse), "value", "a text with placeholders", "",
            "What the record says of a shoot that is ours, to the letter, as `{{seed}}`";
        servers = servers(), "servers", "a list of `address:port`", "[]",
            "The DNS servers to ask; none: those of the pod";
        interval = duration(SHORTEST_CHECK_INTERVAL), "interval", "a duration of at least 1s", "30s",
            "The wait between two checks; sooner after one that failed";
        timeout = duration(POSITIVE), "timeout", "a duration above 0 and below `interval`", "2s",
            "The longest that a check may take";
        tolerance = duration(POSITIVE), "tolerance", "a duration of at least `interval`", "5m0s",
            "For how long a record that cannot be resolved changes nothing; then it is as if the shoot were not ours";
        on_loss = on_loss(), "onLoss", "`standDown` or `passivate`", "standDown",
            "What becomes of a shoot that is known to belong elsewhere: nothing is written any more, or its resources are taken to 0 in the order of a scale-down";
    }
}
