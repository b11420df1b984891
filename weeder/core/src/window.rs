//! The time in which pods that wait for a Service are deleted.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use super::deletion::{Deletion, Outcome};
use super::news::{Cause, End, Event};
use super::verdict::DeletionCandidate;

/// First windows open within this time. They are no emergency, and a seed may have hundreds of
/// shoots.
const MAX_SPREAD: Duration = Duration::from_secs(30);
/// ... and within this part of watchDuration, so that short ones are still full.
const SPREAD_PART: u32 = 10;

#[derive(Debug)]
pub(crate) struct Window {
    cause: Cause,
    opens: Instant,
    closes: Instant,
    is_open: bool,
    /// The pods that count as deleted, by their owner's UID and their own. True: an earlier DELETE
    /// may have done it, so that a pod stays counted whatever becomes of the next.
    counted: HashMap<String, HashMap<String, bool>>,
}

impl Window {
    /// A window that opens at this instant, for this long.
    pub(crate) fn new(cause: Cause, opens: Instant, duration: Duration) -> Self {
        Self {
            cause,
            opens,
            closes: opens + duration,
            is_open: false,
            counted: HashMap::new(),
        }
    }

    /// Lets time go on; what happens by that.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<Event> {
        if self.is_over(now) {
            return self.is_open.then_some(Event::Closed(End::Over));
        }
        let opens = !self.is_open && now >= self.opens;
        self.is_open |= opens;
        opens.then_some(Event::Opened(self.cause))
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.closes
    }

    /// Whether it was open when time last went on.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// When time changes it next.
    pub(crate) const fn next(&self) -> Instant {
        if self.is_open {
            self.closes
        } else {
            self.opens
        }
    }

    /// Whether this pod may be deleted: it is counted already, or one more of its owner's may be
    /// (D-46).
    fn has_room(&self, pod: &DeletionCandidate, limit: Option<u32>) -> bool {
        let Some((counted, limit)) = self.counted.get(&pod.owner).zip(limit) else {
            return true;
        };
        counted.contains_key(&pod.uid) || counted.len() < limit as usize
    }

    fn charge(&mut self, pod: &DeletionCandidate) {
        self.counted
            .entry(pod.owner.clone())
            .or_default()
            .entry(pod.uid.clone())
            .or_default();
    }

    /// What was not deleted after all is not counted any more.
    pub(crate) fn ended(&mut self, deletion: &Deletion, outcome: Outcome) {
        let Some(counted) = self.counted.get_mut(&deletion.owner) else {
            return;
        };
        let Some(stays) = counted.get_mut(&deletion.uid) else {
            return;
        };
        *stays |= matches!(outcome, Outcome::Deleted | Outcome::Unknown);
        if !*stays {
            counted.remove(&deletion.uid);
        }
    }
}

/// Whether a pod may be deleted because of one of these windows, by the places of their Services,
/// which opened for this cause. All that are open for it count it then.
pub(crate) fn charge(
    windows: &mut BTreeMap<usize, Window>,
    pod: &DeletionCandidate,
    cause: Cause,
    limit: Option<u32>,
) -> bool {
    let is_open = |(service, window): &(&usize, &mut Window)| {
        window.is_open && pod.services.contains(service)
    };
    let mut open: Vec<&mut Window> = windows
        .iter_mut()
        .filter(is_open)
        .map(|(_, window)| window)
        .collect();
    let has_room = open
        .iter()
        .any(|window| window.cause == cause && window.has_room(pod, limit));
    if has_room {
        open.iter_mut().for_each(|window| window.charge(pod));
    }
    has_room
}

/// How long after the start the first window of a ready Service opens: spread evenly, always the
/// same for the same Service.
pub(crate) fn spread(namespace: &str, service: usize, duration: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (namespace, service).hash(&mut hasher);
    let part = (hasher.finish() >> 32) as f64 / f64::from(u32::MAX);
    MAX_SPREAD.min(duration / SPREAD_PART).mul_f64(part)
}

#[cfg(test)]
mod tests {
    use common_core::change::Key;

    use super::*;
    use crate::verdict::CrashLoop;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_window_is_ahead_then_opens_once_and_is_over_after_its_duration() {
        let start = Instant::now();
        let mut window = Window::new(Cause::Start, start + MINUTE, 5 * MINUTE);
        assert_eq!(
            (window.advance(start), window.is_open(), window.next()),
            (None, false, start + MINUTE)
        );
        let opened = Some(Event::Opened(Cause::Start));
        assert_eq!(
            (
                window.advance(start + MINUTE),
                window.is_open(),
                window.next()
            ),
            (opened, true, start + 6 * MINUTE)
        );
        let shortly_before = start + 6 * MINUTE - Duration::from_nanos(1);
        assert_eq!(
            (
                window.advance(shortly_before),
                window.is_over(shortly_before)
            ),
            (None, false)
        );
        let end = start + 6 * MINUTE;
        assert_eq!(
            (window.advance(end), window.is_over(end)),
            (Some(Event::Closed(End::Over)), true)
        );
    }

    #[test]
    fn a_window_that_nobody_looked_at_in_its_time_is_over() {
        let start = Instant::now();
        let mut window = Window::new(Cause::Recovery, start, MINUTE);
        assert_eq!(
            (window.advance(start + 2 * MINUTE), window.is_open()),
            (None, false)
        );
        assert!(window.is_over(start + 2 * MINUTE));
    }

    fn pod(owner: &str, uid: &str) -> DeletionCandidate {
        let crash_loop = CrashLoop::Reported;
        DeletionCandidate {
            uid: uid.into(),
            resource_version: String::new(),
            owner: owner.into(),
            services: vec![],
            crash_loop,
        }
    }

    fn ended(
        window: &mut Window,
        DeletionCandidate {
            uid,
            owner,
            resource_version,
            ..
        }: DeletionCandidate,
        outcome: Outcome,
    ) {
        let pod = Key {
            namespace: String::new(),
            name: String::new(),
        };
        window.ended(
            &Deletion {
                pod,
                uid,
                resource_version,
                owner,
            },
            outcome,
        );
    }

    #[test]
    fn each_owner_has_a_limit_of_its_own() {
        let mut window = Window::new(Cause::Recovery, Instant::now(), MINUTE);
        [pod("a", "1"), pod("a", "2"), pod("b", "3")]
            .iter()
            .for_each(|pod| window.charge(pod));
        assert!(!window.has_room(&pod("a", "4"), Some(2)));
        assert!(window.has_room(&pod("a", "2"), Some(2)), "counted already");
        assert!(window.has_room(&pod("b", "4"), Some(2)));
        assert!(window.has_room(&pod("c", "4"), Some(1)));
        assert!(window.has_room(&pod("a", "4"), None));
        ended(&mut window, pod("a", "1"), Outcome::Later(None));
        ended(&mut window, pod("never charged", "5"), Outcome::Later(None));
        assert!(window.has_room(&pod("a", "4"), Some(2)));
    }

    #[test]
    fn what_may_have_been_deleted_stays_counted_whatever_becomes_of_the_next_delete() {
        for certain in [Outcome::Deleted, Outcome::Unknown] {
            let mut window = Window::new(Cause::Recovery, Instant::now(), MINUTE);
            for outcome in [certain, Outcome::Gone] {
                window.charge(&pod("a", "1"));
                ended(&mut window, pod("a", "1"), outcome);
            }
            assert!(!window.has_room(&pod("a", "2"), Some(1)), "{certain:?}");
        }
    }

    #[test]
    fn first_windows_are_spread_over_a_tenth_of_their_duration_and_at_most_half_a_minute() {
        let spreads = |duration| -> Vec<Duration> {
            (0..300)
                .map(|shoot| spread(&format!("shoot--garden--{shoot}"), shoot % 2, duration))
                .collect()
        };
        for (duration, limit) in [
            (5 * MINUTE, MINUTE / 2),
            (MINUTE, MINUTE / 10),
            (600 * MINUTE, MINUTE / 2),
        ] {
            let spreads = spreads(duration);
            assert!(spreads.iter().all(|spread| *spread <= limit));
            for third in 0..3 {
                let (from, to) = (limit * third / 3, limit * (third + 1) / 3);
                let count = spreads
                    .iter()
                    .filter(|spread| **spread >= from && **spread < to)
                    .count();
                assert!(
                    (50..150).contains(&count),
                    "{count} of 300 between {from:?} and {to:?}"
                );
            }
        }
    }
}
