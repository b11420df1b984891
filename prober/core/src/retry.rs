//! Attempts to scale one dependent: their number, the pauses between them and the time for each.

use std::time::Duration;

use common_core::backoff::doubling;

use super::moment::Moment;
use super::plan::Direction;
use super::refusal::Refusal;
use super::replicas::{Observed, PlannedWrite};
use super::span;

/// Attempts per resource and the pause between them, as in the Go original.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// Time after which a protective request is retried on another connection: the connect timeout, and
/// half of the 10 s (one renewal interval) that lie at most between the verdict and the first node
/// being marked Unknown. This happens once per attempt. The new connection gets the rest of the
/// dependent's timeout in case the API server is merely slow. If the write succeeded without a
/// response, the next one conflicts, since it names an outdated version.
const PROTECTIVE_ANSWER: Duration = Duration::from_secs(5);
/// Maximum delay of protection by a `Retry-After` of the seed: protection must beat
/// kube-controller-manager's grace period.
const MAX_THROTTLE: Duration = Duration::from_secs(1);

/// Backoff after all attempts have failed, which doubles each time, and its maximum. If a
/// permission is missing for a thousand shoots, their restores stay below the default limit of 5
/// writes per second for all restores.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Maximum backoff while the API server is in trouble, which ends for all shoots at once.
const LONGEST_WAIT_IN_TROUBLE: Duration = Duration::from_secs(15);

/// Backoff of a dependent that could not be scaled.
#[derive(Clone, Debug, Default)]
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

#[derive(Clone, Debug, Default)]
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
