//! What is set for all shoots of a seed. It serializes as the config file that says the same, with
//! every default written out.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use common_core::duration::GoDuration;
use serde::{Serialize, Serializer};
use strum::EnumString;

use crate::template::Template;

/// What stands at the top.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Never blank.
    #[serde(rename = "kubeConfigSecretName")]
    pub kubeconfig_secret_name: String,
    /// At least 1 s (decisions, "Life cycle").
    #[serde(serialize_with = "as_in_go")]
    pub probe_interval: Duration,
    #[serde(serialize_with = "as_in_go")]
    pub initial_delay: Duration,
    /// Above 0.
    #[serde(serialize_with = "as_in_go")]
    pub probe_timeout: Duration,
    /// 0 or more.
    pub backoff_jitter_factor: f64,
    /// Above 0.
    #[serde(rename = "kcmNodeMonitorGraceDuration", serialize_with = "as_in_go")]
    pub node_monitor_grace: Duration,
    /// In (0, 1].
    pub node_lease_failure_fraction: f64,
    /// How long every probe must say "up" before anything is restored (D-22).
    #[serde(serialize_with = "as_in_go")]
    pub scale_up_stabilization: Duration,
    /// Where this is false, whatever is configured and found at 0 is restored, as the Go original
    /// does (rule 63).
    pub restore_only_held_down: bool,
    /// Whether a replica that does not lead protects when the leader does not act (D-50).
    pub standby_protects: bool,
    pub owner_check: Option<OwnerCheck>,
    /// In the file's order; at least one, no resource twice.
    #[serde(rename = "dependentResourceInfos")]
    pub dependents: Vec<Dependent>,
}

impl Config {
    pub fn dependent(&self, id: DependentId) -> &Dependent {
        &self.dependents[id.0]
    }
}

/// The place of a dependent in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DependentId(pub usize);

/// A resource in the shoot's namespace on the seed that is scaled to 0 in an outage: an entry of
/// `dependentResourceInfos`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependent {
    #[serde(rename = "ref")]
    pub resource: ResourceRef,
    pub optional: bool,
    pub scale_up: ScaleInfo,
    pub scale_down: ScaleInfo,
}

/// `ref`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// The kind, as `Deployment`.
    pub kind: String,
    pub name: String,
}

impl fmt::Display for ResourceRef {
    /// `Deployment/kube-controller-manager`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// `scaleUp` and `scaleDown`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleInfo {
    /// May be negative (rule 19).
    pub level: i32,
    #[serde(serialize_with = "as_in_go")]
    pub initial_delay: Duration,
    /// Above 0.
    #[serde(serialize_with = "as_in_go")]
    pub timeout: Duration,
}

/// `ownerCheck`: `timeout` is shorter than `interval`, and `tolerance` no shorter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerCheck {
    pub name: Template,
    pub value: Template,
    /// Those of the system where it is empty.
    pub servers: Vec<SocketAddr>,
    /// At least 1 s.
    #[serde(serialize_with = "as_in_go")]
    pub interval: Duration,
    /// Above 0.
    #[serde(serialize_with = "as_in_go")]
    pub timeout: Duration,
    #[serde(serialize_with = "as_in_go")]
    pub tolerance: Duration,
    pub on_loss: OnLoss,
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
