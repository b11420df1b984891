//! The fields of a pod's spec and status that are read here. Unknown fields are skipped.

use common_core::null::null_as_default;
use serde::Deserialize;

/// Returns which containers are restarted.
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
    /// Overrules the pod's. Its rules for exit codes are not read: a container that only they
    /// restart is left alone.
    pub restart_policy: Option<RestartPolicy>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    /// Also any policy that is not known here.
    #[serde(other)]
    Never,
}

/// Without ephemeral containers: nobody restarts them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    pub phase: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_as_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
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
    pub terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    pub exit_code: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Option<String>,
}

impl RestartPolicy {
    /// Whether a container that ended with this exit code is started again.
    pub const fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

impl PodStatus {
    /// Why containers wait, init containers included.
    pub(crate) fn waiting_reasons(&self) -> impl Iterator<Item = &str> {
        let containers = self
            .container_statuses
            .iter()
            .chain(&self.init_container_statuses);
        containers.filter_map(|container| container.state.waiting.as_ref()?.reason.as_deref())
    }
}
