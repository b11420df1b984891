//! Configuration for all shoots of a seed, as the config file has it. It serializes as the file with
//! every default written out; the defaults are the Go original's (rule 22). Ranges are checked by
//! those who read a file.

use std::fmt;
use std::net::{AddrParseError, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::template::{self, Template};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Config {
    /// Not blank.
    #[serde(rename = "kubeConfigSecretName")]
    pub kubeconfig_secret_name: String,
    /// At least 1 s.
    #[serde(with = "go_compat::duration")]
    pub probe_interval: Duration,
    #[serde(with = "go_compat::duration")]
    pub initial_delay: Duration,
    /// Positive.
    #[serde(with = "go_compat::duration")]
    pub probe_timeout: Duration,
    /// Not negative.
    pub backoff_jitter_factor: f64,
    /// Positive.
    #[serde(rename = "kcmNodeMonitorGraceDuration", with = "go_compat::duration")]
    pub node_monitor_grace: Duration,
    /// In (0, 1].
    pub node_lease_failure_fraction: f64,
    /// Time for which every probe must report "up" before anything is restored.
    #[serde(with = "go_compat::duration")]
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

impl Default for Config {
    fn default() -> Self {
        Self {
            kubeconfig_secret_name: String::new(),
            probe_interval: Duration::from_secs(10),
            initial_delay: Duration::from_secs(30),
            probe_timeout: Duration::from_secs(30),
            backoff_jitter_factor: 0.2,
            node_monitor_grace: Duration::from_secs(40),
            node_lease_failure_fraction: 0.6,
            scale_up_stabilization: Duration::ZERO,
            restore_only_held_down: false,
            standby_protects: true,
            owner_check: None,
            dependents: Vec::new(),
        }
    }
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Dependent {
    #[serde(rename = "ref")]
    pub resource: ResourceRef,
    pub optional: bool,
    pub scale_up: ScaleInfo,
    pub scale_down: ScaleInfo,
}

/// The `ref` of a dependent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaleInfo {
    /// May be negative.
    pub level: i32,
    #[serde(with = "go_compat::duration")]
    pub initial_delay: Duration,
    /// Positive.
    #[serde(with = "go_compat::duration")]
    pub timeout: Duration,
}

impl Default for ScaleInfo {
    fn default() -> Self {
        Self {
            level: 0,
            initial_delay: Duration::ZERO,
            timeout: Duration::from_secs(30),
        }
    }
}

/// The `ownerCheck` section. `timeout` is shorter than `interval`, and `tolerance` is at least as
/// long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerCheck {
    #[serde(deserialize_with = "template::name")]
    pub name: Template,
    #[serde(deserialize_with = "template::text")]
    pub value: Template,
    /// The system's resolvers if empty.
    pub servers: Vec<DnsServer>,
    /// At least 1 s.
    #[serde(with = "go_compat::duration")]
    pub interval: Duration,
    /// Positive.
    #[serde(with = "go_compat::duration")]
    pub timeout: Duration,
    #[serde(with = "go_compat::duration")]
    pub tolerance: Duration,
    pub on_loss: OnLoss,
}

impl Default for OwnerCheck {
    fn default() -> Self {
        Self {
            name: Template::default(),
            value: Template::default(),
            servers: Vec::new(),
            interval: Duration::from_secs(30),
            timeout: Duration::from_secs(2),
            tolerance: Duration::from_secs(300),
            on_loss: OnLoss::StandDown,
        }
    }
}

/// Address of a DNS server. The port is DNS' own, 53, where none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct DnsServer(pub SocketAddr);

impl TryFrom<String> for DnsServer {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let address = text
            .parse()
            .or_else(|_| Ok(SocketAddr::new(text.parse()?, 53)));
        address
            .map(Self)
            .map_err(|_: AddrParseError| "the address of a DNS server, as 10.0.0.10:53")
    }
}

/// The `onLoss` of an owner check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnLoss {
    StandDown,
    Passivate,
}
