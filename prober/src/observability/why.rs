//! Reason for a dependent's state, in words. Pure.

use prober_core::config::Dependent;
use prober_core::replicas::{DependentState, scale_up};
use prober_core::verdict::Scope;
use serde::{Deserialize, Serialize};

/// Condition of a dependent, as far as it concerns the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Running,
    /// It carries the marker, whatever its replicas.
    HeldDown,
    /// It has no replicas and no marker.
    AtZero,
    /// `ignore-scaling` is set.
    Ignored,
    /// It does not exist, which is fine since it is optional.
    Absent,
    /// It does not exist, though it must.
    Missing,
    Unscalable,
    /// It could not be read, so that it may be held down or not.
    #[serde(other)]
    Unknown,
}

impl Condition {
    pub(super) fn of(dependent: &Dependent, state: &DependentState) -> Self {
        match state {
            DependentState::Unknown => Self::Unknown,
            DependentState::Unscalable(_) => Self::Unscalable,
            DependentState::Absent if dependent.optional => Self::Absent,
            DependentState::Absent => Self::Missing,
            DependentState::Present(observed) if observed.marks.ignored => Self::Ignored,
            DependentState::Present(observed) if observed.marks.held_down => Self::HeldDown,
            DependentState::Present(observed) if observed.replicas == 0 => Self::AtZero,
            DependentState::Present(_) => Self::Running,
        }
    }

    /// True if there is nothing to scale, though there must be.
    pub(super) fn is_missing(dependent: &Dependent, state: &DependentState) -> bool {
        match Self::of(dependent, state) {
            Self::Missing => true,
            Self::Unscalable => !dependent.optional,
            _ => false,
        }
    }
}

/// Says why a dependent is as it is, and what becomes of it.
pub(super) fn dependent(
    dependent: &Dependent,
    state: &DependentState,
    restore_only_held_down: bool,
) -> String {
    let observed = match state {
        DependentState::Unscalable(why) => {
            return format!("it cannot be scaled ({why}): it is not protected");
        }
        DependentState::Unknown => return "it could not be read".into(),
        DependentState::Absent if dependent.optional => return "it does not exist, which is no error since it is optional".into(),
        DependentState::Absent => return "it does not exist, though it must: a restore waits for it, for its timeout at most, before those of later levels".into(),
        DependentState::Present(observed) => observed,
    };
    let (replicas, ready, marks) = (observed.replicas, observed.ready, &observed.marks);
    if marks.ignored {
        return "it is annotated with ignore-scaling: the watchdog leaves it as it is".into();
    }
    if replicas > 0 {
        return match marks.held_down {
            true => "runs, and still carries the marker of a protection: the next healthy probe removes it".into(),
            false if ready < replicas => format!("runs, {ready} of {replicas} replicas are ready"),
            false => "runs".into(),
        };
    }
    let write = scale_up(observed, Scope::All, restore_only_held_down);
    let used_default = write
        .as_ref()
        .is_some_and(|write| write.used_default_replicas);
    let restored_to = write.and_then(|write| write.replicas);
    match (marks.held_down, restored_to) {
        (true, Some(replicas)) if used_default => format!(
            "held down by the watchdog; it comes back with {replicas} replica, since what is remembered ({:?}) cannot be used",
            marks.replicas.as_deref().unwrap_or("nothing")
        ),
        (true, restored_to) => format!(
            "held down by the watchdog while too few leases are renewed; it comes back with {} replicas",
            restored_to.unwrap_or(1)
        ),
        (false, Some(replicas)) => format!(
            "at 0, but not marked by the watchdog: somebody else scaled it; a healthy probe brings it back to {replicas}"
        ),
        (false, None) => {
            "at 0, but not marked by the watchdog: somebody else scaled it, and with restoreOnlyHeldDown it stays so".into()
        }
    }
}
