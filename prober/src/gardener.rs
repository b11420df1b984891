//! Gardener's types, pruned to what is read here. Unknown fields are skipped; a wrong type is an
//! error for that object alone.

use chrono::{DateTime, TimeDelta, Utc};
use common::objects::{apart, if_readable, metadata};
use go_compat::duration::GoDuration;
use go_compat::null::null_as_default;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, Resource};
use prober_core::gardener::{GardenerShoot, LastOperation, Worker};
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

/// `extensions.gardener.cloud/v1alpha1` Cluster: one per shoot; its name is the shoot's namespace
/// on the seed.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = ClusterKind)]
pub struct Cluster {
    #[serde(deserialize_with = "metadata")]
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SeedRef {
    #[serde(deserialize_with = "if_readable")]
    pub name: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    pub uid: Option<String>,
}

fn embedded_shoot<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Result<GardenerShoot, String>>, D::Error> {
    let shoot: Result<Option<ShootObject>, String> = apart(deserializer)?;
    Ok(shoot.map(|shoot| shoot.map(Into::into)).transpose())
}

/// Nothing else of the Seed is read, and one that cannot be understood harms no shoot.
fn embedded_seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SeedRef, D::Error> {
    let seed: SeedObject = if_readable(deserializer)?;
    Ok(seed.metadata)
}

/// The Seed as it is embedded in a Cluster.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SeedObject {
    #[serde(deserialize_with = "if_readable")]
    metadata: SeedRef,
}

/// A `core.gardener.cloud/v1beta1` Shoot as it is embedded in a Cluster. A null is an absence
/// everywhere, as in Go.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ShootObject {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    metadata: ShootMetadata,
    #[serde(deserialize_with = "null_as_default")]
    spec: ShootSpec,
    #[serde(deserialize_with = "null_as_default")]
    status: ObservedShoot,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ShootMetadata {
    deletion_timestamp: Option<DateTime<Utc>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ShootSpec {
    #[serde(deserialize_with = "null_as_default")]
    hibernation: Hibernation,
    #[serde(deserialize_with = "null_as_default")]
    kubernetes: KubernetesSpec,
    #[serde(deserialize_with = "null_as_default")]
    provider: Provider,
    seed_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Hibernation {
    #[serde(deserialize_with = "null_as_default")]
    enabled: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KubernetesSpec {
    #[serde(deserialize_with = "null_as_default")]
    kube_controller_manager: ControllerManagerSpec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ControllerManagerSpec {
    #[serde(deserialize_with = "positive_duration")]
    node_monitor_grace_period: Option<TimeDelta>,
}

fn positive_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TimeDelta>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let GoDuration(duration) = text.parse().map_err(D::Error::custom)?;
    let duration = TimeDelta::from_std(duration).map_err(D::Error::custom)?;
    if duration.is_zero() {
        return Err(D::Error::custom(format!("{text:?} is not positive")));
    }
    Ok(Some(duration))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Provider {
    #[serde(deserialize_with = "null_as_default")]
    workers: Vec<Option<WorkerSpec>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkerSpec {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    machine_controller_manager: MachineControllerManagerSpec,
    control_plane: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MachineControllerManagerSpec {
    #[serde(deserialize_with = "null_as_default")]
    node_conditions: Vec<Option<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObservedShoot {
    seed_name: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    hibernated: bool,
    last_operation: Option<LastOperation>,
    #[serde(rename = "advertisedAddresses", deserialize_with = "internal_domain")]
    internal_domain: Option<String>,
}

/// One that cannot be understood hides no other.
#[derive(Deserialize)]
struct ListedAddress(#[serde(deserialize_with = "if_readable")] Option<AdvertisedAddress>);

#[derive(Deserialize)]
struct AdvertisedAddress {
    name: String,
    url: String,
}

/// The domain of the address that is called `internal`, without its scheme and `api.`. Nothing else
/// of the addresses is read, and what cannot be understood harms no shoot.
fn internal_domain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let addresses: Vec<ListedAddress> = if_readable(deserializer)?;
    let mut addresses = addresses.into_iter().filter_map(|listed| listed.0);
    let internal = addresses.find(|address| address.name == "internal");
    Ok(internal.and_then(|internal| {
        let host = internal.url.strip_prefix("https://")?.trim_end_matches('/');
        let domain = host.strip_prefix("api.")?;
        (!domain.is_empty()).then(|| domain.to_owned())
    }))
}

impl From<ShootObject> for GardenerShoot {
    fn from(shoot: ShootObject) -> Self {
        let ShootObject {
            metadata,
            spec,
            status,
            ..
        } = shoot;
        let controller_manager = spec.kubernetes.kube_controller_manager;
        let workers = spec.provider.workers.into_iter();
        Self {
            deletion_timestamp: metadata.deletion_timestamp,
            hibernation_enabled: spec.hibernation.enabled,
            node_monitor_grace: controller_manager.node_monitor_grace_period,
            // As Go reads it, a null among the pools is one with nothing set.
            workers: workers
                .map(|worker| worker.unwrap_or_default().into())
                .collect(),
            spec_seed_name: spec.seed_name,
            status_seed_name: status.seed_name,
            is_hibernated: status.hibernated,
            last_operation: status.last_operation,
            internal_domain: status.internal_domain,
        }
    }
}

impl From<WorkerSpec> for Worker {
    fn from(worker: WorkerSpec) -> Self {
        let conditions = worker
            .machine_controller_manager
            .node_conditions
            .into_iter();
        Self {
            name: worker.name,
            node_conditions: conditions.map(Option::unwrap_or_default).collect(),
            hosts_control_plane: worker.control_plane.is_some(),
        }
    }
}

/// `machine.sapcloud.io/v1alpha1` Machine: what backs a node.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = MachineKind)]
pub struct Machine {
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: MachineStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MachineStatus {
    #[serde(deserialize_with = "null_as_default")]
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

/// Where Clusters are in the API. Their type is another one, since kube's has all metadata.
#[derive(Clone, Debug, Deserialize, Serialize, CustomResource)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "Cluster",
    root = "ClusterKind",
    plural = "clusters",
    schema = "disabled"
)]
pub struct OfCluster {}

/// The same of Machines.
#[derive(Clone, Debug, Deserialize, Serialize, CustomResource)]
#[kube(
    group = "machine.sapcloud.io",
    version = "v1alpha1",
    kind = "Machine",
    root = "MachineKind",
    plural = "machines",
    namespaced,
    schema = "disabled"
)]
pub struct OfMachine {}

#[cfg(test)]
mod tests;
