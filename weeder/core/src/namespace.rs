//! One namespace: its Services, their windows, and the pods that may be deleted.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::config::{Config, ServiceName};
use crate::deletion::{Deletion, Outcome};
use crate::readiness::{Readiness, Transition};
use crate::tracked_pod::TrackedPod;
use crate::verdict::DeletionCandidate;
use crate::window::{CloseReason, OpenReason, Window, WindowChange, Windows, spread};

#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) readiness: Readiness,
    pub(crate) windows: Windows,
    /// By name.
    pub(crate) pods: BTreeMap<String, TrackedPod>,
    /// What happened to windows and was not reported yet.
    pub(crate) events: Vec<(ServiceName, WindowChange)>,
}

impl Namespace {
    pub(crate) fn is_empty(&self) -> bool {
        self.readiness.is_empty() && self.windows.is_empty() && self.pods.is_empty()
    }

    /// Starts the windows of Services that became ready, and closes those of Services that stopped
    /// being ready. `name` is the namespace's.
    pub(crate) fn follow(
        &mut self,
        name: &str,
        transitions: Vec<Transition>,
        reason: OpenReason,
        config: &Config,
        now: Instant,
    ) {
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
    }

    /// Forgets Services that the config does not name any more.
    pub(crate) fn retain_services(&mut self, config: &Config) {
        self.readiness
            .retain_services(|service| config.names(service));
        let services: Vec<ServiceName> = self.windows.keys().cloned().collect();
        for service in services {
            if !config.names(&service) {
                self.close(service, CloseReason::Dropped);
            }
        }
    }

    fn close(&mut self, service: ServiceName, reason: CloseReason) {
        let window = self.windows.remove(&service);
        if window.is_some_and(|window| window.is_open()) {
            self.events.push((service, WindowChange::Closed(reason)));
        }
    }

    /// Opens and closes windows whose time has come.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.windows.retain(|service, window| {
            let change = window.advance(now);
            self.events
                .extend(change.map(|change| (service.clone(), change)));
            !window.is_over(now)
        });
    }

    pub(crate) fn relist_pods(
        &mut self,
        listed: HashMap<String, Option<DeletionCandidate>>,
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
        match self.pods.get_mut(&name) {
            Some(pod) => pod.apply(candidate, now),
            None => drop(self.pods.insert(name, TrackedPod::new(candidate, now))),
        }
    }

    pub(crate) fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        for window in self.windows.values_mut() {
            window.ended(deletion, outcome);
        }
        let pod = self.pods.get_mut(&deletion.pod.name);
        if let Some(pod) = pod.filter(|pod| pod.candidate.uid == deletion.uid) {
            pod.ended(deletion, outcome, now);
        }
    }

    /// When windows open or close and, while pods are observed, when those that depend on their
    /// Services are due.
    pub(crate) fn wake_times(&self, observes_pods: bool) -> impl Iterator<Item = Instant> {
        let depends = move |pod: &&TrackedPod| {
            let mut services = pod.candidate.services.iter();
            observes_pods && services.any(|service| self.windows.contains_key(service))
        };
        let pods = self.pods.values().filter(depends);
        let windows = self.windows.values().map(Window::next);
        windows.chain(pods.filter_map(TrackedPod::due_from))
    }
}
