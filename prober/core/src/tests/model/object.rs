//! The dependent as the API server holds it, and what must hold of it whoever writes.

use crate::replicas::{Marks, Observed, Write};

/// Its state, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelObject {
    /// The state that is shown to all.
    pub shown: Observed,
    /// Replicas when it was first held down; `None` once somebody else has touched the annotations.
    owed: Option<i32>,
    /// True if a Go replica still has the second of its two writes to make.
    go: Option<GoSecondWrite>,
}

/// A Go replica's second write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GoSecondWrite {
    ScalesDown,
    TakesTheMarker,
}

/// A change by others.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    Scale(i32),
    ToggleIgnore,
    DeleteMemory,
    DeleteMarker,
    GarbleMemory,
    /// gardenlet wants two replicas, unless it finds the marker.
    Reconcile,
    /// Operators pause the shoot, or go on.
    Pause,
}

impl Edit {
    pub const ALL: [Self; 9] = [
        Self::Scale(0),
        Self::Scale(1),
        Self::Scale(3),
        Self::ToggleIgnore,
        Self::DeleteMemory,
        Self::DeleteMarker,
        Self::GarbleMemory,
        Self::Reconcile,
        Self::Pause,
    ];
}

impl ModelObject {
    pub fn running(replicas: i32) -> Self {
        Self {
            shown: crate::tests::scene::running(replicas),
            owed: None,
            go: None,
        }
    }

    pub fn remembered(&self) -> Option<i32> {
        self.shown
            .marks
            .replicas
            .as_deref()?
            .parse()
            .ok()
            .filter(|&replicas| replicas >= 1)
    }

    /// It changes: what rests on how it was is out of date.
    fn change(&mut self, replicas: i32, marks: Marks) {
        if (replicas, &marks) != (self.shown.replicas, &self.shown.marks) {
            let version: u64 = self.shown.resource_version.parse().expect("a number");
            let resource_version = (version + 1).to_string();
            // Pods follow at once.
            self.shown = Observed {
                uid: self.shown.uid.clone(),
                resource_version,
                replicas,
                ready: replicas,
                marks,
            };
        }
    }

    pub fn edit(&mut self, edit: Edit) {
        let (mut replicas, mut marks) = (self.shown.replicas, self.shown.marks.clone());
        match edit {
            Edit::Scale(to) => replicas = to,
            Edit::ToggleIgnore => marks.ignored = !marks.ignored,
            Edit::DeleteMemory => (marks.replicas, self.owed) = (None, None),
            Edit::GarbleMemory => (marks.replicas, self.owed) = (Some("x".into()), None),
            Edit::DeleteMarker => (marks.held_down, self.owed) = (false, None),
            Edit::Reconcile if marks.held_down => {}
            Edit::Reconcile => replicas = 2,
            Edit::Pause => {}
        }
        self.change(replicas, marks);
    }

    /// The API server takes a write of ours. Says which rule the write breaks.
    pub fn apply(&mut self, write: &Write) -> Result<(), String> {
        let before = self.clone();
        self.change(
            write.replicas.unwrap_or(before.shown.replicas),
            write.marks.clone(),
        );
        if write.marks.replicas.as_deref() == Some("0") {
            return Err("0 is remembered".into());
        }
        if before.shown.marks.held_down
            && before.remembered().is_some()
            && self.shown.marks.replicas != before.shown.marks.replicas
        {
            if self.remembered().is_some() {
                return Err("the memory of what is held down is overwritten".into());
            }
            if self.shown.replicas == 0 {
                return Err("the memory of what is held down is lost".into());
            }
        }
        if before.shown.replicas == 0
            && self.shown.replicas > 0
            && before
                .remembered()
                .is_some_and(|owed| owed != self.shown.replicas)
        {
            return Err("what comes back is not what is remembered".into());
        }
        if before.shown.replicas > 0
            && self.shown.replicas == 0
            && !(self.shown.marks.held_down && self.remembered().is_some())
        {
            return Err("held down without a memory".into());
        }
        match (before.shown.marks.held_down, self.shown.marks.held_down) {
            (false, true) if before.shown.replicas > 0 => self.owed = Some(before.shown.replicas),
            (_, false) => self.owed = None,
            _ => {}
        }
        Ok(())
    }

    /// True if a Go replica that leads has something to write.
    pub fn go_has_work(&self, outage: bool) -> bool {
        let marks = &self.shown.marks;
        self.go.is_some()
            || !marks.ignored
                && if outage {
                    self.shown.replicas > 0
                } else {
                    self.shown.replicas == 0
                }
    }

    /// The Go replica's next write: the annotations first, then the replicas; on the way up the
    /// other way round, and the marker last, however late that is.
    pub fn go_works(&mut self, outage: bool) {
        let (replicas, mut marks) = (self.shown.replicas, self.shown.marks.clone());
        self.owed = None;
        match self.go.take() {
            Some(GoSecondWrite::ScalesDown) => self.change(0, marks),
            Some(GoSecondWrite::TakesTheMarker) => {
                marks.held_down = false;
                self.change(replicas, marks);
            }
            None if outage => {
                self.go = Some(GoSecondWrite::ScalesDown);
                (marks.replicas, marks.held_down) = (Some(replicas.to_string()), true);
                self.change(replicas, marks);
            }
            None => {
                self.go = Some(GoSecondWrite::TakesTheMarker);
                let replicas = self.remembered().unwrap_or(1);
                self.change(replicas, marks);
            }
        }
    }

    /// The invariants of every state.
    pub fn check(&self) -> Result<(), String> {
        match (self.owed, self.shown.marks.held_down) {
            (Some(owed), true) if self.remembered() != Some(owed) => Err(format!(
                "{owed} ran when it was held down, which is not what is remembered"
            )),
            _ => Ok(()),
        }
    }
}
