//! Failures to scale a dependent.

use std::time::Duration;

use chrono::TimeDelta;
use common_core::backoff::doubling;
use strum::IntoStaticStr;

use crate::plan::Direction;
use crate::replicas::{DependentState, Unscalable};
use crate::span;

/// Attempts that follow each other closely and the pause between them, as in the Go original.
pub(crate) const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// Back-off after that, which doubles, and the longest wait of the seed's own word: protection must
/// beat kube-controller-manager's grace period.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest back-off of protection: while the verdict is new, and later.
const LONGEST_URGENT: Duration = Duration::from_secs(1);
const LONGEST_DOWN: Duration = Duration::from_secs(5);
/// Longest back-off of a restore. If a permission is missing for a thousand shoots, their restores
/// stay below the default limit of 5 writes per second for all restores.
const LONGEST_UP: Duration = Duration::from_secs(300);
/// The same while the API server is in trouble, which ends for all shoots at once.
const LONGEST_IN_TROUBLE: Duration = Duration::from_secs(15);

/// Reason why a dependent could not be read, written or scaled. Its name is a label of metrics and
/// logs.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr, thiserror::Error)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Refusal {
    /// This process does not lead, or may have lost leadership.
    #[error("this process does not lead")]
    NotLeading,
    /// The probe behind the write is out of date.
    #[error("this process was suspended")]
    Suspended,
    #[error("{0}")]
    Unscalable(Unscalable),
    /// The seed's view is not filled, or has been broken for too long.
    #[error("its state on the seed is not known at present")]
    SeedUnknown,
    /// A required dependent does not exist, or one was deleted.
    #[error("not found")]
    NotFound,
    /// It changed after the state that the request is based on; how it was read after that,
    /// unknown if that failed.
    #[error("it was changed in the meantime (409)")]
    Conflict(DependentState),
    /// The seed's API server did not confirm to a standby that the shoot is to be protected.
    #[error("the seed's API server does not confirm what is known of the shoot: {0}")]
    Unverified(String),
    #[error("the seed's API server asks to come back later (429)")]
    Throttled(Option<Duration>),
    /// 401 or 403: a permission is missing, or an admission webhook or policy refuses.
    #[error("access is denied ({code}): {said}")]
    #[strum(serialize = "forbidden")]
    Denied { code: u16, said: String },
    /// Any 5xx.
    #[error("the seed's API server answered {code}: {said}")]
    #[strum(serialize = "server")]
    Unavailable { code: u16, said: String },
    #[error("the seed's API server answered {code}: {said}")]
    Status { code: u16, said: String },
    #[error("not done within its timeout: deadline exceeded")]
    Timeout,
    #[error("no answer from the seed's API server: {0}")]
    NoAnswer(String),
}

impl Refusal {
    /// Wait before the next attempt, after so many failures in a row; `is_urgent` in the first
    /// seconds of an outage.
    pub(crate) fn wait(&self, direction: Direction, failures: u32, is_urgent: bool) -> TimeDelta {
        let longest = match direction {
            Direction::Down if is_urgent => LONGEST_URGENT,
            Direction::Down => LONGEST_DOWN,
            Direction::Up if self.is_trouble() => LONGEST_IN_TROUBLE,
            Direction::Up => LONGEST_UP,
        };
        span(match self {
            Self::Unverified(_) => FIRST_WAIT,
            &Self::Throttled(Some(after)) if failures < ATTEMPTS => after.min(FIRST_WAIT),
            _ if failures < ATTEMPTS => PAUSE,
            _ => doubling(FIRST_WAIT, failures + 1 - ATTEMPTS, longest),
        })
    }

    /// True if there was no answer.
    pub(crate) const fn may_have_been_made(&self) -> bool {
        matches!(self, Self::Timeout | Self::NoAnswer(_))
    }

    /// True if the API server itself is in trouble.
    const fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::Timeout | Self::NoAnswer(_) | Self::Throttled(_) | Self::Unavailable { .. }
        )
    }
}

#[cfg(test)]
mod tests;
