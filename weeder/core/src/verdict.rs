//! Decides whether a pod may be deleted once a Service it depends on is ready again.

use kube_core::ObjectMeta;
use strum::IntoStaticStr;

use crate::config::{ServiceName, Services};
use crate::pod::{ContainerSpec, ContainerStatus, PodSpec, PodStatus, RestartPolicy};
use crate::selector::Labels;

const CRASH_LOOP: &str = "CrashLoopBackOff";
/// Annotation of a mirror pod, which its kubelet runs from a file regardless of the API server.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Kind of the only owner that creates no replacement.
const NODE: &str = "Node";
/// Kind of the owner for which a deletion is a failure of the pod: it counts against `backoffLimit`.
const JOB: &str = "Job";

/// A pod that may be deleted, reduced to what is kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionCandidate {
    pub uid: String,
    /// Version of the pod that was judged.
    pub resource_version: String,
    /// UID of the owner that will create a replacement: its controller, if it has one.
    pub owner: String,
    /// Services whose selectors match it.
    pub services: Vec<ServiceName>,
    pub crash_loop: CrashLoop,
}

/// Evidence that a pod crash-loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrashLoop {
    /// A container waits in CrashLoopBackOff.
    Reported,
    /// Terminated containers that will be restarted, and are in backoff if they stay so. A kubelet
    /// writes the status, enters the backoff, and writes again when that ends or a minute later:
    /// until then the status shows nothing else.
    Terminated(Vec<Termination>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Termination {
    pub container: String,
    /// Restart count of the container before this termination.
    pub restarts: i32,
}

/// Reason why a pod is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Spared {
    IsBeingDeleted,
    DoesNotCrashLoop,
    NobodyRecreatesIt,
    /// Its Job would count the deletion as a failure.
    IsOfJob,
    NoSelectorMatches,
}

/// Judges a pod; fails if it must be left alone.
pub fn judge(
    metadata: &ObjectMeta,
    spec: &PodSpec,
    status: &PodStatus,
    services: &Services,
) -> Result<DeletionCandidate, Spared> {
    let is_mirror = metadata
        .annotations
        .as_ref()
        .is_some_and(|annotations| annotations.contains_key(MIRROR));
    let crash_loop = crash_loop(spec, status).ok_or(Spared::DoesNotCrashLoop)?;
    if metadata.deletion_timestamp.is_some() {
        return Err(Spared::IsBeingDeleted);
    }
    let owners = metadata.owner_references.iter().flatten();
    let owner = owners
        .filter(|owner| owner.kind != NODE)
        .max_by_key(|owner| owner.controller == Some(true))
        .filter(|_| !is_mirror)
        .ok_or(Spared::NobodyRecreatesIt)?;
    if owner.kind == JOB {
        return Err(Spared::IsOfJob);
    }
    let none = Labels::new();
    let labels = metadata.labels.as_ref().unwrap_or(&none);
    let services = services.iter().filter(|(_, dependants)| {
        let mut selectors = dependants.selectors();
        selectors.any(|selector| selector.matches(labels))
    });
    let services: Vec<ServiceName> = services.map(|(name, _)| name.clone()).collect();
    if services.is_empty() {
        return Err(Spared::NoSelectorMatches);
    }
    Ok(DeletionCandidate {
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

/// Containers of a pod with their spec and status.
struct Containers<'p> {
    spec: &'p PodSpec,
    status: &'p PodStatus,
}

impl<'p> Containers<'p> {
    /// True if nobody would repeat the pod's work: a container is running that is not restarted
    /// after success, or all have terminated for good. A sidecar that terminates after them is no
    /// reason to delete the pod.
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

    /// Terminations after which a container may be in backoff, init containers first.
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
                // All others wait for it and may still show how they terminated before a reboot.
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

/// Containers that have a status, in the order of the spec.
fn paired<'p>(
    specs: &'p [ContainerSpec],
    statuses: &'p [ContainerStatus],
) -> impl Iterator<Item = (&'p ContainerSpec, &'p ContainerStatus)> + Clone {
    specs.iter().filter_map(|spec| {
        let mut statuses = statuses.iter();
        Some((spec, statuses.find(|status| status.name == spec.name)?))
    })
}

/// Termination of a container that is restarted with backoff under this policy. After its first
/// termination, or after a long run, it is restarted at once.
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
