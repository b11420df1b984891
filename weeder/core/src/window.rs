//! Windows in which pods that depend on a Service are deleted.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use common_core::backoff::doubling;
use strum::{IntoStaticStr, VariantNames};

use crate::config::ServiceName;
use crate::deletion::Outcome;
use crate::tracked_pod::TrackedPod;

/// First windows open within this time. They are not urgent, and a seed may have hundreds of
/// shoots.
const MAX_SPREAD: Duration = Duration::from_secs(30);
/// First windows open within this fraction of watchDuration, so that short ones are not cut off.
const SPREAD_PART: u32 = 10;
/// Delay before the replacements of an owner's first deleted pods are deleted in the same window,
/// doubling with each round, and its maximum. Both are a kubelet's.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Priority when capacity is short, highest first: first windows are not urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum OpenReason {
    /// The Service became ready, or has other ready endpoints than before the watch failed.
    Recovery,
    /// The Service was ready when this process became the leader.
    Start,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum CloseReason {
    Over,
    NotReady,
    /// Replaced by a new window.
    Renewed,
    /// The Service is no longer configured.
    Dropped,
}

/// Change of a window, for logs, metrics and the status page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowEvent {
    pub namespace: String,
    pub service: ServiceName,
    pub change: WindowChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowChange {
    Opened(OpenReason),
    Closed(CloseReason),
}

/// Windows of one namespace.
pub(crate) type Windows = BTreeMap<ServiceName, Window>;

#[derive(Debug)]
pub(crate) struct Window {
    reason: OpenReason,
    opens: Instant,
    closes: Instant,
    is_open: bool,
    /// Deleted pods per owner UID.
    losses: HashMap<String, Losses>,
}

/// Deleted pods of one owner in a window, in rounds: a round deletes the pods that existed when it
/// began, and their replacements wait for the next one.
#[derive(Debug, Default)]
struct Losses {
    /// Pods that count as deleted, by UID.
    counted: HashMap<String, Counted>,
    rounds: Vec<DeletionRound>,
}

#[derive(Debug)]
struct DeletionRound {
    began: Instant,
    pods: usize,
}

#[derive(Debug)]
struct Counted {
    /// Index of the round.
    round: usize,
    /// An earlier DELETE may have succeeded, so the outcome of the next one does not matter.
    is_final: bool,
}

impl Window {
    pub(crate) fn new(reason: OpenReason, opens: Instant, duration: Duration) -> Self {
        Self {
            reason,
            opens,
            closes: opens + duration,
            is_open: false,
            losses: HashMap::new(),
        }
    }

    /// Opens or closes the window if it is due.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<WindowChange> {
        if self.is_over(now) {
            return self
                .is_open
                .then_some(WindowChange::Closed(CloseReason::Over));
        }
        let opens = !self.is_open && now >= self.opens;
        self.is_open |= opens;
        opens.then_some(WindowChange::Opened(self.reason))
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.closes
    }

    /// True if it was open at the last [`Window::advance`].
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Next time at which it opens or closes.
    pub(crate) const fn next(&self) -> Instant {
        if self.is_open {
            self.closes
        } else {
            self.opens
        }
    }

    /// Earliest time at which this pod may be deleted, or `None` if its owner has reached its
    /// limit.
    fn allows_from(&self, pod: &TrackedPod, limit: Option<u32>) -> Option<Instant> {
        let losses = self.losses.get(&pod.candidate.owner);
        losses.map_or(Some(self.opens), |losses| losses.allow_from(pod, limit))
    }

    fn count(&mut self, pod: &TrackedPod, now: Instant) {
        let losses = self.losses.entry(pod.candidate.owner.clone()).or_default();
        losses.count(pod, now);
    }

    /// Records an outcome. Returns true if that frees capacity: a pod that was not deleted no
    /// longer counts.
    pub(crate) fn ended(&mut self, owner: &str, uid: &str, outcome: Outcome) -> bool {
        let losses = self.losses.get_mut(owner);
        losses.is_some_and(|losses| losses.ended(uid, outcome))
    }
}

impl Losses {
    fn allow_from(&self, pod: &TrackedPod, limit: Option<u32>) -> Option<Instant> {
        if self.counted.contains_key(&pod.candidate.uid) {
            return Some(pod.seen);
        }
        if limit.is_some_and(|limit| self.counted.len() >= limit as usize) {
            return None;
        }
        let last = self.rounds.last().filter(|last| pod.seen > last.began);
        Some(last.map_or(pod.seen, |last| {
            let rounds = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
            last.began + doubling(FIRST_WAIT, rounds, LONGEST_WAIT)
        }))
    }

    fn count(&mut self, pod: &TrackedPod, now: Instant) {
        let uid = &pod.candidate.uid;
        if self.counted.contains_key(uid) {
            return;
        }
        let last = self.rounds.last();
        if last.is_none_or(|last| pod.seen > last.began) {
            let round = DeletionRound {
                began: now,
                pods: 0,
            };
            self.rounds.push(round);
        }
        let counted = Counted {
            round: self.rounds.len() - 1,
            is_final: false,
        };
        self.rounds[counted.round].pods += 1;
        self.counted.insert(uid.clone(), counted);
    }

    fn ended(&mut self, uid: &str, outcome: Outcome) -> bool {
        let Some(counted) = self.counted.get_mut(uid) else {
            return false;
        };
        counted.is_final |= matches!(outcome, Outcome::Deleted | Outcome::Unknown);
        if counted.is_final {
            return false;
        }
        self.rounds[counted.round].pods -= 1;
        self.counted.remove(uid);
        while self.rounds.pop_if(|last| last.pods == 0).is_some() {}
        true
    }
}

/// Open windows that allow a pod to be deleted: the earliest time of each, and why it opened.
pub(crate) fn admissions(
    windows: &Windows,
    pod: &TrackedPod,
    limit: Option<u32>,
) -> impl Iterator<Item = (Instant, OpenReason)> {
    let open = windows
        .iter()
        .filter(|(service, window)| window.is_open && pod.candidate.services.contains(service));
    open.filter_map(move |(_, window)| Some((window.allows_from(pod, limit)?, window.reason)))
}

/// Counts a pod that is being deleted in all open windows of its Services.
pub(crate) fn count(windows: &mut Windows, pod: &TrackedPod, now: Instant) {
    for (service, window) in windows {
        if window.is_open && pod.candidate.services.contains(service) {
            window.count(pod, now);
        }
    }
}

/// Delay of a ready Service's first window after the start: evenly distributed, and always the same
/// for the same Service.
pub(crate) fn spread(namespace: &str, service: &str, duration: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (namespace, service).hash(&mut hasher);
    let part = (hasher.finish() >> 32) as f64 / f64::from(u32::MAX);
    MAX_SPREAD.min(duration / SPREAD_PART).mul_f64(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{CrashLoop, DeletionCandidate};

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn window_opens_once_for_its_duration() {
        let start = Instant::now();
        let mut window = Window::new(OpenReason::Start, start + MINUTE, 5 * MINUTE);
        assert_eq!(
            (window.advance(start), window.is_open(), window.next()),
            (None, false, start + MINUTE)
        );
        let opened = Some(WindowChange::Opened(OpenReason::Start));
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
            (Some(WindowChange::Closed(CloseReason::Over)), true)
        );
    }

    #[test]
    fn missed_window_is_over() {
        let start = Instant::now();
        let mut window = Window::new(OpenReason::Recovery, start, MINUTE);
        assert_eq!(
            (window.advance(start + 2 * MINUTE), window.is_open()),
            (None, false)
        );
        assert!(window.is_over(start + 2 * MINUTE));
    }

    /// A pod that was first observed at this time.
    fn pod(owner: &str, uid: &str, seen: Instant) -> TrackedPod {
        let candidate = DeletionCandidate {
            uid: uid.into(),
            resource_version: String::new(),
            owner: owner.into(),
            services: vec![],
            crash_loop: CrashLoop::Reported,
        };
        TrackedPod::new(candidate, seen)
    }

    fn open_window() -> (Window, Instant) {
        let now = Instant::now();
        (Window::new(OpenReason::Recovery, now, 5 * MINUTE), now)
    }

    #[test]
    fn each_owner_has_its_own_limit() {
        let (mut window, now) = open_window();
        let pod = |owner, uid| pod(owner, uid, now);
        [pod("a", "1"), pod("a", "2"), pod("b", "3")]
            .iter()
            .for_each(|pod| window.count(pod, now));
        assert_eq!(window.allows_from(&pod("a", "4"), Some(2)), None);
        let counted = window.allows_from(&pod("a", "2"), Some(2));
        assert_eq!(counted, Some(now), "counted already");
        assert!(window.allows_from(&pod("b", "4"), Some(2)).is_some());
        assert!(window.allows_from(&pod("c", "4"), Some(1)).is_some());
        assert!(window.allows_from(&pod("a", "4"), None).is_some());
        assert!(window.ended("a", "1", Outcome::Retry(None)));
        assert!(!window.ended("never counted", "5", Outcome::Retry(None)));
        assert!(window.allows_from(&pod("a", "4"), Some(2)).is_some());
    }

    #[test]
    fn what_may_be_deleted_stays_counted() {
        for certain in [Outcome::Deleted, Outcome::Unknown] {
            let (mut window, now) = open_window();
            for outcome in [certain, Outcome::Gone] {
                window.count(&pod("a", "1", now), now);
                assert!(!window.ended("a", "1", outcome));
            }
            let other = pod("a", "2", now);
            assert_eq!(window.allows_from(&other, Some(1)), None, "{certain:?}");
        }
    }

    #[test]
    fn each_round_waits_twice_as_long() {
        let (mut window, start) = open_window();
        let (mut round, mut waits) = (start, Vec::new());
        for number in 0..8 {
            // Two pods of an owner, observed a second after the deletion of the previous ones.
            let seen = round + Duration::from_secs(number.min(1));
            let pods = ["one", "two"].map(|name| pod("a", &format!("{name}-{number}"), seen));
            let allowed = pods
                .each_ref()
                .map(|pod| window.allows_from(pod, None).expect("no limit"));
            assert_eq!(allowed[0], allowed[1]);
            waits.push((allowed[0] - round).as_secs());
            round = allowed[0];
            window.count(&pods[0], round);
            assert_eq!(
                window.allows_from(&pods[1], None),
                Some(seen),
                "the same round"
            );
            window.count(&pods[1], round + Duration::from_secs(1));
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        let other = pod("b", "other", round);
        assert_eq!(window.allows_from(&other, None), Some(start));
    }

    #[test]
    fn empty_round_does_not_count() {
        let (mut window, start) = open_window();
        window.count(&pod("a", "1", start), start);
        let (second, later) = (Duration::from_secs(1), start + MINUTE);
        window.count(&pod("a", "2", start + second), later);
        let successor = pod("a", "3", later + second);
        let wait = |window: &Window| window.allows_from(&successor, None).expect("no limit");
        assert_eq!(wait(&window), later + Duration::from_secs(20));
        assert!(window.ended("a", "2", Outcome::Changed));
        assert_eq!(wait(&window), start + Duration::from_secs(10));
        assert!(window.ended("a", "1", Outcome::Gone));
        assert_eq!(wait(&window), successor.seen);
    }

    #[test]
    fn first_windows_are_spread() {
        let services = ["etcd-main-client", "kube-apiserver"];
        let spreads = |duration| -> Vec<Duration> {
            (0..300)
                .map(|shoot| {
                    spread(
                        &format!("shoot--garden--{shoot}"),
                        services[shoot % 2],
                        duration,
                    )
                })
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
