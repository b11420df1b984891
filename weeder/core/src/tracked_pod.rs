//! A pod that may be deleted as soon as a window is open: from when on, and when to retry.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use common_core::backoff::doubling;

use crate::deletion::{Deletion, Outcome};
use crate::verdict::{CrashLoop, DeletionCandidate, Termination};

/// A container that is restarted at once is seen terminated for less than this: kubelets up to 1.35
/// show it so for about 2 s, others until its image, volumes and postStart hook are done. The
/// shortest back-off is 10 s.
const RESTARTED_WITHIN: Duration = Duration::from_secs(4);
/// The wait after the first failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait without the API server's asking for it: short against a watchDuration of
/// minutes.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest wait that the API server may ask for, as the prober's.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct TrackedPod {
    pub(crate) candidate: DeletionCandidate,
    /// When the pod was first seen to crash-loop.
    pub(crate) seen: Instant,
    /// When each of its terminations was first seen.
    terminations: HashMap<Termination, Instant>,
    /// From when on it counts as crash-looping.
    crash_loops_from: Instant,
    attempt: Attempt,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// To be deleted from then on, unless a DELETE is in flight: not tried yet, or to be retried.
    NotBefore(Instant),
    /// Deleted; the watch will show when it is gone.
    Deleted,
    /// It has changed since it was judged: the watch will show how it is now.
    Outdated,
}

impl TrackedPod {
    pub(crate) fn new(candidate: DeletionCandidate, now: Instant) -> Self {
        let mut pod = Self {
            candidate,
            seen: now,
            terminations: HashMap::new(),
            crash_loops_from: now,
            attempt: Attempt::NotBefore(now),
            failures: 0,
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
        if self.attempt == Attempt::Outdated {
            self.attempt = Attempt::NotBefore(now);
        }
    }

    /// Another window opens: failures in an earlier one do not delay it.
    pub(crate) fn reset_waits(&mut self, now: Instant) {
        if matches!(self.attempt, Attempt::NotBefore(_)) {
            (self.attempt, self.failures) = (Attempt::NotBefore(now), 0);
        }
    }

    /// Whether a DELETE of it has failed in this window.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// From when on it may be deleted; none: not before it changes.
    pub(crate) fn due_from(&self) -> Option<Instant> {
        match self.attempt {
            Attempt::NotBefore(then) => Some(then.max(self.crash_loops_from)),
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
            // Its namespace is held back.
            Outcome::Refused => {
                self.failures += 1;
                Attempt::NotBefore(now)
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

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits = [1, 2, 3, 4, 5, 6, 7, u32::MAX]
            .map(|failures| doubling(FIRST_WAIT, failures, MAX_WAIT).as_millis());
        let expected = [500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000];
        assert_eq!(waits, expected);
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
