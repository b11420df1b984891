//! May a pod be deleted when a Service it waits for is back (rule 76, D-44, D-45, D-62)?

use kube_core::ObjectMeta;

use super::selector::Labels;
use crate::config::Service;
use crate::pod::{Container, ContainerStatus, PodSpec, PodStatus, RestartPolicy};

/// The reason a container waits with after it has crashed again and again.
const CRASH_LOOP: &str = "CrashLoopBackOff";
/// The annotation of a pod that stands for one which a kubelet runs from a file, whatever the API
/// server holds.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A pod that may be deleted: all that is kept of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionCandidate {
    pub uid: String,
    /// The state of the pod that was judged.
    pub resource_version: String,
    /// The UID of its controller, which will make another one.
    pub owner: String,
    /// The places in the config of the Services whose selectors match it.
    pub services: Vec<usize>,
    pub crash_loop: CrashLoop,
}

/// What shows that a pod crash-loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrashLoop {
    /// A container waits in CrashLoopBackOff.
    Reported,
    /// These are terminated and to be restarted: in back-off if they stay so (D-62). A kubelet
    /// writes the status, finds the back-off, and writes again when that ends, or a minute later:
    /// until then it says no more than this.
    Terminated(Vec<Termination>),
}

/// One of the times that a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    pub container: String,
    /// How often the container was restarted before.
    pub restarts: i32,
}

/// Judges a pod; none when it is left alone: it ends already, does not crash-loop, or nobody would
/// make it again.
pub fn judge(
    metadata: &ObjectMeta,
    spec: &PodSpec,
    status: &PodStatus,
    services: &[Service],
) -> Option<DeletionCandidate> {
    let is_mirror = metadata
        .annotations
        .as_ref()
        .is_some_and(|annotations| annotations.contains_key(MIRROR));
    if metadata.deletion_timestamp.is_some() || is_mirror {
        return None;
    }
    let crash_loop = crash_loop(spec, status)?;
    let owner = metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))?;
    let none = Labels::new();
    let labels = metadata.labels.as_ref().unwrap_or(&none);
    let selects = |service: &Service| {
        service
            .selectors
            .iter()
            .any(|selector| selector.matches(labels))
    };
    let services: Vec<usize> = services
        .iter()
        .enumerate()
        .filter(|(_, service)| selects(service))
        .map(|(place, _)| place)
        .collect();
    let [uid, resource_version] =
        [&metadata.uid, &metadata.resource_version].map(|text| text.clone().unwrap_or_default());
    (!services.is_empty()).then(|| DeletionCandidate {
        uid,
        resource_version,
        owner: owner.uid.clone(),
        services,
        crash_loop,
    })
}

fn crash_loop(spec: &PodSpec, status: &PodStatus) -> Option<CrashLoop> {
    if status.waiting_reasons().any(|reason| reason == CRASH_LOOP) {
        return Some(CrashLoop::Reported);
    }
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return None;
    }
    // An init container that has succeeded is done.
    let of_init_containers = match spec.restart_policy {
        RestartPolicy::Always => RestartPolicy::OnFailure,
        policy => policy,
    };
    let mut terminations = to_be_restarted(
        &status.container_statuses,
        &spec.containers,
        spec.restart_policy,
    );
    terminations.extend(to_be_restarted(
        &status.init_container_statuses,
        &spec.init_containers,
        of_init_containers,
    ));
    (!terminations.is_empty()).then_some(CrashLoop::Terminated(terminations))
}

/// How those ended that are to be restarted, where this policy holds for containers without one of
/// their own. After its first end a container is restarted at once.
fn to_be_restarted(
    statuses: &[ContainerStatus],
    containers: &[Container],
    policy: RestartPolicy,
) -> Vec<Termination> {
    let is_restarted = |status: &&ContainerStatus| {
        let own = containers
            .iter()
            .find(|container| container.name == status.name)
            .and_then(|container| container.restart_policy);
        let policy = own.unwrap_or(policy);
        status.restart_count > 0
            && status
                .state
                .terminated
                .as_ref()
                .is_some_and(|ended| policy.restarts(ended.exit_code))
    };
    let ended = statuses.iter().filter(is_restarted);
    ended
        .map(|status| Termination {
            container: status.name.clone(),
            restarts: status.restart_count,
        })
        .collect()
}

#[cfg(test)]
mod tests;
