//! A pod that may be deleted while a window is open: its earliest deletion time, and its retries.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use common_core::backoff::doubling;

use crate::deletion::{Deletion, Outcome};
use crate::verdict::{CrashLoop, DeletionCandidate, Termination};

/// Upper bound for how long a container that is restarted immediately appears terminated: kubelets
/// up to 1.35 show it so for about 2 s, others until its image, volumes and postStart hook are
/// done. The shortest backoff is 10 s.
const RESTARTED_WITHIN: Duration = Duration::from_secs(4);
/// Delay after the first failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Maximum delay without a `Retry-After`; short compared to a watchDuration of minutes.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Maximum `Retry-After` that is respected, equal to the prober's.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct TrackedPod {
    pub(crate) candidate: DeletionCandidate,
    /// Time at which the pod was first observed to crash-loop.
    pub(crate) seen: Instant,
    /// Time at which each of its terminations was first observed.
    terminations: HashMap<Termination, Instant>,
    /// Time from which it counts as crash-looping.
    crash_loops_from: Instant,
    attempt: Attempt,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// Not tried yet, or to be retried: to be deleted at this time unless a DELETE is in flight.
    NotBefore(Instant),
    /// Deleted; the watch will report when it is gone.
    Deleted,
    /// Changed after it was judged; the watch will deliver its new state.
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

    /// Applies a change of the pod, or another pod with its name.
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

    /// True if a DELETE of it has failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Earliest deletion time, or `None` if the pod must change first.
    pub(crate) fn due_from(&self) -> Option<Instant> {
        match self.attempt {
            Attempt::NotBefore(then) => Some(then.max(self.crash_loops_from)),
            Attempt::Deleted | Attempt::Outdated => None,
        }
    }

    pub(crate) fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.attempt = match outcome {
            Outcome::Deleted | Outcome::Gone => Attempt::Deleted,
            // The watch may have been faster than the response.
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
            // Its namespace is held back instead.
            Outcome::Refused => {
                self.failures += 1;
                Attempt::NotBefore(now)
            }
        };
    }

    /// Updates the terminations. Known ones keep their time.
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
