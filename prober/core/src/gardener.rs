//! The fields of a Gardener Shoot that matter here.

use chrono::{DateTime, TimeDelta, Utc};
use go_compat::null::null_as_default;
use serde::Deserialize;

/// The relevant part of a `core.gardener.cloud/v1beta1` Shoot.
#[derive(Clone, Debug)]
pub struct GardenerShoot {
    pub deletion_timestamp: Option<DateTime<Utc>>,
    pub hibernation_enabled: bool,
    /// Positive.
    pub node_monitor_grace: Option<TimeDelta>,
    pub workers: Vec<Worker>,
    pub spec_seed_name: Option<String>,
    pub status_seed_name: Option<String>,
    pub is_hibernated: bool,
    pub last_operation: Option<LastOperation>,
    pub internal_domain: Option<String>,
}

impl GardenerShoot {
    pub(crate) fn last_operation_succeeded(&self) -> bool {
        self.last_operation
            .as_ref()
            .is_some_and(|operation| operation.state == OperationState::Succeeded)
    }

    /// Returns the name of the seed whose gardenlet is responsible for the shoot, like Gardener's
    /// `GetResponsibleSeedName`: during a control plane migration, the source seed.
    pub fn responsible_seed(&self) -> Option<&str> {
        let names = [&self.status_seed_name, &self.spec_seed_name];
        names
            .into_iter()
            .flatten()
            .map(String::as_str)
            .find(|name| !name.is_empty())
    }
}

#[derive(Clone, Debug)]
pub struct Worker {
    /// Pool name, which the nodes of the pool carry as a label.
    pub name: String,
    /// `machineControllerManager.nodeConditions`.
    pub node_conditions: Vec<String>,
    /// True if the pool runs the shoot's own control plane (GEP-28).
    pub hosts_control_plane: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LastOperation {
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub kind: OperationType,
    #[serde(deserialize_with = "null_as_default")]
    pub state: OperationState,
    pub last_update_time: Option<DateTime<Utc>>,
}

/// `lastOperation.type`. Unknown types neither start nor stop a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OperationType {
    Create,
    Reconcile,
    Migrate,
    /// The control plane is migrated without downtime (GEP-39).
    LiveMigrate,
    Restore,
    #[default]
    #[serde(other)]
    Other,
}

/// `lastOperation.state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OperationState {
    Succeeded,
    Failed,
    Aborted,
    #[default]
    #[serde(other)]
    Other,
}
