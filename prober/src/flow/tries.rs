//! How often, after which pause and for how long it is tried to bring one resource to where it should be.

use std::time::Duration;

use crate::core::memory::{Observed, Write};
use crate::core::plan::Direction;
use crate::write::WriteError;

/// Attempts per resource and the pause between them (rule 60).
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// A conflict says that somebody else wrote, not that the API server is ill, so more of them are borne.
const CONFLICTS: u32 = 10;
/// How long protection waits for an answer before it asks anew on another connection: as long as connecting may take, and half of
/// the 10 s, a renewal's interval, that lie at most between the verdict and the first node's end. It does so once in an attempt; the
/// new connection is given all that is left of the dependent's timeout, for an API server that is merely slow.
/// If the write was made although nobody told us, the next one is refused, since it names a version that is gone.
const PROTECTIVE_ANSWER: Duration = Duration::from_secs(5);
/// The longest that a Retry-After of the seed holds up protection: its deadline is kube-controller-manager's grace.
const MAX_THROTTLE: Duration = Duration::from_secs(1);

/// What it has taken so far.
pub(super) struct Tries {
    /// The dependent's own, for each attempt.
    timeout: Duration,
    /// The longest wait for the first answer of an attempt.
    patience: Duration,
    /// Which attempt this is, from 1.
    attempt: u32,
    /// What is left of the timeout for this attempt.
    left: Duration,
    conflicts: u32,
    /// Whether the initial delay was waited.
    pub(super) delayed: bool,
    /// The last write that was sent and not answered, and what it was based on.
    unanswered: Option<(Observed, Write)>,
}

impl Tries {
    /// Before the first.
    pub(super) fn new(direction: Direction, timeout: Duration) -> Self {
        let patience = match direction {
            Direction::Down => timeout.min(PROTECTIVE_ANSWER),
            Direction::Up => timeout,
        };
        Self { timeout, patience, attempt: 1, left: timeout, conflicts: 0, delayed: false, unanswered: None }
    }

    /// How long the next request may take.
    pub(super) fn limit(&self) -> Duration {
        if self.is_patient() { self.left } else { self.patience }
    }

    /// Whether this attempt has asked anew already.
    fn is_patient(&self) -> bool {
        self.left < self.timeout
    }

    /// Whether the resource is to be read from the API server itself, since what was known of it was out of date.
    pub(super) fn read_anew(&self) -> bool {
        self.conflicts > 0
    }

    /// Notes a write that was sent, and what came of it.
    pub(super) fn sent(&mut self, (observed, write): (&Observed, &Write), result: &Result<(), WriteError>) {
        let unanswered = matches!(result, Err(WriteError::Timeout | WriteError::NoAnswer(_)));
        if unanswered {
            self.unanswered = Some((observed.clone(), write.clone()));
        }
    }

    /// The write that was made although nobody told us, if that is why there is nothing to do with the resource as it is `now`.
    pub(super) fn landed(&mut self, now: &Observed) -> Option<(Observed, Write)> {
        self.unanswered.take().filter(|(before, write)| before.uid == now.uid && write.is_done(now))
    }

    /// The pause before the next try; none when this was the last.
    pub(super) fn pause_after(&mut self, error: &WriteError) -> Option<Duration> {
        match error {
            WriteError::Conflict | WriteError::StoodStill if self.conflicts < CONFLICTS => self.conflicts += 1,
            WriteError::Timeout if !self.is_patient() && self.patience < self.timeout => self.left -= self.patience,
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
    use crate::core::memory::{Marks, scale_down};

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
    fn protection_asks_anew_soon_and_then_waits_as_long_as_ever() {
        assert_eq!(limits(Direction::Down, 12), [5, 7, 5, 7, 5, 7]);
        assert_eq!(limits(Direction::Down, 5), [5, 5, 5]);
        assert_eq!(limits(Direction::Down, 3), [3, 3, 3]);
        assert_eq!(limits(Direction::Up, 12), [12, 12, 12]);
    }

    #[test]
    fn a_write_without_an_answer_is_known_by_what_it_leaves() {
        let before = Observed { uid: "u".into(), replicas: 2, ..Observed::default() };
        let write = scale_down(&before).unwrap();
        let marks = Marks { replicas: Some("2".into()), held_down: true, ignored: false };
        let after = Observed { replicas: 0, marks, ..before.clone() };
        let landed = |result: Result<(), WriteError>, now: &Observed| {
            let mut tries = Tries::new(Direction::Down, Duration::from_secs(30));
            tries.sent((&before, &write), &result);
            tries.landed(now).is_some()
        };
        assert!(landed(Err(WriteError::Timeout), &after));
        assert!(!landed(Err(WriteError::Conflict), &after), "somebody else did it");
        assert!(!landed(Err(WriteError::Timeout), &Observed { uid: "another".into(), ..after.clone() }));
        assert!(!landed(Err(WriteError::Timeout), &Observed { replicas: 0, ..before.clone() }), "not marked");
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
