//! Whether a pod may be deleted once a Service it depends on is ready again (rule 76, D-44, D-45,
//! D-62, D-64, D-75).

use kube_core::ObjectMeta;

use crate::config::{Service, ServiceName};
use crate::pod::{ContainerSpec, ContainerStatus, PodSpec, PodStatus, RestartPolicy};
use crate::selector::Labels;

const CRASH_LOOP: &str = "CrashLoopBackOff";
/// The annotation of a mirror pod: its kubelet runs it from a file, whatever the API server holds.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The kind of the only owner that creates no other pod.
const NODE: &str = "Node";

/// A pod that may be deleted: all that is kept of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionCandidate {
    pub uid: String,
    /// The state of the pod that was judged.
    pub resource_version: String,
    /// The UID of its owner, which will create another one: its controller if it has one.
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
    let owners = metadata.owner_references.iter().flatten();
    let owner = owners
        .filter(|owner| owner.kind != NODE)
        .max_by_key(|owner| owner.controller == Some(true))?;
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
    if status.is_over() {
        return None;
    }
    if status.waiting_reasons().any(|reason| reason == CRASH_LOOP) {
        return Some(CrashLoop::Reported);
    }
    let containers = Containers { spec, status };
    if status.waits_for_sandbox() || containers.have_work_to_lose() {
        return None;
    }
    let terminations = containers.terminations();
    (!terminations.is_empty()).then_some(CrashLoop::Terminated(terminations))
}

/// The containers of a pod, with what its spec and its status say of each.
struct Containers<'p> {
    spec: &'p PodSpec,
    status: &'p PodStatus,
}

impl<'p> Containers<'p> {
    /// Whether work that nobody would repeat is under way or done: a container runs that is not
    /// restarted when it succeeds, or all have ended for good. What else ends then, as a sidecar, is
    /// no reason to delete the pod.
    fn have_work_to_lose(&self) -> bool {
        let mut containers = paired(&self.spec.containers, &self.status.container_statuses);
        let policy = |spec: &ContainerSpec| spec.policy(self.spec.restart_policy);
        let works = |(spec, status): (&ContainerSpec, &ContainerStatus)| {
            status.state.running.is_some() && !policy(spec).restarts(0)
        };
        let is_over = |(spec, status): (&ContainerSpec, &ContainerStatus)| {
            let ended = status.state.terminated.as_ref();
            ended.is_some_and(|ended| !policy(spec).restarts(ended.exit_code))
        };
        let all_are_over = containers.clone().all(is_over) && containers.clone().next().is_some();
        all_are_over || containers.any(works)
    }

    /// The terminations after which a container may be in back-off, init containers first.
    fn terminations(&self) -> Vec<Termination> {
        let mut terminations = Vec::new();
        // An init container that has succeeded is done.
        let init_policy = match self.spec.restart_policy {
            RestartPolicy::Always => RestartPolicy::OnFailure,
            policy => policy,
        };
        let init = &self.status.init_container_statuses;
        for (spec, status) in paired(&self.spec.init_containers, init) {
            terminations.extend(termination(status, spec.policy(init_policy)));
            if !spec.is_sidecar() && !status.has_succeeded() {
                // All others wait for it: they may still show how they ended before a reboot.
                return terminations;
            }
        }
        let statuses = &self.status.container_statuses;
        let containers = paired(&self.spec.containers, statuses);
        terminations.extend(containers.filter_map(|(spec, status)| {
            termination(status, spec.policy(self.spec.restart_policy))
        }));
        terminations
    }
}

/// Each container that has a status, in the order of the spec.
fn paired<'p>(
    specs: &'p [ContainerSpec],
    statuses: &'p [ContainerStatus],
) -> impl Iterator<Item = (&'p ContainerSpec, &'p ContainerStatus)> + Clone {
    specs.iter().filter_map(|spec| {
        let mut statuses = statuses.iter();
        Some((spec, statuses.find(|status| status.name == spec.name)?))
    })
}

/// The termination of a container that is restarted with a back-off if its policy is this: after its
/// first end, or after a long run, it is restarted at once.
fn termination(status: &ContainerStatus, policy: RestartPolicy) -> Option<Termination> {
    let ended = status.state.terminated.as_ref()?;
    let waits = policy.restarts(ended.exit_code) && status.restart_count > 0 && ended.ended_soon();
    waits.then(|| Termination {
        container: status.name.clone(),
        restarts: status.restart_count,
    })
}

#[cfg(test)]
mod tests;
