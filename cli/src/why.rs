//! Why things are as they are, in words. Pure.

use prober::owner_check::OwnerStatus;
use prober::seed::ClusterState;
use prober_core::config::Dependent;
use prober_core::owner::Ownership;
use prober_core::replicas::{DependentState, scale_up};
use prober_core::verdict::Scope;

use crate::output::{bad, good, plain, warn};

/// Why a shoot is probed, or not: the word that metrics use, and a sentence.
pub(crate) fn state(cluster: &ClusterState) -> (&'static str, String) {
    match &cluster.shoot {
        None => {
            return (
                "no_shoot",
                "its Cluster holds no shoot; a probe that ran before goes on".to_owned(),
            );
        }
        Some(Err(error)) => {
            return (
                "unreadable",
                format!(
                    "its Cluster cannot be understood ({error}); a probe that ran before goes on"
                ),
            );
        }
        Some(Ok(_)) => {}
    }
    let word = cluster.as_str();
    let sentence = match word {
        "probed" => "its control plane is there and meant to be: it is probed",
        "deleting" => "it is being deleted: it is not probed",
        "self_hosted" => "its control plane runs on its own nodes: it is not probed",
        "hibernated" => "it hibernates or is about to: it is not probed",
        "migrating" => {
            "its control plane moves to another seed, or has yet to come from one, whose watchdog looks after it: it is not probed here"
        }
        "workerless" => {
            "it has no worker pools, and so no nodes that could be lost: it is not probed"
        }
        "waking_up" => {
            "it is waking up from hibernation: no probe starts before its control plane is back"
        }
        _ => {
            "no Create, Restore or Reconcile has brought up its control plane yet: no probe starts before"
        }
    };
    (word, sentence.to_owned())
}

/// Why a dependent is as it is, and what will become of it.
pub(crate) fn dependent(
    dependent: &Dependent,
    state: &DependentState,
    restore_only_held_down: bool,
) -> String {
    let observed = match state {
        DependentState::NoSuchKind => {
            return "its kind does not exist or cannot be scaled on this seed: it is not protected".into();
        }
        DependentState::Unknown => return "it could not be read".into(),
        DependentState::Absent if dependent.optional => return "it does not exist, which is no error since it is optional".into(),
        DependentState::Absent => return "it does not exist, though it must: a scale-up stops before the resources of later levels".into(),
        DependentState::Present(observed) => observed,
    };
    let marks = &observed.marks;
    if marks.ignored {
        return "it is annotated with ignore-scaling: the watchdog leaves it as it is".into();
    }
    let back = scale_up(observed, Scope::All, restore_only_held_down)
        .and_then(|write| Some((write.replicas?, write.used_default_replicas)));
    match (observed.replicas, marks.held_down, back) {
        (..=0, true, Some((replicas, true))) => format!(
            "held down by the watchdog; it comes back with {replicas} replica, since what is remembered ({:?}) cannot be used",
            marks.replicas.as_deref().unwrap_or("nothing")
        ),
        (..=0, true, back) => format!(
            "held down by the watchdog while too few leases are renewed; it comes back with {} replicas",
            back.map_or(1, |(replicas, _)| replicas)
        ),
        (..=0, false, Some((replicas, _))) => {
            format!("at 0, but not marked by the watchdog: somebody else scaled it; a healthy probe brings it back to {replicas}")
        }
        (..=0, false, None) => {
            "at 0, but not marked by the watchdog: somebody else scaled it, and with restoreOnlyHeldDown it stays so".into()
        }
        (_, true, _) => "runs, and still carries the marker of a protection: the next healthy probe removes it".into(),
        (replicas, false, _) if observed.ready < replicas => {
            format!("runs, {} of {replicas} replicas are ready", observed.ready)
        }
        _ => "runs".into(),
    }
}

/// What the owner record of a shoot comes to, by one check from here.
pub(crate) fn owner(owner: &OwnerStatus) -> String {
    let sentence = plain(&owner.sentence());
    match owner.standing {
        Ownership::Ours => good(&format!("this seed: {sentence}")),
        Ownership::Elsewhere { .. } => bad(&format!(
            "another seed: {sentence}; a prober that finds it so neither probes nor writes it"
        )),
        _ => warn(&format!(
            "not known: {sentence}; a prober that finds it so for longer than is tolerated leaves it alone"
        )),
    }
}

pub(crate) fn verdict(word: &str) -> &'static str {
    match word {
        "scale_up" => "the nodes reach their API server",
        "scale_up_held_down" => {
            "the nodes that count reach their API server: what is held down may come back"
        }
        "scale_down" => "the nodes have lost the way to their API server",
        "hold_single_candidate" => {
            "only one node counts, and its lease is not known to be valid: nothing is concluded"
        }
        "hold_no_machines" => {
            "there are leases and not a single Machine: nothing is concluded until none was renewed for ten minutes"
        }
        _ => {
            "some leases cannot be judged yet, since their stamps may be wrong or no renewal was seen since something was taken down: nothing is concluded"
        }
    }
}

#[cfg(test)]
mod tests;
