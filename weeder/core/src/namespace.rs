//! One namespace: its Services, their windows, and its deletion candidates.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use common_core::change::Key;

use crate::config::{Config, ServiceName};
use crate::deletion::{Deletion, Outcome};
use crate::hold_back::HoldBack;
use crate::readiness::{Readiness, Transition};
use crate::tracked_pod::TrackedPod;
use crate::verdict::DeletionCandidate;
use crate::window::{CloseReason, OpenReason, Window, WindowChange};

/// Maximum number of DELETEs of one namespace in flight, so that a webhook that hangs there cannot
/// block all others.
pub(crate) const MAX_IN_FLIGHT: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) readiness: Readiness,
    windows: BTreeMap<ServiceName, Window>,
    /// Candidates by pod name.
    pub(crate) pods: BTreeMap<String, TrackedPod>,
    /// UIDs of the pods whose DELETE is in flight.
    in_flight: BTreeSet<String>,
    hold_back: HoldBack,
    /// True if the last DELETE got no response. One at a time is tried until one does.
    hangs: bool,
    /// Window events not yet reported.
    pub(crate) events: Vec<(ServiceName, WindowChange)>,
}

/// Priority when capacity is short: new candidates go before failed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    has_failed: bool,
    reason: OpenReason,
}

/// The next DELETE of a pod. The smallest one goes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Turn<'a> {
    /// Not in the past.
    from: Instant,
    rank: Rank,
    pod: &'a str,
    /// Service whose window allows it.
    service: &'a ServiceName,
}

impl Namespace {
    pub(crate) fn is_empty(&self) -> bool {
        self.readiness.is_empty()
            && self.windows.is_empty()
            && self.pods.is_empty()
            && self.in_flight.is_empty()
    }

    /// Starts windows of Services that became ready, and closes those of Services that are no
    /// longer ready.
    pub(crate) fn follow(
        &mut self,
        transitions: Vec<Transition>,
        reason: OpenReason,
        closes: Instant,
    ) {
        for Transition { service, ready } in transitions {
            let window = ready.then(|| Window::new(reason, closes));
            let before = match window {
                Some(window) => self.windows.insert(service.clone(), window),
                None => self.windows.remove(&service),
            };
            if before.is_some_and(|window| window.is_open) {
                let end = match ready {
                    true => CloseReason::Renewed,
                    false => CloseReason::NotReady,
                };
                self.events.push((service, WindowChange::Closed(end)));
            }
        }
    }

    /// Starts the first windows of the ready Services when this process becomes the leader.
    /// Services that became ready while it was a standby have theirs already.
    pub(crate) fn lead(&mut self, closes: Instant, now: Instant) {
        self.windows.retain(|_, window| window.closes > now);
        for service in self.readiness.ready().into_keys() {
            let window = || Window::new(OpenReason::Start, closes);
            self.windows.entry(service).or_insert_with(window);
        }
    }

    pub(crate) fn drop_windows(&mut self) {
        let windows = std::mem::take(&mut self.windows).into_iter();
        let open = windows.filter(|(_, window)| window.is_open);
        let dropped = WindowChange::Closed(CloseReason::Dropped);
        self.events
            .extend(open.map(|(service, _)| (service, dropped)));
    }

    /// Opens and closes windows that are due.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.windows.retain(|service, window| {
            let change = window.advance(now);
            self.events
                .extend(change.map(|change| (service.clone(), change)));
            window.is_open
        });
    }

    pub(crate) fn relist_pods(
        &mut self,
        listed: BTreeMap<String, Option<DeletionCandidate>>,
        now: Instant,
    ) {
        self.pods.retain(|name, _| listed.contains_key(name));
        for (name, candidate) in listed {
            if let Some(candidate) = candidate {
                self.apply_pod(name, candidate, now);
            }
        }
    }

    pub(crate) fn apply_pod(&mut self, name: String, candidate: DeletionCandidate, now: Instant) {
        match self.pods.entry(name) {
            Entry::Occupied(pod) => pod.into_mut().apply(candidate, now),
            Entry::Vacant(place) => drop(place.insert(TrackedPod::new(candidate, now))),
        }
    }

    /// Takes the next deletion to send; `name` is the namespace's.
    pub(crate) fn send(&mut self, name: &str, config: &Config, now: Instant) -> Option<Deletion> {
        let Turn {
            rank, pod, service, ..
        } = self.due(config, now)?;
        let candidate = &self.pods[pod].candidate;
        let deletion = Deletion {
            pod: Key {
                namespace: name.to_owned(),
                name: pod.to_owned(),
            },
            uid: candidate.uid.clone(),
            resource_version: candidate.resource_version.clone(),
            service: service.clone(),
            cause: rank.reason,
        };
        let pod = &self.pods[&deletion.pod.name];
        for (service, window) in &mut self.windows {
            if pod.candidate.services.contains(service) {
                window.count(pod, now);
            }
        }
        self.in_flight.insert(deletion.uid.clone());
        Some(deletion)
    }

    pub(crate) fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.in_flight.remove(&deletion.uid);
        match outcome {
            Outcome::Refused => self.hold_back.refused(now),
            Outcome::Deleted => self.hold_back.lift(),
            _ => {}
        }
        self.hangs = outcome == Outcome::Unknown;
        let pod = self.pods.get_mut(&deletion.pod.name);
        if let Some(pod) = pod.filter(|pod| pod.candidate.uid == deletion.uid) {
            pod.ended(deletion, outcome, now);
        }
        for window in self.windows.values_mut() {
            window.ended(&deletion.uid, outcome);
        }
    }

    /// Next deadline: a window closes, or a pod is due.
    pub(crate) fn next(&self, config: &Config, now: Instant) -> Option<Instant> {
        let windows = self.windows.values().map(|window| window.closes);
        let pods = self.turns(config, now).map(|turn| turn.from);
        windows.chain(pods).filter(|time| *time > now).min()
    }

    /// Priority of the next deletion to send, if there is capacity for it. If the last one failed,
    /// the next will most likely fail too.
    pub(crate) fn rank(&self, config: &Config, now: Instant) -> Option<Rank> {
        let fails = self.hangs || self.hold_back.until().is_some();
        let limit = if fails { 1 } else { MAX_IN_FLIGHT };
        let has_room = self.in_flight.len() < limit;
        let Rank { has_failed, reason } = has_room.then(|| self.due(config, now))??.rank;
        let has_failed = has_failed || fails;
        Some(Rank { has_failed, reason })
    }

    /// The deletion to send now, if any.
    fn due(&self, config: &Config, now: Instant) -> Option<Turn<'_>> {
        self.turns(config, now)
            .min()
            .filter(|turn| turn.from <= now)
    }

    /// The next DELETE of each pod, unless the pod, a window or its capacity must change first, or
    /// its DELETE is in flight.
    fn turns(&self, config: &Config, now: Instant) -> impl Iterator<Item = Turn<'_>> {
        let limit = config.max_deletions_per_owner;
        let from = self.hold_back.until().map_or(now, |until| until.max(now));
        let pods = self.pods.iter();
        pods.filter_map(move |(name, pod)| {
            let candidate = &pod.candidate;
            if self.in_flight.contains(&candidate.uid) {
                return None;
            }
            let from = pod.due_from()?.max(from);
            let windows = self.windows.iter();
            let windows = windows.filter(|(service, _)| candidate.services.contains(service));
            let turns = windows.filter_map(|(service, window)| {
                Some(Turn {
                    from: window.allows_from(pod, limit)?.max(from),
                    rank: Rank {
                        has_failed: pod.has_failed(),
                        reason: window.reason,
                    },
                    pod: name,
                    service,
                })
            });
            turns.min()
        })
    }
}
