//! Relevant fields of a pod's spec and status. Unknown fields are skipped.

use chrono::{DateTime, TimeDelta, Utc};
use go_compat::null::null_as_default;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Condition of a pod whose sandbox and network are ready.
const SANDBOX_IS_READY: &str = "PodReadyToStartContainers";
/// Run time after which a kubelet resets the backoff of a container and restarts it at once: twice
/// its maximum backoff, which is 5 minutes unless configured lower.
const LONGEST_RUN: TimeDelta = TimeDelta::minutes(10);

/// The part of a pod spec that determines which containers are restarted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    #[serde(deserialize_with = "null_as_default")]
    pub restart_policy: RestartPolicy,
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<ContainerSpec>,
    #[serde(deserialize_with = "null_as_default")]
    pub init_containers: Vec<ContainerSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerSpec {
    pub name: String,
    /// Overrides the pod's policy. Rules for exit codes are not read, so a container that only they
    /// restart is left alone.
    pub restart_policy: Option<RestartPolicy>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    /// Includes unknown policies.
    #[serde(other)]
    Never,
}

/// Excludes ephemeral containers, which are never restarted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    pub phase: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<PodCondition>,
    #[serde(deserialize_with = "null_as_default")]
    pub container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_as_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodCondition {
    #[serde(rename = "type")]
    name: String,
    status: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    pub name: String,
    pub restart_count: i32,
    #[serde(deserialize_with = "null_as_default")]
    pub state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    waiting: Option<Waiting>,
    pub running: Option<IgnoredAny>,
    pub terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    pub exit_code: i32,
    /// Both on the clock of the node.
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Option<String>,
}

impl RestartPolicy {
    /// True if a container with this exit code is restarted.
    pub const fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

impl ContainerSpec {
    /// The container's own policy, or else `otherwise`.
    pub(crate) fn policy(&self, otherwise: RestartPolicy) -> RestartPolicy {
        self.restart_policy.unwrap_or(otherwise)
    }

    /// True if this init container keeps running beside the containers after it.
    pub(crate) fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }
}

impl ContainerStatus {
    pub(crate) fn has_succeeded(&self) -> bool {
        let ended = self.state.terminated.as_ref();
        ended.is_some_and(|ended| ended.exit_code == 0)
    }
}

impl Terminated {
    /// True if its last run was so short that the kubelet still has its backoff. The times are
    /// missing for a container that the kubelet lost, as in a reboot.
    pub(crate) fn ended_soon(&self) -> bool {
        let run = self.started_at.zip(self.finished_at);
        // A container that could not be started has a start time of 1970.
        run.is_some_and(|(started, finished)| {
            started <= DateTime::UNIX_EPOCH || finished - started <= LONGEST_RUN
        })
    }
}

impl PodStatus {
    /// True if all containers have terminated for good.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// True if the pod has no sandbox, as after a reboot of its node, and its containers wait for
    /// one. Kubelets before 1.29 do not report it.
    pub(crate) fn waits_for_sandbox(&self) -> bool {
        let is_false = |condition: &PodCondition| {
            condition.name == SANDBOX_IS_READY && condition.status == "False"
        };
        self.conditions.iter().any(is_false)
    }

    /// Reasons for which containers wait, including init containers.
    pub(crate) fn waiting_reasons(&self) -> impl Iterator<Item = &str> {
        let containers = self
            .container_statuses
            .iter()
            .chain(&self.init_container_statuses);
        containers.filter_map(|container| container.state.waiting.as_ref()?.reason.as_deref())
    }
}
