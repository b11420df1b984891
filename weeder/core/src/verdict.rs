//! Whether a pod may be deleted once a Service it depends on is ready again (rule 76, D-44, D-45,
//! D-62).

use kube_core::ObjectMeta;

use crate::config::{Service, ServiceName};
use crate::pod::{ContainerSpec, ContainerStatus, PodSpec, PodStatus, RestartPolicy};
use crate::selector::Labels;

const CRASH_LOOP: &str = "CrashLoopBackOff";
/// The annotation of a mirror pod: its kubelet runs it from a file, whatever the API server holds.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A pod that may be deleted: all that is kept of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionCandidate {
    pub uid: String,
    /// The state of the pod that was judged.
    pub resource_version: String,
    /// The UID of its controller, which will create another one.
    pub owner: String,
    /// The Services whose selectors match it.
    pub services: Vec<ServiceName>,
    pub crash_loop: CrashLoop,
}

/// What shows that a pod crash-loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrashLoop {
    /// A container waits in CrashLoopBackOff.
    Reported,
    /// These are terminated and will be restarted: in back-off if they stay so (D-62). A kubelet
    /// writes the status, finds the back-off, and writes again when that ends, or a minute later:
    /// until then the status shows no more than this.
    Terminated(Vec<Termination>),
}

/// One termination of a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Termination {
    pub container: String,
    /// How often the container was restarted before.
    pub restarts: i32,
}

/// Judges a pod; none when it is left alone: it is being deleted, does not crash-loop, or nobody
/// would create it again.
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
    let services: Vec<ServiceName> = services
        .iter()
        .filter(|service| selects(service))
        .map(|service| service.name.clone())
        .collect();
    (!services.is_empty()).then(|| DeletionCandidate {
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
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
    let init_policy = match spec.restart_policy {
        RestartPolicy::Always => RestartPolicy::OnFailure,
        policy => policy,
    };
    let containers = restarted(
        &status.container_statuses,
        &spec.containers,
        spec.restart_policy,
    );
    let init_containers = restarted(
        &status.init_container_statuses,
        &spec.init_containers,
        init_policy,
    );
    let terminations: Vec<Termination> = containers.chain(init_containers).collect();
    (!terminations.is_empty()).then_some(CrashLoop::Terminated(terminations))
}

/// The terminations after which a container is restarted with a back-off: after the first one it is
/// restarted at once. `policy` holds for containers without one of their own.
fn restarted(
    statuses: &[ContainerStatus],
    containers: &[ContainerSpec],
    policy: RestartPolicy,
) -> impl Iterator<Item = Termination> {
    statuses.iter().filter_map(move |status| {
        let exit_code = status.state.terminated.as_ref()?.exit_code;
        let container = containers.iter().find(|spec| spec.name == status.name);
        let own_policy = container.and_then(|container| container.restart_policy);
        let restarts = own_policy.unwrap_or(policy).restarts(exit_code);
        (restarts && status.restart_count > 0).then(|| Termination {
            container: status.name.clone(),
            restarts: status.restart_count,
        })
    })
}

#[cfg(test)]
mod tests;
