//! Replica memory: what a dependent's replicas and annotations say, and the one write that follows
//! (D-29 to D-33).

use std::collections::BTreeMap;
use std::sync::Arc;

use common_core::flag::boolean;

use super::verdict::Scope;

/// Holds the number of replicas to return to.
pub const REPLICAS: &str = "dependency-watchdog.gardener.cloud/replicas";
/// Marks a resource that is held down; gardenlet reads its presence (rules 90, 91).
pub const MELTDOWN_PROTECTION_ACTIVE: &str =
    "dependency-watchdog.gardener.cloud/meltdown-protection-active";
/// The operators' way to say: hands off.
pub const IGNORE_SCALING: &str = "dependency-watchdog.gardener.cloud/ignore-scaling";

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Observed {
    pub uid: String,
    /// The precondition of a write that is based on this.
    pub resource_version: String,
    pub replicas: i32,
    /// `status.readyReplicas`; 0 when absent.
    pub ready: i32,
    pub marks: Marks,
}

impl Observed {
    /// Whether it is as the other: the same resource with the same replicas and annotations of
    /// ours, whatever its pods do (D-52).
    pub(crate) fn is_same_state(&self, other: &Self) -> bool {
        (&self.uid, self.replicas, &self.marks) == (&other.uid, other.replicas, &other.marks)
    }

    /// Whether the other is the same resource in a state that is not newer.
    pub(crate) fn is_no_older_than(&self, other: &Self) -> bool {
        self.uid == other.uid && !self.is_older_than(other)
    }

    /// Whether this is certain to be an older state of the resource than `other`. Kubernetes' own
    /// storage numbers its versions.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        let number = |observed: &Self| observed.resource_version.parse::<u64>().ok();
        self.uid == other.uid
            && matches!((number(self), number(other)), (Some(this), Some(other)) if this < other)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum DependentState {
    /// Nothing: the seed's view of it is not filled, or has been broken for too long (D-27).
    #[default]
    Unknown,
    NoSuchKind,
    Absent,
    Present(Arc<Observed>),
}

impl DependentState {
    /// True if nothing that matters for scaling has changed.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Present(one), Self::Present(other)) => one.is_same_state(other),
            _ => self == other,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks {
    pub replicas: Option<String>,
    /// Whether [`MELTDOWN_PROTECTION_ACTIVE`] is present, whatever its value.
    pub held_down: bool,
    /// Whether [`IGNORE_SCALING`] is one of Go's words for true.
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

    /// The remembered replicas, if they are a whole number from 1 to 2147483647 in the syntax of
    /// Go's Atoi, which Rust's own parser shares (a sign is allowed, blanks and underscores are
    /// not).
    pub fn remembered(&self) -> Option<i32> {
        self.replicas
            .as_deref()?
            .parse()
            .ok()
            .filter(|&replicas| replicas >= 1)
    }
}

/// What is written to one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Write {
    /// Its marks as they are then.
    pub marks: Marks,
    /// None keeps them.
    pub replicas: Option<i32>,
    /// The memory was unusable, so that 1 is used: to be logged and counted.
    pub used_default_replicas: bool,
}

/// A write, and the state that it changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlannedWrite {
    pub base: Arc<Observed>,
    pub write: Write,
}

impl PlannedWrite {
    /// The replicas after it.
    pub fn replicas(&self) -> i32 {
        self.write.replicas.unwrap_or(self.base.replicas)
    }

    /// How the resource is after it.
    pub fn after(&self, resource_version: String) -> Observed {
        Observed {
            resource_version,
            replicas: self.replicas(),
            marks: self.write.marks.clone(),
            ..Observed::clone(&self.base)
        }
    }

    /// Whether a resource is as it is once this was written.
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

/// What an operator who says `ignore-scaling` gets in either direction: no marker, so that
/// gardenlet reconciles the resource (rule 67).
fn ignored(marks: &Marks) -> Option<Write> {
    marks.held_down.then(|| set_marker(marks, false))
}

/// The write that only sets or removes the marker; memory and replicas stay.
fn set_marker(marks: &Marks, held_down: bool) -> Write {
    Write {
        marks: Marks {
            held_down,
            ..marks.clone()
        },
        ..Write::default()
    }
}

/// The write that takes a resource to 0 and remembers its replicas; none when there is nothing to
/// do. A valid memory under a marker is never overwritten (D-31), and 0 is never remembered. A
/// marker that was seen there, and that somebody took from what is at 0 with a valid memory, is set
/// again, as a late patch of a Go replica's can do.
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

/// The write that brings a resource back and forgets its replicas (D-30); none when there is
/// nothing to do. `only_held_down` is the setting `restoreOnlyHeldDown`.
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
