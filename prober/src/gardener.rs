//! Gardener's types, pruned to what is read here. Unknown fields are skipped; a wrong type is an error for that object alone.

pub(crate) mod object;

use chrono::TimeDelta;
use common::go_compat::duration::{GoDuration, GoDurationError};
use common::pruned::null_as_default;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

pub(crate) use self::object::Object;
use self::object::{object, object_or_default};

/// `extensions.gardener.cloud/v1alpha1` Cluster: one per shoot; its name is the shoot's namespace on the seed.
#[derive(Clone, Debug, Deserialize)]
pub struct Cluster {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ClusterSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct ClusterSpec {
    /// The embedded shoot, absent, or why it cannot be understood.
    #[serde(default, deserialize_with = "embedded_shoot")]
    pub shoot: Option<Result<Shoot, String>>,
    /// The embedded Seed: the one that this Cluster is on.
    #[serde(default, deserialize_with = "embedded_seed")]
    pub seed: SeedRef,
}

/// What is read of a Seed; none where it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedRef {
    pub name: Option<String>,
    pub uid: Option<String>,
}

fn embedded_shoot<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Result<Shoot, String>>, D::Error> {
    let raw = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(raw.map(|raw| Object::deserialize(raw).map(|Object(shoot)| shoot).map_err(|error| shortened(&error.to_string()))))
}

/// Nothing else of the Seed is read, and one that cannot be understood harms no shoot.
fn embedded_seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SeedRef, D::Error> {
    let seed = Option::<serde_json::Value>::deserialize(deserializer)?.unwrap_or_default();
    let text = |path| seed.pointer(path).and_then(serde_json::Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(SeedRef { name: text("/metadata/name"), uid: text("/metadata/uid") })
}

/// The domain of the address that is called `internal`, without its scheme and `api.`. Nothing else of the addresses is read, and what
/// cannot be understood harms no shoot.
fn internal_domain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let addresses = Option::<serde_json::Value>::deserialize(deserializer)?.unwrap_or_default();
    let internal = addresses.as_array().into_iter().flatten().find(|address| address["name"] == "internal");
    let host = internal.and_then(|address| address["url"].as_str()?.strip_prefix("https://"));
    let host = host.map(|host| host.trim_end_matches('/'));
    let domain = host.and_then(|host| host.strip_prefix("api.")).filter(|domain| !domain.is_empty());
    Ok(domain.map(str::to_owned))
}

/// An error's first words: serde repeats a value of the wrong type in full, whatever its length.
fn shortened(error: &str) -> String {
    const SHOWN: usize = 200;
    error.chars().take(SHOWN).collect()
}

/// `core.gardener.cloud/v1beta1` Shoot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Shoot {
    #[serde(rename = "apiVersion", deserialize_with = "null_as_default")]
    _api_version: String,
    #[serde(rename = "kind", deserialize_with = "null_as_default")]
    _kind: String,
    #[serde(deserialize_with = "object_or_default")]
    pub metadata: ShootMetadata,
    #[serde(deserialize_with = "object_or_default")]
    pub spec: ShootSpec,
    #[serde(deserialize_with = "object_or_default")]
    pub status: ShootStatus,
}

impl Shoot {
    /// The name of the seed whose gardenlet, and whose watchdog, looks after it (Gardener's GetResponsibleSeedName): while its control
    /// plane moves that is the one that it moves from. None where none is named.
    pub fn responsible_seed(&self) -> Option<&str> {
        let names = [&self.status.seed_name, &self.spec.seed_name];
        names.into_iter().flatten().map(String::as_str).find(|name| !name.is_empty())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShootMetadata {
    pub deletion_timestamp: Option<chrono::DateTime<chrono::Utc>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShootSpec {
    #[serde(deserialize_with = "object_or_default")]
    hibernation: Hibernation,
    #[serde(deserialize_with = "object_or_default")]
    kubernetes: Kubernetes,
    #[serde(deserialize_with = "object_or_default")]
    pub provider: Provider,
    pub seed_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Hibernation {
    enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Kubernetes {
    #[serde(deserialize_with = "object_or_default")]
    kube_controller_manager: KubeControllerManager,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KubeControllerManager {
    #[serde(deserialize_with = "positive_go_duration")]
    node_monitor_grace_period: Option<TimeDelta>,
}

impl ShootSpec {
    /// `hibernation.enabled`; absent is false.
    pub fn hibernation_enabled(&self) -> bool {
        self.hibernation.enabled.unwrap_or(false)
    }

    pub fn node_monitor_grace(&self) -> Option<TimeDelta> {
        self.kubernetes.kube_controller_manager.node_monitor_grace_period
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Provider {
    #[serde(deserialize_with = "objects")]
    pub workers: Vec<Worker>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Worker {
    /// The pool's name, which its nodes carry as a label.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(deserialize_with = "object")]
    pub machine_controller_manager: Option<MachineControllerManager>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineControllerManager {
    #[serde(deserialize_with = "items")]
    pub node_conditions: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShootStatus {
    #[serde(rename = "hibernated", deserialize_with = "null_as_default")]
    pub is_hibernated: bool,
    #[serde(deserialize_with = "object")]
    pub last_operation: Option<LastOperation>,
    pub seed_name: Option<String>,
    #[serde(rename = "advertisedAddresses", deserialize_with = "internal_domain")]
    pub internal_domain: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LastOperation {
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: OperationType,
    #[serde(deserialize_with = "null_as_default")]
    pub state: OperationState,
    pub last_update_time: Option<chrono::DateTime<chrono::Utc>>,
}

/// `lastOperation.type`. Words that are new to us start nothing and stop nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OperationType {
    Create,
    Reconcile,
    Migrate,
    /// The control plane moves and stays at work meanwhile (GEP-39).
    LiveMigrate,
    Restore,
    #[default]
    #[serde(other)]
    Other,
}

/// `lastOperation.state`: success, and the other ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OperationState {
    Succeeded,
    Failed,
    Aborted,
    #[default]
    #[serde(other)]
    Other,
}

/// `machine.sapcloud.io/v1alpha1` Machine: what backs a node.
#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "object_or_default")]
    pub status: MachineStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineStatus {
    #[serde(deserialize_with = "object_or_default")]
    current_status: CurrentStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CurrentStatus {
    phase: Option<String>,
}

impl Machine {
    /// The node that this machine backs, unless the machine is Failed or Terminating (rule 44).
    pub fn usable_node(&self) -> Option<&str> {
        let gone = matches!(self.status.current_status.phase.as_deref(), Some("Failed" | "Terminating"));
        self.metadata.labels.as_ref()?.get("node").filter(|_| !gone).map(String::as_str)
    }
}

fn objects<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(items(deserializer)?.into_iter().map(|Object(object)| object).collect())
}

/// Go takes a null among texts for an empty one, and among objects for one with nothing set.
fn items<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let items: Option<Vec<Option<T>>> = Option::deserialize(deserializer)?;
    Ok(items.into_iter().flatten().map(Option::unwrap_or_default).collect())
}

fn positive_go_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TimeDelta>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let invalid = |reason: String| serde::de::Error::custom(format!("nodeMonitorGracePeriod: {reason}"));
    let duration: GoDuration = text.parse().map_err(|error: GoDurationError| invalid(error.to_string()))?;
    if duration.as_nanos() <= 0 {
        return Err(invalid(format!("{text:?} is not positive")));
    }
    Ok(Some(TimeDelta::nanoseconds(duration.as_nanos())))
}

common::resource!(Cluster, ClusterResourceScope, "extensions.gardener.cloud", "v1alpha1", "Cluster", "clusters");
common::resource!(Machine, NamespaceResourceScope, "machine.sapcloud.io", "v1alpha1", "Machine", "machines");

#[cfg(test)]
mod tests;
