//! All that is known, and what is to be done.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use common_core::change::{Change, Key, Listed};

use crate::config::{Config, ServiceName};
use crate::deletion::{Deletion, Outcome};
use crate::namespace::Namespace;
use crate::readiness::{Readiness, Slice, Transition};
use crate::verdict::DeletionCandidate;
use crate::window::{OpenReason, WindowEvent, admit};

/// At most this many DELETEs are in flight at once, as the prober's protective writes.
pub(crate) const MAX_IN_FLIGHT: usize = 32;

/// What is known of all namespaces, and which pods to delete because of it.
///
/// Pods are deleted only while both EndpointSlices and pods are observed: what was true before a
/// watch broke may not be true any more. After each change that is applied, and at
/// [`Namespaces::next`], call [`Namespaces::due`].
#[derive(Debug)]
pub struct Namespaces {
    config: Arc<Config>,
    by_name: BTreeMap<String, Namespace>,
    /// The UIDs of the pods whose DELETE has not ended.
    in_flight: HashSet<String>,
    /// Whether this process may write: before, it only learns what is ready.
    leads: bool,
    /// Whether EndpointSlices have been listed once.
    slices_listed: bool,
    /// Whether EndpointSlices have been listed, and watched since.
    observes_slices: bool,
    observes_pods: bool,
    /// Services that a change of the config has added, until they have been listed: those that are
    /// ready then may always have been.
    added: HashSet<ServiceName>,
    /// The time of the last [`Namespaces::due`].
    advanced_to: Option<Instant>,
}

impl Namespaces {
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            by_name: BTreeMap::new(),
            in_flight: HashSet::new(),
            leads: false,
            slices_listed: false,
            observes_slices: false,
            observes_pods: false,
            added: HashSet::new(),
            advanced_to: None,
        }
    }

    /// From now on this process may write. Starts the first window of each ready Service.
    pub fn lead(&mut self, now: Instant) {
        self.leads = true;
        for (name, namespace) in &mut self.by_name {
            let ready = namespace.readiness.ready().into_keys();
            let transitions = ready.map(|service| Transition {
                service,
                ready: true,
            });
            let transitions = transitions.collect();
            namespace.follow(name, transitions, OpenReason::Start, &self.config, now);
        }
    }

    /// Replaces the config. Windows that are open keep their time. If the Services or their
    /// selectors have changed, both kinds of objects must be listed again under the new config; no
    /// Service counts as recovered because of that.
    pub fn reconfigure(&mut self, config: Arc<Config>) {
        if config.services != self.config.services {
            for namespace in self.by_name.values_mut() {
                namespace.retain_services(&config);
            }
            if self.slices_listed {
                let names = config.services.iter().map(|service| service.name.clone());
                let is_new =
                    |name: &ServiceName| !self.config.names(name) || self.added.contains(name);
                self.added = names.filter(is_new).collect();
            }
            self.observes_slices = false;
            self.observes_pods = false;
        }
        self.config = config;
    }

    pub fn apply_slices(&mut self, change: Change<Slice>, now: Instant) {
        match change {
            Change::Applied(key, slice) => self.update(key.namespace, now, |readiness| {
                readiness.apply(key.name, slice)
            }),
            Change::Gone(key) => {
                self.update(key.namespace, now, |readiness| readiness.remove(&key.name))
            }
            Change::Listed(listed) => self.relist_slices(listed, now),
            Change::Watched => self.observes_slices = true,
            Change::Ended => {}
            Change::Lost => self.observes_slices = false,
        }
    }

    /// Applies a change of one namespace's readiness.
    fn update(
        &mut self,
        name: String,
        now: Instant,
        change: impl FnOnce(&mut Readiness) -> Vec<Transition>,
    ) {
        let namespace = self.by_name.entry(name.clone()).or_default();
        let transitions = change(&mut namespace.readiness);
        if self.leads {
            let reason = OpenReason::Recovery;
            namespace.follow(&name, transitions, reason, &self.config, now);
        }
    }

    fn relist_slices(&mut self, mut listed: Listed<Slice>, now: Instant) {
        let reason = if self.slices_listed {
            OpenReason::Recovery
        } else {
            OpenReason::Start
        };
        self.slices_listed = true;
        self.observes_slices = true;
        let added = std::mem::take(&mut self.added);
        self.add_namespaces(&listed);
        for (name, namespace) in &mut self.by_name {
            let slices = listed.remove(name).unwrap_or_default();
            let mut transitions = namespace.readiness.relist(slices);
            transitions.retain(|change| !change.ready || !added.contains(&change.service));
            if self.leads {
                namespace.follow(name, transitions, reason, &self.config, now);
            }
        }
    }

    pub fn apply_pods(&mut self, change: Change<DeletionCandidate>, now: Instant) {
        match change {
            Change::Applied(key, candidate) => {
                let namespace = self.by_name.entry(key.namespace).or_default();
                namespace.apply_pod(key.name, candidate, now);
            }
            Change::Gone(key) => {
                if let Some(namespace) = self.by_name.get_mut(&key.namespace) {
                    namespace.pods.remove(&key.name);
                }
            }
            Change::Listed(mut listed) => {
                self.observes_pods = true;
                self.add_namespaces(&listed);
                for (name, namespace) in &mut self.by_name {
                    namespace.relist_pods(listed.remove(name).unwrap_or_default(), now);
                }
            }
            Change::Watched => self.observes_pods = true,
            Change::Ended => {}
            Change::Lost => self.observes_pods = false,
        }
    }

    fn add_namespaces<V>(&mut self, listed: &Listed<V>) {
        for name in listed.keys() {
            self.by_name.entry(name.clone()).or_default();
        }
    }

    /// The deletions to send now; each must be followed by [`Namespaces::ended`].
    pub fn due(&mut self, now: Instant) -> Vec<Deletion> {
        self.advanced_to = Some(now);
        for namespace in self.by_name.values_mut() {
            namespace.advance(now);
        }
        let mut deletions = Vec::new();
        if !self.observes() {
            return deletions;
        }
        let limit = self.config.max_deletions_per_owner;
        // When there is not room for all: first windows are no emergency, recoveries are.
        for reason in [OpenReason::Recovery, OpenReason::Start] {
            for (name, namespace) in &mut self.by_name {
                for (pod, tracked) in &namespace.pods {
                    let candidate = &tracked.candidate;
                    if self.in_flight.len() < MAX_IN_FLIGHT
                        && tracked.due_from().is_some_and(|then| then <= now)
                        && !self.in_flight.contains(&candidate.uid)
                        && admit(&mut namespace.windows, candidate, reason, limit)
                    {
                        self.in_flight.insert(candidate.uid.clone());
                        deletions.push(Deletion {
                            pod: Key {
                                namespace: name.clone(),
                                name: pod.clone(),
                            },
                            uid: candidate.uid.clone(),
                            resource_version: candidate.resource_version.clone(),
                        });
                    }
                }
            }
        }
        deletions
    }

    pub fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.in_flight.remove(&deletion.uid);
        if let Some(namespace) = self.by_name.get_mut(&deletion.pod.namespace) {
            namespace.ended(deletion, outcome, now);
        }
    }

    /// When to call [`Namespaces::due`] again if nothing happens before; none: never, or not before
    /// a deletion has ended.
    pub fn next(&self) -> Option<Instant> {
        if self.in_flight.len() == MAX_IN_FLIGHT {
            return None;
        }
        let observes = self.observes();
        self.by_name
            .values()
            .flat_map(|namespace| namespace.wake_times(observes))
            .filter(|time| Some(*time) > self.advanced_to)
            .min()
    }

    /// What happened to windows since the last call. Namespaces of which nothing is known any more
    /// are forgotten then.
    pub fn take_events(&mut self) -> Vec<WindowEvent> {
        let mut events = Vec::new();
        self.by_name.retain(|name, namespace| {
            for (service, change) in namespace.events.drain(..) {
                events.push(WindowEvent {
                    namespace: name.clone(),
                    service,
                    change,
                });
            }
            !namespace.is_empty()
        });
        events
    }

    /// Whether what is known is true now: everything has been listed, and watched since.
    pub const fn observes(&self) -> bool {
        self.observes_slices && self.observes_pods
    }

    pub fn open_windows(&self) -> usize {
        let namespaces = self.by_name.values();
        namespaces
            .flat_map(|namespace| namespace.windows.values())
            .filter(|window| window.is_open())
            .count()
    }

    /// In how many namespaces a Service or a pod is known.
    pub fn count(&self) -> usize {
        self.by_name.len()
    }
}

#[cfg(test)]
mod tests;
