//! The time in which pods that depend on a Service are deleted.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use strum::{IntoStaticStr, VariantNames};

use crate::config::ServiceName;
use crate::deletion::{Deletion, Outcome};
use crate::verdict::DeletionCandidate;

/// First windows open within this time. They are no emergency, and a seed may have hundreds of
/// shoots.
const MAX_SPREAD: Duration = Duration::from_secs(30);
/// ... and within this part of watchDuration, so that short ones are still full.
const SPREAD_PART: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum OpenReason {
    /// The Service was ready when this process started to delete.
    Start,
    /// The Service became ready, or other endpoints are ready than before the watch broke.
    Recovery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum CloseReason {
    Over,
    NotReady,
    /// A new one takes its place.
    Renewed,
    /// The config does not name the Service any more.
    Dropped,
}

/// What happened to a window, for logs, metrics and the status page.
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

/// The windows of one namespace.
pub(crate) type Windows = BTreeMap<ServiceName, Window>;

#[derive(Debug)]
pub(crate) struct Window {
    reason: OpenReason,
    opens: Instant,
    closes: Instant,
    is_open: bool,
    /// The pods that count as deleted, by their UID.
    counted: HashMap<String, Counted>,
}

#[derive(Debug)]
struct Counted {
    owner: String,
    /// An earlier DELETE may have deleted it: the outcome of the next one does not matter.
    is_final: bool,
}

impl Window {
    pub(crate) fn new(reason: OpenReason, opens: Instant, duration: Duration) -> Self {
        Self {
            reason,
            opens,
            closes: opens + duration,
            is_open: false,
            counted: HashMap::new(),
        }
    }

    /// Opens or closes the window if it is time.
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

    /// Whether it was open at the last [`Window::advance`].
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// When it opens or closes next.
    pub(crate) const fn next(&self) -> Instant {
        if self.is_open {
            self.closes
        } else {
            self.opens
        }
    }

    /// Whether this pod may be deleted: it is counted already, or its owner may lose one more
    /// (D-46).
    fn has_room(&self, pod: &DeletionCandidate, limit: Option<u32>) -> bool {
        let of_owner = |counted: &&Counted| counted.owner == pod.owner;
        self.counted.contains_key(&pod.uid)
            || limit
                .is_none_or(|limit| self.counted.values().filter(of_owner).count() < limit as usize)
    }

    fn count(&mut self, pod: &DeletionCandidate) {
        self.counted
            .entry(pod.uid.clone())
            .or_insert_with(|| Counted {
                owner: pod.owner.clone(),
                is_final: false,
            });
    }

    /// A pod that was not deleted is not counted any more.
    pub(crate) fn ended(&mut self, deletion: &Deletion, outcome: Outcome) {
        let Some(counted) = self.counted.get_mut(&deletion.uid) else {
            return;
        };
        counted.is_final |= matches!(outcome, Outcome::Deleted | Outcome::Unknown);
        if !counted.is_final {
            self.counted.remove(&deletion.uid);
        }
    }
}

/// Whether a window that opened for this reason lets the pod be deleted. All open windows of its
/// Services count it then.
pub(crate) fn admit(
    windows: &mut Windows,
    pod: &DeletionCandidate,
    reason: OpenReason,
    limit: Option<u32>,
) -> bool {
    let mut open: Vec<&mut Window> = windows
        .iter_mut()
        .filter(|(service, window)| window.is_open && pod.services.contains(*service))
        .map(|(_, window)| window)
        .collect();
    let admitted = open
        .iter()
        .any(|window| window.reason == reason && window.has_room(pod, limit));
    if admitted {
        open.iter_mut().for_each(|window| window.count(pod));
    }
    admitted
}

/// How long after the start the first window of a ready Service opens: spread evenly, always the
/// same for the same Service.
pub(crate) fn spread(namespace: &str, service: &str, duration: Duration) -> Duration {
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
    fn a_window_that_nobody_looked_at_in_its_time_is_over() {
        let start = Instant::now();
        let mut window = Window::new(OpenReason::Recovery, start, MINUTE);
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

    fn ended(window: &mut Window, pod: DeletionCandidate, outcome: Outcome) {
        let deletion = Deletion {
            pod: Key {
                namespace: String::new(),
                name: String::new(),
            },
            uid: pod.uid,
            resource_version: pod.resource_version,
        };
        window.ended(&deletion, outcome);
    }

    #[test]
    fn each_owner_has_a_limit_of_its_own() {
        let mut window = Window::new(OpenReason::Recovery, Instant::now(), MINUTE);
        [pod("a", "1"), pod("a", "2"), pod("b", "3")]
            .iter()
            .for_each(|pod| window.count(pod));
        assert!(!window.has_room(&pod("a", "4"), Some(2)));
        assert!(window.has_room(&pod("a", "2"), Some(2)), "counted already");
        assert!(window.has_room(&pod("b", "4"), Some(2)));
        assert!(window.has_room(&pod("c", "4"), Some(1)));
        assert!(window.has_room(&pod("a", "4"), None));
        ended(&mut window, pod("a", "1"), Outcome::Retry(None));
        ended(&mut window, pod("never counted", "5"), Outcome::Retry(None));
        assert!(window.has_room(&pod("a", "4"), Some(2)));
    }

    #[test]
    fn what_may_have_been_deleted_stays_counted_whatever_becomes_of_the_next_delete() {
        for certain in [Outcome::Deleted, Outcome::Unknown] {
            let mut window = Window::new(OpenReason::Recovery, Instant::now(), MINUTE);
            for outcome in [certain, Outcome::Gone] {
                window.count(&pod("a", "1"));
                ended(&mut window, pod("a", "1"), outcome);
            }
            assert!(!window.has_room(&pod("a", "2"), Some(1)), "{certain:?}");
        }
    }

    #[test]
    fn first_windows_are_spread_over_a_tenth_of_their_duration_and_at_most_half_a_minute() {
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
