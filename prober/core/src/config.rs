//! Configuration for all shoots of a seed. It serializes as the equivalent config file with every
//! default written out.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use go_compat::duration::GoDuration;
use serde::{Serialize, Serializer};
use strum::EnumString;

use crate::template::Template;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Not blank.
    #[serde(rename = "kubeConfigSecretName")]
    pub kubeconfig_secret_name: String,
    /// At least 1 s.
    #[serde(serialize_with = "as_in_go")]
    pub probe_interval: Duration,
    #[serde(serialize_with = "as_in_go")]
    pub initial_delay: Duration,
    /// Positive.
    #[serde(serialize_with = "as_in_go")]
    pub probe_timeout: Duration,
    /// Not negative.
    pub backoff_jitter_factor: f64,
    /// Positive.
    #[serde(rename = "kcmNodeMonitorGraceDuration", serialize_with = "as_in_go")]
    pub node_monitor_grace: Duration,
    /// In (0, 1].
    pub node_lease_failure_fraction: f64,
    /// Time for which every probe must report "up" before anything is restored.
    #[serde(serialize_with = "as_in_go")]
    pub scale_up_stabilization: Duration,
    /// If false, every dependent found at 0 replicas is scaled up, as the Go original does.
    pub restore_only_held_down: bool,
    /// Lets a standby protect if the leader does not act.
    pub standby_protects: bool,
    pub owner_check: Option<OwnerCheck>,
    /// In file order; not empty, and without duplicates.
    #[serde(rename = "dependentResourceInfos")]
    pub dependents: Vec<Dependent>,
}

impl Config {
    pub fn dependent(&self, id: DependentId) -> &Dependent {
        &self.dependents[id.0]
    }
}

/// Index of a dependent in [`Config::dependents`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DependentId(pub usize);

/// An entry of `dependentResourceInfos`: a resource in the shoot's namespace on the seed that is
/// scaled to 0 in an outage.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependent {
    #[serde(rename = "ref")]
    pub resource: ResourceRef,
    pub optional: bool,
    pub scale_up: ScaleInfo,
    pub scale_down: ScaleInfo,
}

/// The `ref` of a dependent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// A kind such as `Deployment`.
    pub kind: String,
    pub name: String,
}

impl fmt::Display for ResourceRef {
    /// `Deployment/kube-controller-manager`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The `scaleUp` or `scaleDown` of a dependent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleInfo {
    /// May be negative.
    pub level: i32,
    #[serde(serialize_with = "as_in_go")]
    pub initial_delay: Duration,
    /// Positive.
    #[serde(serialize_with = "as_in_go")]
    pub timeout: Duration,
}

/// The `ownerCheck` section. `timeout` is shorter than `interval`, and `tolerance` is at least as
/// long.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerCheck {
    pub name: Template,
    pub value: Template,
    /// The system's resolvers if empty.
    pub servers: Vec<SocketAddr>,
    /// At least 1 s.
    #[serde(serialize_with = "as_in_go")]
    pub interval: Duration,
    /// Positive.
    #[serde(serialize_with = "as_in_go")]
    pub timeout: Duration,
    #[serde(serialize_with = "as_in_go")]
    pub tolerance: Duration,
    pub on_loss: OnLoss,
}

/// The `onLoss` of an owner check.
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
