//! May a shoot be probed (rules 33 to 36)?

use chrono::{DateTime, TimeDelta, Utc};
use strum::{IntoStaticStr, VariantNames};

use super::lease::Grace;
use super::span;
use super::verdict::PoolConditions;
use crate::config::Config;
use crate::gardener::{GardenerShoot, OperationType, Worker};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    Probe,
    /// A running probe ends and none starts.
    Stop(StopReason),
    /// No probe starts; a running one goes on as it was.
    Wait(WaitReason),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShootSettings {
    /// `spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod`, which replaces the
    /// configured one.
    pub node_monitor_grace: Option<TimeDelta>,
    pub pool_conditions: PoolConditions,
}

impl ShootSettings {
    /// The shoot's own grace, or else the configured one.
    pub fn grace(&self, config: &Config) -> Grace {
        Grace::new(
            self.node_monitor_grace
                .unwrap_or(span(config.node_monitor_grace)),
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum StopReason {
    Deleting,
    /// Its control plane runs on its own nodes (GEP-28); on a seed that it has become gardenlet
    /// makes no access to it.
    SelfHosted,
    Hibernated,
    /// The control plane moves to another seed, or has yet to come from it: the watchdog there
    /// looks after the shoot.
    Migrating,
    Workerless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum WaitReason {
    /// Hibernation is off, but the control plane is not back yet.
    WakingUp,
    /// No finished Create or Restore and no Reconcile: the control plane is being made, or its
    /// state is unknown to us.
    NotYetReconciled,
}

impl Lifecycle {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Probe => "probed",
            Self::Stop(reason) => reason.into_str(),
            Self::Wait(reason) => reason.into_str(),
        }
    }
}

/// `seed` is the name of the seed that the shoot's Cluster is on; where none is known the shoot is
/// taken for ours.
pub fn lifecycle(shoot: &GardenerShoot, seed: Option<&str>) -> Lifecycle {
    let elsewhere = seed
        .zip(shoot.responsible_seed())
        .is_some_and(|(here, responsible)| here != responsible);
    let operation = shoot
        .last_operation
        .as_ref()
        .map_or(OperationType::Other, |operation| operation.kind);
    let hosts_itself = |worker: &Worker| worker.hosts_control_plane;
    if shoot.deletion_timestamp.is_some() {
        Lifecycle::Stop(StopReason::Deleting)
    } else if shoot.workers.iter().any(hosts_itself) {
        Lifecycle::Stop(StopReason::SelfHosted)
    } else if shoot.hibernation_enabled {
        Lifecycle::Stop(StopReason::Hibernated)
    } else if elsewhere || operation == OperationType::Migrate {
        Lifecycle::Stop(StopReason::Migrating)
    } else if shoot.workers.is_empty() {
        Lifecycle::Stop(StopReason::Workerless)
    } else if shoot.is_hibernated {
        Lifecycle::Wait(WaitReason::WakingUp)
    } else {
        match operation {
            OperationType::Reconcile | OperationType::LiveMigrate => Lifecycle::Probe,
            OperationType::Create | OperationType::Restore if shoot.last_operation_succeeded() => {
                Lifecycle::Probe
            }
            _ => Lifecycle::Wait(WaitReason::NotYetReconciled),
        }
    }
}

/// Whether a shoot that may be probed is in operation rather than just made (D-51): it is being
/// reconciled, which finished control planes are, or its last operation has succeeded longer ago
/// than `delay`, since that may have made it or woken it up. `now` is by our clock; what is absent
/// or in the future tells nothing.
pub fn is_in_operation(shoot: &GardenerShoot, delay: TimeDelta, now: DateTime<Utc>) -> bool {
    let Some(operation) = &shoot.last_operation else {
        return false;
    };
    let long_over = || {
        operation
            .last_update_time
            .is_some_and(|updated| updated <= now && now - updated > delay)
    };
    !shoot.last_operation_succeeded() || long_over()
}

/// The settings of a shoot, also of one that waits: a running probe applies them.
pub fn settings(shoot: &GardenerShoot) -> ShootSettings {
    // An empty list means the default one (rule 35), which is what a pool that is not in the map
    // gets.
    let own = shoot
        .workers
        .iter()
        .filter(|worker| !worker.node_conditions.is_empty());
    let pool_conditions = own
        .map(|worker| (worker.name.clone(), worker.node_conditions.clone()))
        .collect();
    ShootSettings {
        node_monitor_grace: shoot.node_monitor_grace,
        pool_conditions,
    }
}
