//! Windows in which pods that depend on a Service are deleted.

use std::collections::BTreeMap;
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
    losses: BTreeMap<String, Losses>,
}

/// Deleted pods of one owner in a window, in rounds: a round deletes the pods that existed when it
/// began, and their replacements wait for the next one.
#[derive(Debug, Default)]
struct Losses {
    /// Pods that count as deleted, by UID.
    counted: BTreeMap<String, Counted>,
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
            losses: BTreeMap::new(),
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

/// Open windows that allow a pod to be deleted: the earliest time of each, why it opened, and its
/// Service.
pub(crate) fn admissions<'a>(
    windows: &'a Windows,
    pod: &'a TrackedPod,
    limit: Option<u32>,
) -> impl Iterator<Item = (Instant, OpenReason, &'a ServiceName)> {
    let services = &pod.candidate.services;
    let open = windows
        .iter()
        .filter(|(service, window)| window.is_open && services.contains(service));
    open.filter_map(move |(service, window)| {
        Some((window.allows_from(pod, limit)?, window.reason, service))
    })
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

    #[test]
    fn first_windows_are_spread() {
        for (minutes, seconds) in [(5, 30), (1, 6), (600, 30)] {
            let duration = Duration::from_secs(60 * minutes);
            let mut thirds = [0; 3];
            for shoot in 0..300 {
                let service = ["etcd-main-client", "kube-apiserver"][shoot % 2];
                let delay = spread(&format!("shoot--garden--{shoot}"), service, duration);
                thirds[(delay.as_secs_f64() * 2.999 / f64::from(seconds)) as usize] += 1;
            }
            let is_even = thirds.iter().all(|count| (50..150).contains(count));
            assert!(is_even, "{minutes} min: {thirds:?}");
        }
    }
}
