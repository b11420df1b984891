//! Windows in which pods that depend on a Service are deleted.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use common_core::backoff::doubling;
use strum::{IntoStaticStr, VariantNames};

use crate::config::ServiceName;
use crate::deletion::Outcome;
use crate::tracked_pod::TrackedPod;

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
    /// Other Services are configured.
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

#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) reason: OpenReason,
    pub(crate) closes: Instant,
    /// True once a leader has opened it: a standby only remembers it.
    pub(crate) is_open: bool,
    /// By owner UID, in the order in which they were sent.
    losses: BTreeMap<String, Vec<Loss>>,
}

/// A DELETE that was sent in a window, unless it deleted nothing.
#[derive(Debug)]
struct Loss {
    /// UID of the pod.
    pod: String,
    /// Time at which the pod was first observed to crash-loop.
    seen: Instant,
    sent: Instant,
    /// An earlier DELETE may have succeeded, so the outcome of the next one does not matter.
    is_final: bool,
}

impl Window {
    pub(crate) const fn new(reason: OpenReason, closes: Instant) -> Self {
        Self {
            reason,
            closes,
            is_open: false,
            losses: BTreeMap::new(),
        }
    }

    /// Opens the window, or closes it if it is over.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<WindowChange> {
        let was_open = std::mem::replace(&mut self.is_open, now < self.closes);
        match (was_open, self.is_open) {
            (false, true) => Some(WindowChange::Opened(self.reason)),
            (true, false) => Some(WindowChange::Closed(CloseReason::Over)),
            _ => None,
        }
    }

    /// Earliest time at which this pod may be deleted, or `None` if its owner has reached its
    /// limit. Losses come in rounds: each deletes the pods that existed when it began, and their
    /// replacements wait for the next one.
    pub(crate) fn allows_from(
        &self,
        pod: &TrackedPod,
        limit: Option<NonZeroU32>,
    ) -> Option<Instant> {
        let losses = self.losses.get(&pod.candidate.owner);
        let losses = losses.map_or(&[][..], Vec::as_slice);
        if losses.iter().any(|loss| loss.pod == pod.candidate.uid) {
            return Some(pod.seen);
        }
        if limit.is_some_and(|limit| losses.len() >= limit.get() as usize) {
            return None;
        }
        let (mut rounds, mut last) = (0, None);
        for loss in losses {
            if last.is_none_or(|began| loss.seen > began) {
                (rounds, last) = (rounds + 1, Some(loss.sent));
            }
        }
        let last = last.filter(|began| pod.seen > *began);
        Some(last.map_or(pod.seen, |began| {
            began + doubling(FIRST_WAIT, rounds, LONGEST_WAIT)
        }))
    }

    /// Counts a pod whose DELETE is being sent.
    pub(crate) fn count(&mut self, pod: &TrackedPod, now: Instant) {
        let losses = self.losses.entry(pod.candidate.owner.clone()).or_default();
        let uid = &pod.candidate.uid;
        if !losses.iter().any(|loss| loss.pod == *uid) {
            losses.push(Loss {
                pod: uid.clone(),
                seen: pod.seen,
                sent: now,
                is_final: false,
            });
        }
    }

    /// Records the outcome of a pod's DELETE: one that was not deleted no longer counts.
    pub(crate) fn ended(&mut self, uid: &str, outcome: Outcome) {
        let is_loss = matches!(outcome, Outcome::Deleted | Outcome::Unknown);
        for losses in self.losses.values_mut() {
            losses.retain_mut(|loss| {
                loss.is_final |= is_loss && loss.pod == uid;
                loss.is_final || loss.pod != uid
            });
        }
    }
}
