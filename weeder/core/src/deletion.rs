//! One DELETE of a pod, and how it ended.

use std::time::Duration;

use common_core::change::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub pod: Key,
    /// A precondition of the DELETE: it never hits another pod of that name (D-43).
    pub uid: String,
    /// A precondition, too: a pod that has changed may have recovered (D-43).
    pub resource_version: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Deleted,
    /// There was no such pod any more, or another one under its name. That is as good.
    Gone,
    /// The pod has changed since it was judged: the watch shows how it is now.
    Changed,
    /// It was not deleted and can be retried, not before this time if one is given.
    Retry(Option<Duration>),
    /// It may have been deleted, and can be retried.
    Unknown,
    /// The API server refuses it until somebody grants the right or changes an admission policy.
    Refused,
}
