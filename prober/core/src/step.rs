//! Progress of a scaling with one dependent.

use super::moment::Moment;
use super::replicas::PlannedWrite;
use super::retry::Retry;
use crate::shoot::Requirement;

#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub stage: Stage,
    pub retry: Retry,
    pub began: Moment,
    /// True if its initialDelay was waited for.
    pub delayed: bool,
    pub written: bool,
    /// Requirement that was reported last.
    pub said: Option<Requirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No scaling is under way, or it has not come to this level.
    #[default]
    Closed,
    /// It is to be decided on, from this moment on.
    Due(Moment),
    AwaitingPermit,
    /// It is being read from the API server, since what was known of it was out of date.
    Reading,
    /// This is under way since that moment.
    Writing(PlannedWrite, Moment),
    /// It is where it should be; since when, if its replicas were written and it is not known to be
    /// ready yet.
    Done(Option<Moment>),
    /// All attempts have failed. A restore tries again after a back-off.
    Failed,
}

impl Stage {
    /// True if something is under way that can be cancelled.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(
            self,
            Self::AwaitingPermit | Self::Reading | Self::Writing(..)
        )
    }

    pub(crate) fn is_settled(&self) -> bool {
        matches!(self, Self::Closed | Self::Done(None) | Self::Failed)
    }
}

impl Step {
    /// Is due from a moment on.
    pub(crate) fn begin(&mut self, from: Moment) {
        (self.stage, self.began) = (Stage::Due(from), from);
    }
}
