//! Every key of the config file with the field it is read into: what it takes, its default (the Go original's where it has the key, rule
//! 22), what it means. The config's types, the reader, what is shown of a config and docs/configure.md are made of these tables.

use std::net::SocketAddr;
use std::time::Duration;

use common::document::{Key, Object, Value};
use common::go_compat::duration::GoDuration;
use serde::{Serialize, Serializer};
use strum::EnumString;

use super::read;
use crate::core::owner::Template;

const fn key(name: &'static str, takes: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key { name, takes, default, meaning }
}

/// A type of the config, its keys and its reader. A row is `field: type = function of the reader, key, takes, default, meaning`; an empty
/// default says that the key must be there.
macro_rules! object {
    (
        $(#[$about:meta])*
        $name:ident by $keys:ident {$(
            $(#[$about_field:meta])*
            $field:ident: $type:ty = $read:ident($($with:expr)?), $key:literal, $takes:literal, $default:literal, $meaning:literal;
        )*}
    ) => {
        pub const $keys: &[Key] = &[$(key($key, $takes, $default, $meaning)),*];

        $(#[$about])*
        #[derive(Serialize)]
        pub struct $name {$(
            $(#[$about_field])*
            #[serde(rename = $key)]
            pub $field: $type,
        )*}

        impl $name {
            /// Every error is noted in the document, `None` says that there was one.
            pub(super) fn from_object(object: &Object<'_>) -> Option<Self> {
                object.warn_of_unknown($keys);
                // Everything is read before the first `?`, so that all errors are found.
                $(let $field = read::$read(object, key($key, $takes, $default, $meaning) $(, $with)?);)*
                Some(Self { $($field: $field?),* })
            }
        }
    };
}

/// The shortest probe interval accepted: shorter ones would hammer every API server of the seed (D-9).
const SHORTEST_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The same for the owner record: shorter ones would hammer a DNS server that all shoots share.
const SHORTEST_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The smallest duration above 0.
const POSITIVE: Duration = Duration::from_nanos(1);

object! {
    /// What stands at the top.
    #[derive(Clone, Debug, PartialEq)]
    Config by ROOT {
        /// Never blank.
        kubeconfig_secret_name: String = name("the name of a Secret"), "kubeConfigSecretName", "a name", "",
            "The Secret in the shoot's namespace on the seed whose key `kubeconfig` leads to the shoot";
        /// At least 1 s (decisions, "Life cycle").
        #[serde(serialize_with = "as_in_go")]
        probe_interval: Duration = duration(SHORTEST_PROBE_INTERVAL), "probeInterval", "a duration of at least 1s", "10s",
            "The longest wait between two probes; when the verdict could fall earlier, the prober looks then";
        #[serde(serialize_with = "as_in_go")]
        initial_delay: Duration = duration(Duration::ZERO), "initialDelay", "a duration", "30s",
            "From the moment a shoot may be probed to the first write";
        /// Above 0.
        #[serde(serialize_with = "as_in_go")]
        probe_timeout: Duration = duration(POSITIVE), "probeTimeout", "a duration above 0", "30s",
            "The longest that a whole probe may take";
        /// 0 or more.
        backoff_jitter_factor: f64 = number(|factor| factor.is_finite() && *factor >= 0.0), "backoffJitterFactor",
            "a number of at least 0", "0.2",
            "The wait between probes is stretched by up to this share of itself, so that shoots do not move in step";
        /// Above 0.
        #[serde(serialize_with = "as_in_go")]
        node_monitor_grace: Duration = duration(POSITIVE), "kcmNodeMonitorGraceDuration", "a duration above 0", "40s",
            "How long kube-controller-manager waits for a lease's renewal before it gives the node up; a shoot's own `nodeMonitorGracePeriod` wins. A lease counts as expired after 0.75 of it";
        /// In (0, 1].
        node_lease_failure_fraction: f64 = number(|fraction| *fraction > 0.0 && *fraction <= 1.0), "nodeLeaseFailureFraction",
            "a number above 0 and at most 1", "0.6",
            "The share of candidate leases that must be expired for a scale-down";
        /// D-22.
        #[serde(serialize_with = "as_in_go")]
        scale_up_stabilization: Duration = duration(Duration::ZERO), "scaleUpStabilization", "a duration", "0s",
            "How long the leases must be renewed before anything is restored. Not in the Go original";
        /// Where this is false, whatever is configured and found at 0 is restored, as the Go original does (rule 63).
        restore_only_held_down: bool = or_default(Value::boolean), "restoreOnlyHeldDown", "true or false", "false",
            "Restore only what the watchdog took down, and not whatever is configured and found at 0. Not in the Go original";
        /// D-50.
        standby_protects: bool = or_default(Value::boolean), "standbyProtects", "true or false", "true",
            "Let a replica that does not lead protect when the leader has not acted in time. Not in the Go original";
        owner_check: Option<OwnerCheck> = owner_check(), "ownerCheck", "an object", "none",
            "Ask a DNS record whose the shoot is, and write nothing for a shoot that is not ours. Not in the Go original";
        /// In the file's order; at least one, no resource twice.
        dependents: Vec<Dependent> = dependents(), "dependentResourceInfos", "a list of at least one", "",
            "What is scaled; no resource twice";
    }
}

object! {
    /// A resource in the shoot's namespace on the seed that is scaled to 0 in an outage: an entry of `dependentResourceInfos`.
    #[derive(Clone, Debug, PartialEq)]
    Dependent by DEPENDENT {
        resource: ResourceRef = resource(), "ref", "an object", "", "The resource, in every shoot's namespace on the seed";
        optional: bool = or_default(Value::boolean), "optional", "true or false", "false", "Whether its absence is no error";
        scale_up: ScaleInfo = scale(), "scaleUp", "an object", "", "Its turn when controllers come back";
        scale_down: ScaleInfo = scale(), "scaleDown", "an object", "", "Its turn when controllers are taken down";
    }
}

object! {
    /// `ref`.
    #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    ResourceRef by REF {
        /// `group/version`, or `version` for the core group.
        api_version: String = api_version(), "apiVersion", "`group/version`, or `version`", "", "As in a manifest";
        /// The kind, as `Deployment`.
        kind: String = name("a kind, as Deployment"), "kind", "a kind with replicas or a scale subresource", "", "As in a manifest";
        name: String = name("the name of a resource"), "name", "a name", "", "The object's name";
    }
}

object! {
    /// `scaleUp` and `scaleDown`.
    #[derive(Clone, Debug, PartialEq)]
    ScaleInfo by SCALE {
        /// May be negative (rule 19).
        level: i32 = or_default(Value::integer), "level", "a whole number", "0",
            "Lower levels go first, equal ones together; may be negative";
        #[serde(serialize_with = "as_in_go")]
        initial_delay: Duration = duration(Duration::ZERO), "initialDelay", "a duration", "0s",
            "The wait before it is scaled, once its level has begun and only if there is something to scale. In `scaleDown` protection comes that much later";
        /// Above 0.
        #[serde(serialize_with = "as_in_go")]
        timeout: Duration = duration(POSITIVE), "timeout", "a duration above 0", "30s",
            "The longest that its requests may take; on the way down an answer is waited for 5 s at most, then it is requested again";
    }
}

object! {
    /// `ownerCheck`: `timeout` is shorter than `interval`, and `tolerance` no shorter.
    #[derive(Clone, Debug, PartialEq)]
    OwnerCheck by OWNER_CHECK {
        name: Template = template(Template::parse_name), "name", "a DNS name with placeholders", "",
            "The name of the TXT record, as `owner.{{domain}}`";
        value: Template = template(Template::parse), "value", "a text with placeholders", "",
            "What the record says of a shoot that is ours, to the letter, as `{{seed}}`";
        /// Those of the system where it is empty.
        servers: Vec<SocketAddr> = servers(), "servers", "a list of `address:port`", "[]",
            "The DNS servers to ask; none: those of the pod";
        /// At least 1 s.
        #[serde(serialize_with = "as_in_go")]
        interval: Duration = duration(SHORTEST_CHECK_INTERVAL), "interval", "a duration of at least 1s", "30s",
            "The wait between two checks; sooner after one that failed";
        /// Above 0.
        #[serde(serialize_with = "as_in_go")]
        timeout: Duration = duration(POSITIVE), "timeout", "a duration above 0 and below `interval`", "2s",
            "The longest that a check may take";
        #[serde(serialize_with = "as_in_go")]
        tolerance: Duration = duration(POSITIVE), "tolerance", "a duration of at least `interval`", "5m0s",
            "For how long a record that cannot be resolved changes nothing; then it is as if the shoot were not ours";
        on_loss: OnLoss = on_loss(), "onLoss", "`standDown` or `passivate`", "standDown",
            "What becomes of a shoot that is known to belong elsewhere: nothing is written any more, or its resources are taken to 0 in the order of a scale-down";
    }
}

/// `onLoss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, Serialize)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum OnLoss {
    StandDown,
    Passivate,
}

fn as_in_go<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&GoDuration::from_std(*duration))
}
