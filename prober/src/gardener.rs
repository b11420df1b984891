//! Gardener's types, pruned to what is read here. Unknown fields are skipped; a wrong type is an
//! error for that object alone.

pub(crate) mod object;

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta, Utc};
use common::objects::{apart, identity, if_readable, metadata};
use go_compat::duration::GoDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prober_core::gardener::{GardenerShoot, LastOperation, OperationState, OperationType, Worker};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use self::object::{JsonObject, object_or_default};

/// `extensions.gardener.cloud/v1alpha1` Cluster: one per shoot; its name is the shoot's namespace
/// on the seed.
#[derive(Clone, Debug, Deserialize)]
pub struct Cluster {
    #[serde(deserialize_with = "identity")]
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
    #[serde(deserialize_with = "text_if_any")]
    pub name: Option<String>,
    #[serde(deserialize_with = "text_if_any")]
    pub uid: Option<String>,
}

fn embedded_shoot<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Result<GardenerShoot, String>>, D::Error> {
    let shoot: Result<Option<JsonObject<ShootObject>>, String> = apart(deserializer)?;
    let shoot = shoot.map(|shoot| shoot.map(|JsonObject(shoot)| shoot.into()));
    Ok(shoot.transpose())
}

/// Nothing else of the Seed is read, and one that cannot be understood harms no shoot.
fn embedded_seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SeedRef, D::Error> {
    let JsonObject(SeedObject {
        metadata: JsonObject(seed),
    }) = if_readable(deserializer)?;
    Ok(seed)
}

/// The Seed as it is embedded in a Cluster.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SeedObject {
    #[serde(deserialize_with = "if_readable")]
    metadata: JsonObject<SeedRef>,
}

fn text_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = if_readable(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
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
    #[serde(deserialize_with = "object_or_default")]
    metadata: ShootMetadata,
    #[serde(deserialize_with = "object_or_default")]
    spec: ShootSpec,
    #[serde(deserialize_with = "object_or_default")]
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
    #[serde(deserialize_with = "object_or_default")]
    hibernation: Hibernation,
    #[serde(deserialize_with = "object_or_default")]
    kubernetes: KubernetesSpec,
    #[serde(deserialize_with = "object_or_default")]
    provider: Provider,
    seed_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Hibernation {
    enabled: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KubernetesSpec {
    #[serde(deserialize_with = "object_or_default")]
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
    workers: Option<Vec<Option<JsonObject<WorkerSpec>>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkerSpec {
    name: Option<String>,
    #[serde(deserialize_with = "object_or_default")]
    machine_controller_manager: MachineControllerManagerSpec,
    control_plane: Option<JsonObject<WorkerControlPlane>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MachineControllerManagerSpec {
    node_conditions: Option<Vec<Option<String>>>,
}

/// Nothing of it is read.
#[derive(Deserialize)]
struct WorkerControlPlane {}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObservedShoot {
    seed_name: Option<String>,
    hibernated: Option<bool>,
    last_operation: Option<JsonObject<OperationObject>>,
    #[serde(rename = "advertisedAddresses", deserialize_with = "internal_domain")]
    internal_domain: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OperationObject {
    #[serde(rename = "type")]
    kind: Option<OperationType>,
    state: Option<OperationState>,
    last_update_time: Option<DateTime<Utc>>,
}

#[derive(Default, Deserialize)]
struct AdvertisedAddress {
    name: String,
    url: String,
}

/// The domain of the address that is called `internal`, without its scheme and `api.`. Nothing else
/// of the addresses is read, and what cannot be understood harms no shoot.
fn internal_domain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let addresses: Vec<ReadableAddress> = if_readable(deserializer)?;
    let mut addresses = addresses
        .into_iter()
        .map(|ReadableAddress(address)| address.0);
    let internal = addresses.find(|address| address.name == "internal");
    Ok(internal.and_then(|internal| {
        let host = internal.url.strip_prefix("https://")?.trim_end_matches('/');
        let domain = host.strip_prefix("api.")?;
        (!domain.is_empty()).then(|| domain.to_owned())
    }))
}

#[derive(Deserialize)]
#[serde(transparent)]
struct ReadableAddress(#[serde(deserialize_with = "if_readable")] JsonObject<AdvertisedAddress>);

impl From<ShootObject> for GardenerShoot {
    fn from(shoot: ShootObject) -> Self {
        let ShootObject {
            metadata,
            spec,
            status,
            ..
        } = shoot;
        let controller_manager = spec.kubernetes.kube_controller_manager;
        let workers = spec.provider.workers.unwrap_or_default().into_iter();
        Self {
            deletion_timestamp: metadata.deletion_timestamp,
            hibernation_enabled: spec.hibernation.enabled.unwrap_or_default(),
            node_monitor_grace: controller_manager.node_monitor_grace_period,
            // As Go reads it, a null among the pools is one with nothing set.
            workers: workers
                .map(|worker| worker.unwrap_or_default().0.into())
                .collect(),
            spec_seed_name: spec.seed_name,
            status_seed_name: status.seed_name,
            is_hibernated: status.hibernated.unwrap_or_default(),
            last_operation: status
                .last_operation
                .map(|JsonObject(operation)| operation.into()),
            internal_domain: status.internal_domain,
        }
    }
}

impl From<WorkerSpec> for Worker {
    fn from(worker: WorkerSpec) -> Self {
        let conditions = worker.machine_controller_manager.node_conditions;
        let conditions = conditions.unwrap_or_default().into_iter();
        Self {
            name: worker.name.unwrap_or_default(),
            node_conditions: conditions.map(Option::unwrap_or_default).collect(),
            hosts_control_plane: worker.control_plane.is_some(),
        }
    }
}

impl From<OperationObject> for LastOperation {
    fn from(operation: OperationObject) -> Self {
        Self {
            kind: operation.kind.unwrap_or_default(),
            state: operation.state.unwrap_or_default(),
            last_update_time: operation.last_update_time,
        }
    }
}

/// `machine.sapcloud.io/v1alpha1` Machine: what backs a node.
#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    #[serde(deserialize_with = "metadata")]
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

/// Implements `kube::Resource` for a type of Gardener's APIs. kube's own derive for custom resources
/// would add metadata of its own, unpruned.
macro_rules! custom_resource {
    ($type:ident, $scope:ident, $group:literal, $plural:literal) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = kube::core::$scope;
            fn kind((): &()) -> Cow<'_, str> {
                stringify!($type).into()
            }
            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> Cow<'_, str> {
                "v1alpha1".into()
            }
            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

custom_resource!(
    Cluster,
    ClusterResourceScope,
    "extensions.gardener.cloud",
    "clusters"
);
custom_resource!(
    Machine,
    NamespaceResourceScope,
    "machine.sapcloud.io",
    "machines"
);

#[cfg(test)]
mod tests;
