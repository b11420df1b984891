//! Gardener's types, pruned to what is read here. Unknown fields are skipped; a wrong type is an
//! error for that object alone.

pub(crate) mod object;

use chrono::TimeDelta;
use common_core::duration::{GoDuration, GoDurationError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prober_core::gardener::{GardenerShoot, LastOperation, Worker};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use self::object::object_or_default;

/// The most characters of an error that are kept: serde repeats a value of the wrong type in full,
/// whatever its length.
const SHOWN_OF_ERROR: usize = 200;

/// `extensions.gardener.cloud/v1alpha1` Cluster: one per shoot; its name is the shoot's namespace
/// on the seed.
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
    pub shoot: Option<Result<GardenerShoot, String>>,
    /// The embedded Seed: the one that this Cluster is on.
    #[serde(default, deserialize_with = "embedded_seed")]
    pub seed: SeedRef,
}

/// The name and UID of a Seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedRef {
    pub name: Option<String>,
    pub uid: Option<String>,
}

fn embedded_shoot<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Result<GardenerShoot, String>>, D::Error> {
    let raw = Option::<Value>::deserialize(deserializer)?;
    Ok(raw.map(|raw| shoot(&raw).map_err(|error| error.chars().take(SHOWN_OF_ERROR).collect())))
}

/// Nothing else of the Seed is read, and one that cannot be understood harms no shoot.
fn embedded_seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SeedRef, D::Error> {
    let seed = Value::deserialize(deserializer)?;
    let text = |path| {
        seed.pointer(path)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    Ok(SeedRef {
        name: text("/metadata/name"),
        uid: text("/metadata/uid"),
    })
}

/// The domain of the address that is called `internal`, without its scheme and `api.`. Nothing else
/// of the addresses is read, and what cannot be understood harms no shoot.
fn internal_domain(addresses: &Value) -> Option<String> {
    let internal = addresses
        .as_array()?
        .iter()
        .find(|address| address["name"] == "internal")?;
    let host = internal["url"]
        .as_str()?
        .strip_prefix("https://")?
        .trim_end_matches('/');
    host.strip_prefix("api.")
        .filter(|domain| !domain.is_empty())
        .map(str::to_owned)
}

/// Reads a `core.gardener.cloud/v1beta1` Shoot, or says why it cannot be understood.
fn shoot(shoot: &Value) -> Result<GardenerShoot, String> {
    for text in ["apiVersion", "kind"] {
        at::<String>(shoot, text)?;
    }
    let grace: Option<String> = at(
        shoot,
        "spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod",
    )?;
    let workers: Vec<Value> = at(shoot, "spec.provider.workers")?;
    let operation: Option<Value> = at(shoot, "status.lastOperation")?;
    Ok(GardenerShoot {
        deletion_timestamp: at(shoot, "metadata.deletionTimestamp")?,
        hibernation_enabled: at(shoot, "spec.hibernation.enabled")?,
        node_monitor_grace: grace.map(|text| positive_duration(&text)).transpose()?,
        workers: workers.iter().map(worker).collect::<Result<_, _>>()?,
        spec_seed_name: at(shoot, "spec.seedName")?,
        status_seed_name: at(shoot, "status.seedName")?,
        is_hibernated: at(shoot, "status.hibernated")?,
        last_operation: operation.as_ref().map(last_operation).transpose()?,
        internal_domain: internal_domain(&at(shoot, "status.advertisedAddresses")?),
    })
}

/// The value at a path; the default if it, or an object on the way to it, is absent or null. These
/// are read one by one because a struct that derives `Deserialize` would also take an array, its
/// items for its fields in order.
fn at<T: Default + DeserializeOwned>(mut value: &Value, path: &str) -> Result<T, String> {
    for name in path.split('.') {
        value = match value {
            Value::Null => break,
            Value::Object(fields) => fields.get(name).unwrap_or(&Value::Null),
            _ => return Err(format!("{path}: {name} is not a field of an object")),
        };
    }
    let read = Option::deserialize(value).map_err(|error| format!("{path}: {error}"))?;
    Ok(read.unwrap_or_default())
}

/// Like Go, takes a null pool for one with nothing set, and a null condition for an empty text.
fn worker(worker: &Value) -> Result<Worker, String> {
    let conditions: Vec<Option<String>> = at(worker, "machineControllerManager.nodeConditions")?;
    Ok(Worker {
        name: at(worker, "name")?,
        node_conditions: conditions
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect(),
        hosts_control_plane: at::<Option<Map<_, _>>>(worker, "controlPlane")?.is_some(),
    })
}

fn last_operation(operation: &Value) -> Result<LastOperation, String> {
    Ok(LastOperation {
        kind: at(operation, "type")?,
        state: at(operation, "state")?,
        last_update_time: at(operation, "lastUpdateTime")?,
    })
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
    pub(crate) fn usable_node(&self) -> Option<&str> {
        let gone = matches!(
            self.status.current_status.phase.as_deref(),
            Some("Failed" | "Terminating")
        );
        self.metadata
            .labels
            .as_ref()?
            .get("node")
            .filter(|_| !gone)
            .map(String::as_str)
    }
}

fn positive_duration(text: &str) -> Result<TimeDelta, String> {
    let duration: GoDuration = text
        .parse()
        .map_err(|error: GoDurationError| format!("nodeMonitorGracePeriod: {error}"))?;
    match duration.as_nanos() {
        ..=0 => Err(format!("nodeMonitorGracePeriod: {text:?} is not positive")),
        nanos => Ok(TimeDelta::nanoseconds(nanos)),
    }
}

common::resource!(
    Cluster,
    ClusterResourceScope,
    "extensions.gardener.cloud",
    "v1alpha1",
    "Cluster",
    "clusters"
);
common::resource!(
    Machine,
    NamespaceResourceScope,
    "machine.sapcloud.io",
    "v1alpha1",
    "Machine",
    "machines"
);

#[cfg(test)]
mod tests;
