//! What is known of a Shoot.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

/// What is read of a `core.gardener.cloud/v1beta1` Shoot.
#[derive(Clone, Debug)]
pub struct GardenerShoot {
    pub deletion_timestamp: Option<DateTime<Utc>>,
    pub hibernation_enabled: bool,
    /// Above 0.
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

    /// The name of the seed whose gardenlet, and whose watchdog, looks after it (Gardener's
    /// GetResponsibleSeedName): while its control plane moves that is the one that it moves from.
    /// None where none is named.
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
    /// The pool's name, which its nodes carry as a label.
    pub name: String,
    /// `machineControllerManager.nodeConditions`.
    pub node_conditions: Vec<String>,
    /// Whether the shoot's own control plane runs in it (GEP-28).
    pub hosts_control_plane: bool,
}

#[derive(Clone, Debug)]
pub struct LastOperation {
    pub kind: OperationType,
    pub state: OperationState,
    pub last_update_time: Option<DateTime<Utc>>,
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
