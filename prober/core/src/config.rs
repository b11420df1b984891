//! Configuration for all shoots of a seed, read from the config file, in which each key may be
//! missing or null (rule 20). It serializes as the file with every default written out; the
//! defaults are the Go original's (rule 22). Ranges are checked by those who read a file.

use std::fmt;
use std::net::{AddrParseError, SocketAddr};
use std::time::Duration;

use go_compat::duration::Seconds;
use go_compat::null::null_as_default;
use serde::{Deserialize, Deserializer, Serialize};

use crate::template::{self, Template};

/// Two keys have another spelling in examples of the Go original, which finds keys in any case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Not blank.
    #[serde(rename = "kubeConfigSecretName")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub kubeconfig_secret_name: String,
    /// At least 1 s.
    #[serde(default = "Seconds::<10>::value", with = "Seconds::<10>")]
    pub probe_interval: Duration,
    #[serde(default = "Seconds::<30>::value", with = "Seconds::<30>")]
    pub initial_delay: Duration,
    /// Positive.
    #[serde(default = "Seconds::<30>::value", with = "Seconds::<30>")]
    pub probe_timeout: Duration,
    /// Not negative.
    #[serde(alias = "backOffJitterFactor")]
    #[serde(
        default = "hundredths::<20>",
        deserialize_with = "or_hundredths::<20, _>"
    )]
    pub backoff_jitter_factor: f64,
    /// Positive.
    #[serde(
        rename = "kcmNodeMonitorGraceDuration",
        alias = "kCMNodeMonitorGraceDuration"
    )]
    #[serde(default = "Seconds::<40>::value", with = "Seconds::<40>")]
    pub node_monitor_grace: Duration,
    /// In (0, 1].
    #[serde(
        default = "hundredths::<60>",
        deserialize_with = "or_hundredths::<60, _>"
    )]
    pub node_lease_failure_fraction: f64,
    /// Time for which every probe must report "up" before anything is restored.
    #[serde(default = "Seconds::<0>::value", with = "Seconds::<0>")]
    pub scale_up_stabilization: Duration,
    /// If false, every dependent found at 0 replicas is scaled up, as the Go original does.
    #[serde(default, deserialize_with = "null_as_default")]
    pub restore_only_held_down: bool,
    /// Lets a standby protect if the leader does not act.
    #[serde(default = "on", deserialize_with = "or_on")]
    pub standby_protects: bool,
    pub owner_check: Option<OwnerCheck>,
    /// In file order; not empty, and without duplicates.
    #[serde(rename = "dependentResourceInfos")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub dependents: Vec<Dependent>,
}

fn hundredths<const DEFAULT: u32>() -> f64 {
    f64::from(DEFAULT) / 100.0
}

fn or_hundredths<'de, const DEFAULT: u32, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(hundredths::<DEFAULT>))
}

const fn on() -> bool {
    true
}

fn or_on<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(on))
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependent {
    #[serde(rename = "ref")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub resource: ResourceRef,
    #[serde(default, deserialize_with = "null_as_default")]
    pub optional: bool,
    #[serde(default, deserialize_with = "null_as_default")]
    pub scale_up: ScaleInfo,
    #[serde(default, deserialize_with = "null_as_default")]
    pub scale_down: ScaleInfo,
}

/// The `ref` of a dependent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceRef {
    /// `group/version`, or `version` for the core group.
    #[serde(deserialize_with = "null_as_default")]
    pub api_version: String,
    /// A kind such as `Deployment`.
    #[serde(deserialize_with = "null_as_default")]
    pub kind: String,
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
}

impl fmt::Display for ResourceRef {
    /// `Deployment/kube-controller-manager`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The `scaleUp` or `scaleDown` of a dependent. Its default, without a timeout, is what a file that
/// lacks it has, and is out of range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleInfo {
    /// May be negative.
    #[serde(default, deserialize_with = "null_as_default")]
    pub level: i32,
    #[serde(default = "Seconds::<0>::value", with = "Seconds::<0>")]
    pub initial_delay: Duration,
    /// Positive.
    #[serde(default = "Seconds::<30>::value", with = "Seconds::<30>")]
    pub timeout: Duration,
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
            .map_err(|_: AddrParseError| "expected the address of a DNS server, as 10.0.0.10:53")
    }
}

/// The `onLoss` of an owner check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnLoss {
    StandDown,
    Passivate,
}
