//! Deletions of pods: what was sent, how it went, and when to retry.

use std::time::{Duration, Instant};

use common_core::backoff::doubling;
use common_core::change::Key;

use super::verdict::{CrashLoop, DeletionCandidate, Termination};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub pod: Key,
    /// Which of all pods of that name: the DELETE holds for no other (D-43).
    pub uid: String,
    /// Which state of it: in another one it may have got well (D-43).
    pub resource_version: String,
    /// The UID of the pod's controller.
    pub owner: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Deleted,
    /// There was no such pod any more, or another one under its name. That is as good.
    Gone,
    /// The pod is not as it was when it was judged: the watch shows how it is.
    Changed,
    /// It did not happen and can be retried, not before this time if one is given.
    Later(Option<Duration>),
    /// It may have happened, and can be retried.
    Unknown,
    /// It is refused until somebody grants it or stops to forbid it.
    Refused,
}

/// A pod that may be deleted, as far as it goes by itself, and what has come of it so far.
#[derive(Debug)]
pub struct Tracked {
    pub candidate: DeletionCandidate,
    /// When each of its terminations was first seen.
    terminations: Vec<(Termination, Instant)>,
    /// When terminations alone make a crash loop of it; none: it is one.
    crash_loops_from: Option<Instant>,
    attempt: Attempt,
    failures: u32,
    refusals: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// To be deleted as soon as a window is open, unless a DELETE is in flight.
    Due,
    /// Failed: to be retried then.
    NotBefore(Instant),
    /// Deleted; the watch will show when it is gone.
    Done,
    /// Refused: to be retried then, after a change of the pod, or in another window.
    Refused(Instant),
    /// It is not as it was when it was judged: the watch will show how it is.
    Outdated,
}

impl Tracked {
    pub fn new(candidate: DeletionCandidate, now: Instant) -> Self {
        let (terminations, crash_loops_from) = follow_terminations(&candidate.crash_loop, &[], now);
        Self {
            candidate,
            terminations,
            crash_loops_from,
            attempt: Attempt::Due,
            failures: 0,
            refusals: 0,
        }
    }

    /// The pod has changed, or another one has its name.
    pub fn apply(&mut self, candidate: DeletionCandidate, now: Instant) {
        if candidate.uid != self.candidate.uid {
            *self = Self::new(candidate, now);
            return;
        }
        (self.terminations, self.crash_loops_from) =
            follow_terminations(&candidate.crash_loop, &self.terminations, now);
        self.candidate = candidate;
        if matches!(self.attempt, Attempt::Refused(_) | Attempt::Outdated) {
            self.attempt = Attempt::Due;
        }
    }

    /// Another window is there: whatever held the pod back has to do with an earlier one.
    pub fn start_over(&mut self) {
        if matches!(self.attempt, Attempt::NotBefore(_) | Attempt::Refused(_)) {
            (self.attempt, self.failures, self.refusals) = (Attempt::Due, 0, 0);
        }
    }

    /// When time alone makes it due.
    pub fn next(&self) -> Option<Instant> {
        match self.attempt {
            Attempt::Due => self.crash_loops_from,
            Attempt::NotBefore(then) | Attempt::Refused(then) => {
                self.crash_loops_from.max(Some(then))
            }
            Attempt::Done | Attempt::Outdated => None,
        }
    }

    pub fn is_due(&mut self, now: Instant) -> bool {
        if self.next().is_some_and(|then| then <= now) {
            (self.attempt, self.crash_loops_from) = (Attempt::Due, None);
        }
        self.attempt == Attempt::Due && self.crash_loops_from.is_none()
    }

    pub fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.attempt = match outcome {
            Outcome::Deleted | Outcome::Gone => Attempt::Done,
            // The watch may have been faster than the answer.
            Outcome::Changed if self.candidate.resource_version != deletion.resource_version => {
                Attempt::Due
            }
            Outcome::Changed => Attempt::Outdated,
            Outcome::Later(retry_after) => {
                Attempt::NotBefore(now + wait(one_more(&mut self.failures), retry_after))
            }
            Outcome::Unknown => Attempt::NotBefore(now + wait(one_more(&mut self.failures), None)),
            Outcome::Refused => Attempt::Refused(now + wait_refused(one_more(&mut self.refusals))),
        };
    }
}

/// A container that is restarted at once is seen terminated for less than this; the shortest
/// back-off is ten times as long.
const RESTARTED_WITHIN: Duration = Duration::from_secs(1);

/// When each termination was first seen, and when the first of them has lasted for long enough.
fn follow_terminations(
    shown: &CrashLoop,
    known: &[(Termination, Instant)],
    now: Instant,
) -> (Vec<(Termination, Instant)>, Option<Instant>) {
    let CrashLoop::Terminated(shown) = shown else {
        return (Vec::new(), None);
    };
    let since = |shown: &Termination| {
        known
            .iter()
            .find(|(known, _)| known == shown)
            .map_or(now, |(_, since)| *since)
    };
    let terminations: Vec<_> = shown
        .iter()
        .map(|shown| (shown.clone(), since(shown)))
        .collect();
    let first = terminations
        .iter()
        .map(|(_, since)| *since + RESTARTED_WITHIN)
        .min();
    (terminations, first)
}

fn one_more(count: &mut u32) -> u32 {
    *count = count.saturating_add(1);
    *count
}

/// The wait after the first failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait without the API server's asking for it: short against a watchDuration of
/// minutes.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest wait that the API server may ask for, as the prober's.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The wait before the next retry, after so many failures in a row.
fn wait(failures: u32, retry_after: Option<Duration>) -> Duration {
    match retry_after {
        Some(asked) => asked.min(MAX_RETRY_AFTER),
        None => doubling(FIRST_WAIT, failures, MAX_WAIT),
    }
}

/// The wait after so many refusals. Nothing ends that but a person: each try is a 403 and an
/// error in the log, seven for a pod in the usual window of 5 minutes.
fn wait_refused(refusals: u32) -> Duration {
    doubling(MAX_WAIT, refusals, MAX_RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits: Vec<u128> = (1..=7)
            .map(|failures| wait(failures, None).as_millis())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(wait(u32::MAX, None), MAX_WAIT);
    }

    #[test]
    fn waits_after_refusals_double_up_to_a_minute() {
        let waits: Vec<u64> = (1..=5)
            .map(|refusals| wait_refused(refusals).as_secs())
            .collect();
        assert_eq!(waits, [10, 20, 40, 60, 60]);
        assert_eq!(wait_refused(u32::MAX), MAX_RETRY_AFTER);
    }

    #[test]
    fn the_api_server_may_ask_for_another_wait_up_to_a_minute() {
        assert_eq!(
            wait(1, Some(Duration::from_secs(7))),
            Duration::from_secs(7)
        );
        assert_eq!(
            wait(9, Some(Duration::from_secs(3600))),
            Duration::from_secs(60)
        );
    }
}
