//! Attempts to scale one dependent: their number, the pauses between them and the time for each.

use std::time::Duration;

use common_core::backoff::doubling;

use super::moment::Moment;
use super::plan::Direction;
use super::refusal::Refusal;
use super::replicas::{Observed, PlannedWrite};
use super::span;

/// Attempts per resource and the pause between them (rule 60).
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// Longest wait of a protective write for an answer before it is sent again on another connection:
/// as long as connecting may take, and half of the 10 s, a renewal's interval, that lie at most
/// between the verdict and the first node's end. This happens once in an attempt; the new
/// connection gets all that is left of the dependent's timeout, for an API server that is merely
/// slow. If the write was made although no answer came, the next one is refused, since it names a
/// version that is gone.
const PROTECTIVE_ANSWER: Duration = Duration::from_secs(5);
/// Longest delay of protection by a Retry-After of the seed: its deadline is
/// kube-controller-manager's grace.
const MAX_THROTTLE: Duration = Duration::from_secs(1);

/// Wait after all attempts have failed, which doubles each time (D-74), and the longest: where a
/// right is missing in a thousand shoots, their restores make no more than the 5 writes a second
/// that all restores have by default.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Longest wait while the API server is in trouble, which ends for all at once.
const LONGEST_WAIT_IN_TROUBLE: Duration = Duration::from_secs(15);

/// Wait before the next attempts for a dependent that could not be scaled.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct ScalingBackoff {
    failures: u32,
    pub again_at: Moment,
}

impl ScalingBackoff {
    pub(crate) fn failed(&mut self, refusal: &Refusal, now: Moment) {
        let longest = match refusal {
            Refusal::Timeout
            | Refusal::NoAnswer(_)
            | Refusal::Throttled(_)
            | Refusal::Unavailable { .. } => LONGEST_WAIT_IN_TROUBLE,
            _ => LONGEST_WAIT,
        };
        self.failures = self.failures.saturating_add(1);
        self.again_at = now + span(doubling(FIRST_WAIT, self.failures, longest));
    }
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Retry {
    /// Time for each attempt, by the config.
    timeout: Duration,
    /// Longest wait for the first answer of an attempt.
    patience: Duration,
    /// Number of the attempt, from 1.
    attempt: u32,
    /// Rest of the timeout for this attempt.
    left: Duration,
    /// Last write that was sent and not answered.
    unanswered: Option<PlannedWrite>,
}

impl Retry {
    pub(crate) fn new(direction: Direction, timeout: Duration) -> Self {
        let patience = match direction {
            Direction::Down => timeout.min(PROTECTIVE_ANSWER),
            Direction::Up => timeout,
        };
        Self {
            timeout,
            patience,
            attempt: 1,
            left: timeout,
            unanswered: None,
        }
    }

    /// Creates one with a single attempt.
    pub(crate) fn once(direction: Direction, timeout: Duration) -> Self {
        Self {
            attempt: ATTEMPTS,
            ..Self::new(direction, timeout)
        }
    }

    /// True if an attempt has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.attempt > 1
    }

    pub(crate) fn limit(&self) -> Duration {
        if self.is_patient() {
            self.left
        } else {
            self.patience
        }
    }

    fn is_patient(&self) -> bool {
        self.left < self.timeout
    }

    pub(crate) fn failed(&mut self, change: PlannedWrite, refusal: &Refusal) {
        if matches!(refusal, Refusal::Timeout | Refusal::NoAnswer(_)) {
            self.unanswered = Some(change);
        }
    }

    /// Returns the write that was made although no answer came, if that is why the resource, as it
    /// is `now`, needs no other.
    pub(crate) fn landed(&mut self, now: &Observed) -> Option<PlannedWrite> {
        self.unanswered.take().filter(|change| change.is_done(now))
    }

    /// Pause before the next try; `None` after the last.
    pub(crate) fn pause_after(&mut self, refusal: &Refusal) -> Option<Duration> {
        match refusal {
            Refusal::Timeout if !self.is_patient() && self.patience < self.timeout => {
                self.left -= self.patience
            }
            _ if self.attempt == ATTEMPTS => return None,
            _ => {
                self.attempt += 1;
                self.left = self.timeout;
            }
        }
        Some(match refusal {
            &Refusal::Throttled(Some(after)) => after.min(MAX_THROTTLE),
            _ => PAUSE,
        })
    }
}

#[cfg(test)]
mod tests;
