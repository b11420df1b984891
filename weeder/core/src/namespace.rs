//! One namespace: its Services, their windows, and its deletion candidates.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common_core::change::Key;

use crate::config::{Config, ServiceName};
use crate::deletion::{Deletion, Outcome};
use crate::hold_back::HoldBack;
use crate::queue::NameQueue;
use crate::readiness::{Readiness, Transition};
use crate::tracked_pod::TrackedPod;
use crate::verdict::DeletionCandidate;
use crate::window::{
    CloseReason, OpenReason, Window, WindowChange, Windows, admissions, count, spread,
};

/// Maximum number of DELETEs of one namespace in flight, so that a webhook that hangs there cannot
/// block all others.
pub(crate) const MAX_IN_FLIGHT: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) readiness: Readiness,
    windows: Windows,
    /// Candidates by pod name.
    pods: BTreeMap<String, TrackedPod>,
    /// Pods that a window allows to be deleted later, by time.
    waiting: NameQueue<Instant>,
    /// Pods to delete now.
    due: NameQueue<Rank>,
    /// Owners of the pods whose DELETE is in flight, by pod UID.
    in_flight: BTreeMap<String, String>,
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

/// The next DELETE of a pod.
struct Turn<'a> {
    from: Instant,
    rank: Rank,
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
    /// longer ready. `name` is the namespace's.
    pub(crate) fn follow(
        &mut self,
        name: &str,
        transitions: Vec<Transition>,
        reason: OpenReason,
        config: &Config,
        now: Instant,
    ) {
        if transitions.is_empty() {
            return;
        }
        for Transition { service, ready } in transitions {
            if !ready {
                self.close(service, CloseReason::NotReady);
                continue;
            }
            self.close(service.clone(), CloseReason::Renewed);
            for pod in self.pods.values_mut() {
                if pod.candidate.services.contains(&service) {
                    pod.reset_waits(now);
                }
            }
            let delay = match reason {
                OpenReason::Start => spread(name, &service, config.watch_duration),
                OpenReason::Recovery => Duration::ZERO,
            };
            let window = Window::new(reason, now + delay, config.watch_duration);
            self.windows.insert(service, window);
        }
        self.place_all(config, now);
    }

    /// Starts the first windows of the ready Services when this process becomes the leader.
    /// Services that became ready while it was a standby have theirs already.
    pub(crate) fn lead(&mut self, name: &str, config: &Config, now: Instant) {
        self.windows.retain(|_, window| !window.is_over(now));
        let ready = self.readiness.ready().into_keys();
        let transitions = ready
            .filter(|service| !self.windows.contains_key(service))
            .map(|service| Transition {
                service,
                ready: true,
            });
        let transitions = transitions.collect();
        self.follow(name, transitions, OpenReason::Start, config, now);
    }

    /// Removes Services that are no longer configured, and applies the configured limit.
    pub(crate) fn reconfigure(&mut self, config: &Config, now: Instant) {
        self.readiness
            .retain_services(|service| config.names(service));
        let services: Vec<ServiceName> = self.windows.keys().cloned().collect();
        for service in services {
            if !config.names(&service) {
                self.close(service, CloseReason::Dropped);
            }
        }
        self.place_all(config, now);
    }

    fn close(&mut self, service: ServiceName, reason: CloseReason) {
        let window = self.windows.remove(&service);
        if window.is_some_and(|window| window.is_open()) {
            self.events.push((service, WindowChange::Closed(reason)));
        }
    }

    /// Opens and closes windows that are due, and collects the pods that are due.
    pub(crate) fn advance(&mut self, config: &Config, now: Instant) {
        let known = (self.events.len(), self.windows.len());
        self.windows.retain(|service, window| {
            let change = window.advance(now);
            self.events
                .extend(change.map(|change| (service.clone(), change)));
            !window.is_over(now)
        });
        if known != (self.events.len(), self.windows.len()) {
            self.place_all(config, now);
        }
        while let Some(pod) = self.waiting.pop_until(now) {
            self.place(&pod, config, now);
        }
    }

    pub(crate) fn relist_pods(
        &mut self,
        listed: BTreeMap<String, Option<DeletionCandidate>>,
        config: &Config,
        now: Instant,
    ) {
        self.pods.retain(|name, _| {
            let is_listed = listed.contains_key(name);
            if !is_listed {
                self.waiting.set(name, None);
                self.due.set(name, None);
            }
            is_listed
        });
        for (name, candidate) in listed {
            if let Some(candidate) = candidate {
                self.apply_pod(name, candidate, config, now);
            }
        }
    }

    pub(crate) fn apply_pod(
        &mut self,
        name: String,
        candidate: DeletionCandidate,
        config: &Config,
        now: Instant,
    ) {
        match self.pods.get_mut(&name) {
            Some(pod) => pod.apply(candidate, now),
            None => drop(
                self.pods
                    .insert(name.clone(), TrackedPod::new(candidate, now)),
            ),
        }
        self.place(&name, config, now);
    }

    pub(crate) fn remove_pod(&mut self, name: &str, config: &Config, now: Instant) {
        self.pods.remove(name);
        self.place(name, config, now);
    }

    /// Takes the next deletion to send; `name` is the namespace's. Returns `None` if another pod of
    /// the same owner has taken the pod's turn.
    pub(crate) fn send(&mut self, name: &str, config: &Config, now: Instant) -> Option<Deletion> {
        let pod_name = self.due.pop()?;
        let pod = self.pods.get(&pod_name)?;
        let turn = self.turn(pod, config, now);
        let Some(turn) = turn.filter(|turn| turn.from <= now) else {
            self.place(&pod_name, config, now);
            return None;
        };
        let (cause, service) = (turn.rank.reason, turn.service.clone());
        count(&mut self.windows, pod, now);
        let candidate = &pod.candidate;
        self.in_flight
            .insert(candidate.uid.clone(), candidate.owner.clone());
        Some(Deletion {
            pod: Key {
                namespace: name.to_owned(),
                name: pod_name,
            },
            uid: candidate.uid.clone(),
            resource_version: candidate.resource_version.clone(),
            service,
            cause,
        })
    }

    pub(crate) fn ended(
        &mut self,
        deletion: &Deletion,
        outcome: Outcome,
        config: &Config,
        now: Instant,
    ) {
        let owner = self.in_flight.remove(&deletion.uid).unwrap_or_default();
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
        let mut has_room = false;
        for window in self.windows.values_mut() {
            has_room |= window.ended(&owner, &deletion.uid, outcome);
        }
        if has_room {
            self.place_all(config, now);
        } else {
            self.place(&deletion.pod.name, config, now);
        }
    }

    /// Next deadline: a window opens or closes, a pod is due, or a trial after a refusal is.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        let windows = self.windows.values().map(Window::next);
        let pod = self.waiting.first().map(|(time, _)| time);
        let trial = self.hold_back.until();
        let trial = trial.filter(|time| *time > now && !self.due.is_empty());
        windows.chain(pod).chain(trial).min()
    }

    /// Priority of the next deletion to send, if there is capacity for it. If the last one failed,
    /// the next will most likely fail too.
    pub(crate) fn rank(&self, now: Instant) -> Option<Rank> {
        let usual = if self.hangs { 1 } else { MAX_IN_FLIGHT };
        let has_room = self.in_flight.len() < self.hold_back.limit(usual, now);
        let (rank, _) = self.due.first().filter(|_| has_room)?;
        let has_failed = rank.has_failed || self.hangs || self.hold_back.until().is_some();
        Some(Rank { has_failed, ..rank })
    }

    /// Places all pods again after a change of the windows.
    fn place_all(&mut self, config: &Config, now: Instant) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            self.place(&name, config, now);
        }
    }

    /// Places a pod after a change: among those that are due, those that wait for a time, or
    /// neither.
    fn place(&mut self, name: &str, config: &Config, now: Instant) {
        let turn = self
            .pods
            .get(name)
            .and_then(|pod| self.turn(pod, config, now));
        let (waiting, due) = match turn {
            Some(turn) if turn.from > now => (Some(turn.from), None),
            Some(turn) => (None, Some(turn.rank)),
            None => (None, None),
        };
        self.waiting.set(name, waiting);
        self.due.set(name, due);
    }

    /// Earliest time for the next DELETE of a pod, its priority then, and why. Returns `None` if the
    /// pod, a window or its capacity must change first, or its DELETE is in flight.
    fn turn<'a>(&'a self, pod: &'a TrackedPod, config: &Config, now: Instant) -> Option<Turn<'a>> {
        if self.in_flight.contains_key(&pod.candidate.uid) {
            return None;
        }
        let from = pod.due_from()?.max(now);
        let admissions = admissions(&self.windows, pod, config.max_deletions_per_owner);
        let (from, reason, service) = admissions
            .map(|(allowed, reason, service)| (allowed.max(from), reason, service))
            .min()?;
        let has_failed = pod.has_failed();
        let rank = Rank { reason, has_failed };
        Some(Turn {
            from,
            rank,
            service,
        })
    }
}
