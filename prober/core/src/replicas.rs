//! Replica memory: a dependent's replicas and annotations, and the single write that follows from
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use go_compat::flag::boolean;

use super::verdict::Scope;

/// Stores the number of replicas to restore.
pub const REPLICAS: &str = "dependency-watchdog.gardener.cloud/replicas";
/// Marks a resource that is held down. gardenlet checks its presence.
pub const MELTDOWN_PROTECTION_ACTIVE: &str =
    "dependency-watchdog.gardener.cloud/meltdown-protection-active";
/// Set by operators to exclude a resource from scaling.
pub const IGNORE_SCALING: &str = "dependency-watchdog.gardener.cloud/ignore-scaling";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    pub uid: String,
    /// Precondition of a write based on this state.
    pub resource_version: String,
    pub replicas: i32,
    /// `status.readyReplicas`; 0 when absent.
    pub ready: i32,
    pub marks: Marks,
}

impl Observed {
    /// True if it is the same resource with the same replicas and annotations, regardless of its
    /// pods.
    pub fn is_same_state(&self, other: &Self) -> bool {
        (&self.uid, self.replicas, &self.marks) == (&other.uid, other.replicas, &other.marks)
    }

    /// True if `other` is not newer: an earlier resource of the name, or the same one in a state that
    /// is no later.
    pub(crate) fn is_no_older_than(&self, other: &Self) -> bool {
        other.is_older_than(self) || self.uid == other.uid && !self.is_older_than(other)
    }

    /// True if this is certainly an older state than `other` of what has this name, or had it.
    /// Kubernetes' storage numbers its versions in ascending order, whatever the resource.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        let number = |observed: &Self| observed.resource_version.parse::<u64>().ok();
        matches!((number(self), number(other)), (Some(this), Some(other)) if this < other)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DependentState {
    /// The seed's view is not filled, or has been broken for too long.
    #[default]
    Unknown,
    Unscalable(Unscalable),
    Absent,
    Present(Arc<Observed>),
}

/// Reason why no dependent of a kind, or this one, can be scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unscalable {
    #[error("no such kind, or its plural is unusual")]
    NoSuchKind,
    #[error("it has no spec.replicas")]
    NoReplicas,
}

impl DependentState {
    /// True if nothing relevant to scaling has changed.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Present(one), Self::Present(other)) => one.is_same_state(other),
            _ => self == other,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub replicas: Option<String>,
    /// True if [`MELTDOWN_PROTECTION_ACTIVE`] is present, whatever its value.
    pub held_down: bool,
    /// True if [`IGNORE_SCALING`] has one of Go's values for true.
    pub ignored: bool,
}

impl Marks {
    pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let value = |key: &str| annotations.and_then(|annotations| annotations.get(key));
        Self {
            replicas: value(REPLICAS).cloned(),
            held_down: value(MELTDOWN_PROTECTION_ACTIVE).is_some(),
            ignored: value(IGNORE_SCALING).is_some_and(|word| boolean(word) == Ok(true)),
        }
    }

    /// The remembered replicas if they are an integer from 1 to 2147483647 in the syntax of Go's
    /// `Atoi`, which Rust's parser shares: a sign is allowed, blanks and underscores are not.
    pub fn remembered(&self) -> Option<i32> {
        self.replicas
            .as_deref()?
            .parse()
            .ok()
            .filter(|&replicas| replicas >= 1)
    }
}

/// A change of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// Marks after the write.
    pub marks: Marks,
    /// `None` keeps the replicas.
    pub replicas: Option<i32>,
    /// True if the memory was unusable and 1 is used instead. Logged and counted.
    pub used_default_replicas: bool,
}

/// A write, and the state that it is based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWrite {
    pub base: Arc<Observed>,
    pub write: Write,
}

impl PlannedWrite {
    /// Replicas after the write.
    pub fn replicas(&self) -> i32 {
        self.write.replicas.unwrap_or(self.base.replicas)
    }

    /// State after the write.
    pub fn after(&self, resource_version: String) -> Observed {
        Observed {
            resource_version,
            replicas: self.replicas(),
            marks: self.write.marks.clone(),
            ..Observed::clone(&self.base)
        }
    }

    /// True if the resource is in the state that this write leads to.
    pub fn is_done(&self, now: &Observed) -> bool {
        let Self { base, write } = self;
        let marked = write.marks.held_down == base.marks.held_down
            || write.marks.held_down == now.marks.held_down;
        marked
            && base.uid == now.uid
            && write
                .replicas
                .is_none_or(|replicas| now.replicas == replicas)
    }
}

/// Write for a resource with `ignore-scaling`, in either direction: removes the marker so that
/// gardenlet reconciles the resource.
fn ignored(marks: &Marks) -> Option<Write> {
    marks.held_down.then(|| set_marker(marks, false))
}

/// Write that only sets or removes the marker and keeps memory and replicas.
fn set_marker(marks: &Marks, held_down: bool) -> Write {
    Write {
        marks: Marks {
            held_down,
            ..marks.clone()
        },
        ..Write::default()
    }
}

/// Write that scales a resource to 0 and remembers its replicas, or `None` if there is nothing to
/// do. A valid memory under a marker is never overwritten, and 0 is never remembered. A marker that
/// somebody removed from a resource at 0 with a valid memory is set again: a late patch of a Go
/// replica can do that.
pub fn scale_down(observed: &Observed, was_held_down: bool) -> Option<Write> {
    let marks = &observed.marks;
    if marks.ignored {
        return ignored(marks);
    }
    if observed.replicas <= 0 {
        let lost = was_held_down && !marks.held_down && marks.remembered().is_some();
        return lost.then(|| set_marker(marks, true));
    }
    let remembered = marks.held_down && marks.remembered().is_some();
    let replicas = if remembered {
        marks.replicas.clone()
    } else {
        Some(observed.replicas.to_string())
    };
    Some(Write {
        marks: Marks {
            replicas,
            held_down: true,
            ignored: false,
        },
        replicas: Some(0),
        used_default_replicas: false,
    })
}

/// Write that restores a resource and removes its memory, or `None` if there is nothing to do.
/// `only_held_down` is the setting `restoreOnlyHeldDown`.
pub fn scale_up(observed: &Observed, scope: Scope, only_held_down: bool) -> Option<Write> {
    let marks = &observed.marks;
    if marks.ignored {
        return ignored(marks);
    }
    if observed.replicas > 0 {
        return marks.held_down.then(Write::default);
    }
    if !marks.held_down && (only_held_down || scope == Scope::HeldDown) {
        return None;
    }
    let remembered = marks.remembered();
    let used_default_replicas =
        remembered.is_none() && (marks.held_down || marks.replicas.is_some());
    Some(Write {
        marks: Marks::default(),
        replicas: Some(remembered.unwrap_or(1)),
        used_default_replicas,
    })
}

#[cfg(test)]
mod tests;
