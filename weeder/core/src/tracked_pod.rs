//! A pod that may be deleted as soon as a window is open: from when on, and when to retry.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use common_core::backoff::doubling;

use crate::deletion::{Deletion, Outcome};
use crate::verdict::{CrashLoop, DeletionCandidate, Termination};

/// A container that is restarted at once is seen terminated for less than this; the shortest
/// back-off is ten times as long.
const RESTARTED_WITHIN: Duration = Duration::from_secs(1);
/// The wait after the first failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait without the API server's asking for it: short against a watchDuration of
/// minutes.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest wait that the API server may ask for, as the prober's. Also the longest after
/// refusals: only a person ends those, and each attempt is a 403 and an error in the log, seven for
/// a pod in the usual window of 5 minutes.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct TrackedPod {
    pub(crate) candidate: DeletionCandidate,
    /// When each of its terminations was first seen.
    terminations: HashMap<Termination, Instant>,
    /// From when on it counts as crash-looping.
    crash_loops_from: Instant,
    attempt: Attempt,
    failures: u32,
    refusals: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// To be deleted from then on, unless a DELETE is in flight: not tried yet, or to be retried.
    NotBefore(Instant),
    /// Refused: to be retried then, after a change of the pod, or in another window.
    Refused(Instant),
    /// Deleted; the watch will show when it is gone.
    Deleted,
    /// It has changed since it was judged: the watch will show how it is now.
    Outdated,
}

impl TrackedPod {
    pub(crate) fn new(candidate: DeletionCandidate, now: Instant) -> Self {
        let mut pod = Self {
            candidate,
            terminations: HashMap::new(),
            crash_loops_from: now,
            attempt: Attempt::NotBefore(now),
            failures: 0,
            refusals: 0,
        };
        pod.update_terminations(now);
        pod
    }

    /// The pod has changed, or another one has its name.
    pub(crate) fn apply(&mut self, candidate: DeletionCandidate, now: Instant) {
        if candidate.uid != self.candidate.uid {
            *self = Self::new(candidate, now);
            return;
        }
        self.candidate = candidate;
        self.update_terminations(now);
        if matches!(self.attempt, Attempt::Refused(_) | Attempt::Outdated) {
            self.attempt = Attempt::NotBefore(now);
        }
    }

    /// Another window opens: failures and refusals in an earlier one do not delay it.
    pub(crate) fn reset_waits(&mut self, now: Instant) {
        if matches!(self.attempt, Attempt::NotBefore(_) | Attempt::Refused(_)) {
            (self.attempt, self.failures, self.refusals) = (Attempt::NotBefore(now), 0, 0);
        }
    }

    /// From when on it may be deleted; none: not before it changes.
    pub(crate) fn due_from(&self) -> Option<Instant> {
        match self.attempt {
            Attempt::NotBefore(then) | Attempt::Refused(then) => {
                Some(then.max(self.crash_loops_from))
            }
            Attempt::Deleted | Attempt::Outdated => None,
        }
    }

    pub(crate) fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.attempt = match outcome {
            Outcome::Deleted | Outcome::Gone => Attempt::Deleted,
            // The watch may have been faster than the answer.
            Outcome::Changed if self.candidate.resource_version != deletion.resource_version => {
                Attempt::NotBefore(now)
            }
            Outcome::Changed => Attempt::Outdated,
            Outcome::Retry(Some(retry_after)) => {
                self.failures += 1;
                Attempt::NotBefore(now + retry_after.min(MAX_RETRY_AFTER))
            }
            Outcome::Retry(None) | Outcome::Unknown => {
                self.failures += 1;
                Attempt::NotBefore(now + doubling(FIRST_WAIT, self.failures, MAX_WAIT))
            }
            Outcome::Refused => {
                self.refusals += 1;
                Attempt::Refused(now + doubling(MAX_WAIT, self.refusals, MAX_RETRY_AFTER))
            }
        };
    }

    /// A termination that was seen before keeps its time.
    fn update_terminations(&mut self, now: Instant) {
        let known = std::mem::take(&mut self.terminations);
        if let CrashLoop::Terminated(terminations) = &self.candidate.crash_loop {
            let first_seen = |shown| *known.get(shown).unwrap_or(&now);
            self.terminations = terminations
                .iter()
                .map(|shown| (shown.clone(), first_seen(shown)))
                .collect();
        }
        let first = self.terminations.values().min();
        self.crash_loops_from = first.map_or(now, |first| *first + RESTARTED_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(first: Duration, longest: Duration) -> Vec<u128> {
        (1..=7)
            .map(|attempts| doubling(first, attempts, longest).as_millis())
            .collect()
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        let expected = [500, 1000, 2000, 4000, 8000, 10_000, 10_000];
        assert_eq!(waits(FIRST_WAIT, MAX_WAIT), expected);
        assert_eq!(doubling(FIRST_WAIT, u32::MAX, MAX_WAIT), MAX_WAIT);
    }

    #[test]
    fn waits_after_refusals_double_up_to_a_minute() {
        let expected = [10_000, 20_000, 40_000, 60_000, 60_000, 60_000, 60_000];
        assert_eq!(waits(MAX_WAIT, MAX_RETRY_AFTER), expected);
    }

    #[test]
    fn the_api_server_may_ask_for_another_wait_up_to_a_minute() {
        for (asked, granted) in [(7, 7), (3600, 60)] {
            let now = Instant::now();
            let candidate = DeletionCandidate {
                uid: "uid".to_owned(),
                resource_version: "1".to_owned(),
                owner: "owner".to_owned(),
                services: Vec::new(),
                crash_loop: CrashLoop::Reported,
            };
            let mut pod = TrackedPod::new(candidate, now);
            let deletion = Deletion {
                pod: common_core::change::Key {
                    namespace: String::new(),
                    name: String::new(),
                },
                uid: "uid".to_owned(),
                resource_version: "1".to_owned(),
            };
            let outcome = Outcome::Retry(Some(Duration::from_secs(asked)));
            pod.ended(&deletion, outcome, now);
            assert_eq!(pod.due_from(), Some(now + Duration::from_secs(granted)));
        }
    }
}
