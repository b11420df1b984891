//! May a pod be deleted when a Service it waits for is back (rule 76, D-44, D-45)?

use super::selector::Labels;
use crate::config::Service;
use crate::pod::Pod;

/// The reason a container waits with after it has crashed again and again.
const CRASH_LOOP: &str = "CrashLoopBackOff";
/// The annotation of a pod that stands for one which a kubelet runs from a file, whatever the API server holds.
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
}

/// Judges a pod; none when it is left alone: it ends already, does not crash-loop, or nobody would make it again.
pub fn judge(pod: &Pod, services: &[Service]) -> Option<DeletionCandidate> {
    let metadata = &pod.metadata;
    let is_mirror = metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR));
    let crash_loops = pod.status.waiting_reasons().any(|reason| reason == CRASH_LOOP);
    if metadata.deletion_timestamp.is_some() || !crash_loops || is_mirror {
        return None;
    }
    let owner = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
    let none = Labels::new();
    let labels = metadata.labels.as_ref().unwrap_or(&none);
    let selects = |service: &Service| service.selectors.iter().any(|selector| selector.matches(labels));
    let services: Vec<usize> =
        services.iter().enumerate().filter(|(_, service)| selects(service)).map(|(place, _)| place).collect();
    let [uid, resource_version] = [&metadata.uid, &metadata.resource_version].map(|text| text.clone().unwrap_or_default());
    (!services.is_empty()).then(|| DeletionCandidate { uid, resource_version, owner: owner.uid.clone(), services })
}

#[cfg(test)]
mod tests;
