//! May a pod be deleted when a Service it waits for is back (rule 76, D-44, D-45)?

use super::selector::Labels;
use crate::config::Service;
use crate::pod::Pod;

/// The reason a container waits with after it has crashed again and again.
const CRASH_LOOP: &str = "CrashLoopBackOff";
/// The annotation of a pod that stands for one which a kubelet runs from a file.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    Ending,
    /// No container of it waits in CrashLoopBackOff.
    NotCrashing,
    /// It is a mirror pod: its kubelet runs it, whatever the API server holds.
    Mirror,
    /// It has no controller: nobody would make it again.
    NoController,
    NotSelected,
}

/// Judges a pod.
///
/// # Errors
/// Why it is left alone.
pub fn judge(pod: &Pod, services: &[Service]) -> Result<DeletionCandidate, SkipReason> {
    let metadata = &pod.metadata;
    if metadata.deletion_timestamp.is_some() {
        return Err(SkipReason::Ending);
    }
    if !pod.status.waiting_reasons().any(|reason| reason == CRASH_LOOP) {
        return Err(SkipReason::NotCrashing);
    }
    if metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR)) {
        return Err(SkipReason::Mirror);
    }
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.controller == Some(true)).ok_or(SkipReason::NoController)?;
    let none = Labels::new();
    let labels = metadata.labels.as_ref().unwrap_or(&none);
    let selects = |service: &Service| service.selectors.iter().any(|selector| selector.matches(labels));
    let services: Vec<usize> =
        services.iter().enumerate().filter(|(_, service)| selects(service)).map(|(place, _)| place).collect();
    if services.is_empty() {
        return Err(SkipReason::NotSelected);
    }
    let [uid, resource_version] = [&metadata.uid, &metadata.resource_version].map(|text| text.clone().unwrap_or_default());
    Ok(DeletionCandidate { uid, resource_version, owner: owner.uid.clone(), services })
}

#[cfg(test)]
mod tests;
