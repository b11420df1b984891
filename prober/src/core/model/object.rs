//! One dependent in the model's few values, and what the core decides about it.

use crate::core::memory::{Mark, Marks, Observed, Write, scale_down, scale_up};
use crate::core::plan::Direction;
use crate::core::verdict::Scope;

/// What the annotation with the replicas says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    Absent,
    Says(u8),
    Garbage,
}

/// A dependent as the API server holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    pub replicas: u8,
    pub memory: Memory,
    pub marker: bool,
    pub ignored: bool,
}

impl Object {
    /// What is true whoever wrote last.
    pub fn is_usable(self) -> bool {
        matches!(self.memory, Memory::Says(1..))
    }

    fn observed(self) -> Observed {
        let replicas = match self.memory {
            Memory::Absent => None,
            Memory::Says(replicas) => Some(replicas.to_string()),
            Memory::Garbage => Some("x".to_owned()),
        };
        let marks = Marks { replicas, held_down: self.marker, ignored: self.ignored };
        Observed { replicas: self.replicas.into(), marks, ..Observed::default() }
    }
}

/// What to do with an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change<T> {
    Keep,
    Set(T),
    Remove,
}

/// A write to an object; the annotations or the replicas may be left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Patch {
    pub memory: Change<u8>,
    pub marker: Change<()>,
    pub replicas: Option<u8>,
}

impl Patch {
    pub fn annotations(self) -> Self {
        Self { replicas: None, ..self }
    }

    pub fn scale(self) -> Self {
        Self { memory: Change::Keep, marker: Change::Keep, ..self }
    }

    pub fn apply(self, object: Object) -> Object {
        Object {
            replicas: self.replicas.unwrap_or(object.replicas),
            memory: match self.memory {
                Change::Keep => object.memory,
                Change::Set(replicas) => Memory::Says(replicas),
                Change::Remove => Memory::Absent,
            },
            marker: match self.marker {
                Change::Keep => object.marker,
                Change::Set(()) => true,
                Change::Remove => false,
            },
            ignored: object.ignored,
        }
    }
}

impl From<Write> for Patch {
    fn from(write: Write) -> Self {
        let small = |replicas: i32| u8::try_from(replicas).expect("the model's replicas are few");
        let memory = match write.memory {
            None => Change::Keep,
            Some(Mark::Remove) => Change::Remove,
            Some(Mark::Set(value)) => Change::Set(value.parse().expect("a number is remembered")),
        };
        let marker = match write.marker {
            None => Change::Keep,
            Some(Mark::Remove) => Change::Remove,
            Some(Mark::Set(_)) => Change::Set(()),
        };
        Self { memory, marker, replicas: write.replicas.map(small) }
    }
}

/// What the core decides about an object. Without `remembers` (D-31) a memory under a marker counts for nothing on the way down.
pub fn decide(object: Object, direction: Direction, scope: Scope, remembers: bool) -> Option<Patch> {
    let mut observed = object.observed();
    let write = match direction {
        Direction::Down => {
            if !remembers {
                observed.marks.replicas = None;
            }
            scale_down(&observed)
        }
        Direction::Up => scale_up(&observed, scope, false),
    };
    write.map(Patch::from)
}
