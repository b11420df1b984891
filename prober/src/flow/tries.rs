//! How often, after which pause and for how long it is tried to bring one resource to where it should be.

use std::time::Duration;

use crate::core::plan::Direction;
use crate::write::WriteError;

/// Attempts per resource and the pause between them (rule 60).
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// A conflict says that somebody else wrote, not that the API server is ill, so more of them are borne.
const CONFLICTS: u32 = 10;
/// How long protection waits for one answer before it asks anew on another connection, within the dependent's timeout: as long as
/// connecting may take, and half of the 10 s, a renewal's interval, that lie at most between the verdict and the first node's end.
/// If the write was made although nobody told us, the next one is refused, since it names a version that is gone.
const PROTECTIVE_ANSWER: Duration = Duration::from_secs(5);
/// The longest that a Retry-After of the seed holds up protection: its deadline is kube-controller-manager's grace.
const MAX_THROTTLE: Duration = Duration::from_secs(1);

/// What it has taken so far.
pub(super) struct Tries {
    /// The dependent's own, for each attempt.
    timeout: Duration,
    /// The longest wait for one answer.
    patience: Duration,
    /// Which attempt this is, from 1.
    attempt: u32,
    /// What is left of the timeout for this attempt.
    left: Duration,
    conflicts: u32,
    /// Whether the initial delay was waited.
    pub(super) delayed: bool,
}

impl Tries {
    /// Before the first.
    pub(super) fn new(direction: Direction, timeout: Duration) -> Self {
        let patience = match direction {
            Direction::Down => timeout.min(PROTECTIVE_ANSWER),
            Direction::Up => timeout,
        };
        Self { timeout, patience, attempt: 1, left: timeout, conflicts: 0, delayed: false }
    }

    /// How long the next request may take.
    pub(super) fn limit(&self) -> Duration {
        self.left.min(self.patience)
    }

    /// Whether the resource is to be read from the API server itself, since what was known of it was out of date.
    pub(super) fn read_anew(&self) -> bool {
        self.conflicts > 0
    }

    /// The pause before the next try; none when this was the last.
    pub(super) fn pause_after(&mut self, error: &WriteError) -> Option<Duration> {
        match error {
            WriteError::Conflict | WriteError::StoodStill if self.conflicts < CONFLICTS => self.conflicts += 1,
            WriteError::Timeout if self.left > self.patience => self.left -= self.patience,
            _ if self.attempt == ATTEMPTS => return None,
            _ => {
                self.attempt += 1;
                self.left = self.timeout;
            }
        }
        Some(match error {
            WriteError::Throttled(Some(after)) => (*after).min(MAX_THROTTLE),
            _ => PAUSE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits of all requests that time out one after the other.
    fn limits(direction: Direction, timeout: u64) -> Vec<u64> {
        let mut tries = Tries::new(direction, Duration::from_secs(timeout));
        let mut limits = vec![tries.limit().as_secs()];
        while tries.pause_after(&WriteError::Timeout).is_some() {
            limits.push(tries.limit().as_secs());
        }
        limits
    }

    #[test]
    fn protection_waits_little_for_each_answer_and_as_long_as_ever_for_all() {
        assert_eq!(limits(Direction::Down, 12), [5, 5, 2, 5, 5, 2, 5, 5, 2]);
        assert_eq!(limits(Direction::Down, 3), [3, 3, 3]);
        assert_eq!(limits(Direction::Up, 12), [12, 12, 12]);
    }

    #[test]
    fn a_conflict_costs_no_attempt() {
        let mut tries = Tries::new(Direction::Down, Duration::from_secs(30));
        for _ in 0..CONFLICTS {
            assert_eq!(tries.pause_after(&WriteError::Conflict), Some(PAUSE));
            assert!(tries.read_anew());
        }
        let more = std::iter::from_fn(|| tries.pause_after(&WriteError::Conflict)).count();
        assert_eq!(more, ATTEMPTS as usize - 1);
    }
}
