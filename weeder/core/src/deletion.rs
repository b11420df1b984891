//! One DELETE of a pod, and its outcome.

use std::time::Duration;

use common_core::change::Key;

use crate::config::ServiceName;
use crate::window::OpenReason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub pod: Key,
    /// Precondition of the DELETE: it never hits another pod of the same name.
    pub uid: String,
    /// Precondition as well: a pod that has changed may have recovered.
    pub resource_version: String,
    /// Service whose window it is deleted in, and why that is open.
    pub service: ServiceName,
    pub cause: OpenReason,
}

impl Deletion {
    /// Reason for the deletion, for people.
    pub fn because(&self) -> String {
        let service = &self.service;
        match self.cause {
            OpenReason::Recovery => format!("{service} is ready again"),
            OpenReason::Start => format!("{service} is ready"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Deleted,
    /// The pod no longer exists, or another one has its name, which is just as good.
    Gone,
    /// The pod changed after it was judged; the watch delivers its new state.
    Changed,
    /// Not deleted. Can be retried, after this delay if one is given.
    Retry(Option<Duration>),
    /// Possibly deleted. Can be retried.
    Unknown,
    /// The API server refuses it until somebody grants the permission or changes an admission
    /// policy.
    Refused,
}
