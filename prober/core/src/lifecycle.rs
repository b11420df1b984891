//! Decides whether a shoot may be probed.

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
    /// A running probe ends, and no new one starts.
    Stop(StopReason),
    /// No new probe starts; a running one continues unchanged.
    Wait(WaitReason),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShootSettings {
    /// `spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod`, which overrides the
    /// configured one.
    pub node_monitor_grace: Option<TimeDelta>,
    pub pool_conditions: PoolConditions,
}

impl ShootSettings {
    /// The shoot's own grace period, or the configured one.
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
    /// Its control plane runs on its own nodes (GEP-28). gardenlet creates no kubeconfig for a
    /// shoot that is itself a seed.
    SelfHosted,
    Hibernated,
    /// The control plane is being migrated to or from another seed, whose watchdog is responsible.
    Migrating,
    Workerless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum WaitReason {
    /// Hibernation is disabled, but the control plane is not up yet.
    WakingUp,
    /// Neither a finished Create or Restore nor a Reconcile: the control plane is being created, or
    /// its state is unknown.
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

/// Decides from the Shoot. `seed` is the name of the seed that holds the Cluster; if it is `None`,
/// the shoot counts as ours.
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

/// True if a shoot that may be probed is in operation rather than newly created: it is being
/// reconciled, as only finished control planes are, or its last operation succeeded longer than
/// `delay` ago, since that operation may have created it or woken it up. `now` is our wall clock; a
/// timestamp that is missing or in the future proves nothing.
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

/// Extracts the settings of a shoot. A running probe applies them even while the shoot waits.
pub fn settings(shoot: &GardenerShoot) -> ShootSettings {
    // An empty list means Gardener's default, which a pool without an entry gets.
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
