//! All that is known, and what is to be done.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common_core::change::{Change, Key};

use super::deletion::{Deletion, Outcome, Tracked};
use super::news::{Cause, End, Event, Report};
use super::readiness::{Readiness, Slice, Transition};
use super::verdict::DeletionCandidate;
use super::window::{Window, charge, spread};
use crate::config::Config;

/// At most so many DELETEs are in flight at once, as the prober's protective writes.
pub const MAX_IN_FLIGHT: usize = 32;

/// What is known of all namespaces: their Services, the windows of these, and the pods that may be
/// deleted.
///
/// Pods are deleted only while both EndpointSlices and pods are observed: what was true before a
/// watch broke may not be any more. After each change that is applied, and whenever
/// [`Namespaces::next`] says so, it is asked what is [`Namespaces::due`].
#[derive(Debug)]
pub struct Namespaces {
    config: Arc<Config>,
    /// By namespace.
    readiness: BTreeMap<String, Readiness>,
    /// By namespace and the Service's place in the config.
    windows: BTreeMap<String, BTreeMap<usize, Window>>,
    pods: BTreeMap<Key, Tracked>,
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
    added: BTreeSet<usize>,
    reports: Vec<Report>,
}

impl Namespaces {
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            readiness: BTreeMap::new(),
            windows: BTreeMap::new(),
            pods: BTreeMap::new(),
            in_flight: HashSet::new(),
            leads: false,
            slices_listed: false,
            observes_slices: false,
            observes_pods: false,
            added: BTreeSet::new(),
            reports: Vec::new(),
        }
    }

    /// From now on this process may write. The first window of each ready Service opens.
    pub fn lead(&mut self, now: Instant) {
        self.leads = true;
        let transitions = |readiness: &Readiness| {
            readiness
                .ready()
                .into_keys()
                .map(Transition::Ready)
                .collect()
        };
        let ready: Vec<_> = self
            .readiness
            .iter()
            .map(|(namespace, readiness)| (namespace.clone(), transitions(readiness)))
            .collect();
        for (namespace, transitions) in ready {
            self.follow(&namespace, transitions, Cause::Start, now);
        }
    }

    /// From now on this config holds. Windows that are open keep their time. If the Services or
    /// their selectors are others, both kinds of objects are to be re-listed under the new config;
    /// no Service counts as recovered because of that.
    pub fn reconfigure(&mut self, config: Arc<Config>) {
        if config.services != self.config.services {
            let new_place = |name: &str| {
                config
                    .services
                    .iter()
                    .position(|service| service.name == name)
            };
            let place = |place: usize| {
                self.config
                    .services
                    .get(place)
                    .and_then(|service| new_place(&service.name))
            };
            self.readiness.retain(|_, readiness| {
                readiness.relocate(place);
                !readiness.is_empty()
            });
            for tracked in self.pods.values_mut() {
                let services = &mut tracked.candidate.services;
                *services = services
                    .iter()
                    .filter_map(|&service| place(service))
                    .collect();
            }
            for (namespace, windows) in &mut self.windows {
                for (service, window) in std::mem::take(windows) {
                    let dropped = || Report {
                        namespace: namespace.clone(),
                        service,
                        event: Event::Closed(End::Dropped),
                    };
                    match place(service) {
                        Some(place) => drop(windows.insert(place, window)),
                        None => self.reports.extend(window.is_open().then(dropped)),
                    }
                }
            }
            if self.slices_listed {
                let kept: BTreeSet<usize> = (0..self.config.services.len())
                    .filter(|old| !self.added.contains(old))
                    .filter_map(place)
                    .collect();
                self.added = (0..config.services.len())
                    .filter(|place| !kept.contains(place))
                    .collect();
            }
            self.observes_slices = false;
            self.observes_pods = false;
        }
        self.config = config;
    }

    /// Applies what the watch of EndpointSlices shows.
    pub fn slices(&mut self, change: Change<Slice>, now: Instant) {
        match change {
            Change::Applied(key, slice) => {
                self.transition(key.namespace, Cause::Recovery, now, |readiness| {
                    readiness.apply(key.name, slice)
                });
            }
            Change::Gone(key) => {
                self.transition(key.namespace, Cause::Recovery, now, |readiness| {
                    readiness.remove(&key.name)
                })
            }
            Change::Listed {
                objects,
                unreadable,
            } => {
                let cause = if self.slices_listed {
                    Cause::Recovery
                } else {
                    Cause::Start
                };
                (self.slices_listed, self.observes_slices) = (true, true);
                let added = std::mem::take(&mut self.added);
                let is_news = |transition: &Transition| !matches!(transition, Transition::Ready(service) if added.contains(service));
                for (namespace, (slices, unreadable)) in self.by_namespace(objects, unreadable) {
                    self.transition(namespace, cause, now, |readiness| {
                        readiness
                            .replace(slices, &unreadable)
                            .into_iter()
                            .filter(is_news)
                            .collect()
                    });
                }
            }
            Change::Watched => self.observes_slices = true,
            Change::Ended => {}
            Change::Lost => self.observes_slices = false,
        }
    }

    /// Applies what the watch of pods shows.
    pub fn pods(&mut self, change: Change<DeletionCandidate>, now: Instant) {
        match change {
            Change::Applied(key, candidate) => self.pod(key, candidate, now),
            Change::Gone(key) => drop(self.pods.remove(&key)),
            Change::Listed {
                objects,
                unreadable,
            } => {
                self.observes_pods = true;
                self.pods
                    .retain(|key, _| objects.contains_key(key) || unreadable.contains(key));
                objects
                    .into_iter()
                    .for_each(|(key, candidate)| self.pod(key, candidate, now));
            }
            Change::Watched => self.observes_pods = true,
            Change::Ended => {}
            Change::Lost => self.observes_pods = false,
        }
    }

    fn pod(&mut self, key: Key, candidate: DeletionCandidate, now: Instant) {
        match self.pods.entry(key) {
            Entry::Occupied(mut tracked) => tracked.get_mut().apply(candidate, now),
            Entry::Vacant(place) => drop(place.insert(Tracked::new(candidate, now))),
        }
    }

    pub fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.in_flight.remove(&deletion.uid);
        let windows = self
            .windows
            .get_mut(&deletion.pod.namespace)
            .into_iter()
            .flat_map(BTreeMap::values_mut);
        windows.for_each(|window| window.ended(deletion, outcome));
        if let Some(tracked) = self
            .pods
            .get_mut(&deletion.pod)
            .filter(|tracked| tracked.candidate.uid == deletion.uid)
        {
            tracked.ended(deletion, outcome, now);
        }
    }

    /// The deletions to send now; each must be followed by [`Namespaces::ended`].
    pub fn due(&mut self, now: Instant) -> Vec<Deletion> {
        self.advance(now);
        let mut deletions = Vec::new();
        // When there is not room for all: first windows are no emergency, recoveries are. While
        // something is not seen, nothing is due.
        let causes: &[Cause] = if self.observes() {
            &[Cause::Recovery, Cause::Start]
        } else {
            &[]
        };
        for &cause in causes {
            for (pod, tracked) in &mut self.pods {
                if self.in_flight.len() == MAX_IN_FLIGHT {
                    return deletions;
                }
                let Some(windows) = self.windows.get_mut(&pod.namespace) else {
                    continue;
                };
                let may_be_sent =
                    tracked.is_due(now) && !self.in_flight.contains(&tracked.candidate.uid);
                if may_be_sent
                    && charge(
                        windows,
                        &tracked.candidate,
                        cause,
                        self.config.max_deletions_per_owner,
                    )
                {
                    let DeletionCandidate {
                        uid,
                        resource_version,
                        owner,
                        ..
                    } = tracked.candidate.clone();
                    self.in_flight.insert(uid.clone());
                    deletions.push(Deletion {
                        pod: pod.clone(),
                        uid,
                        resource_version,
                        owner,
                    });
                }
            }
        }
        deletions
    }

    /// When to ask again for what is due, if nothing happens before; none: never, or not before a
    /// deletion has ended.
    pub fn next(&self) -> Option<Instant> {
        if self.in_flight.len() == MAX_IN_FLIGHT {
            return None;
        }
        let waits = |(pod, tracked): &(&Key, &Tracked)| {
            let windows = self.windows.get(&pod.namespace);
            windows.is_some_and(|windows| {
                tracked
                    .candidate
                    .services
                    .iter()
                    .any(|service| windows.contains_key(service))
            })
        };
        let pods = self
            .pods
            .iter()
            .filter(waits)
            .filter_map(|(_, tracked)| tracked.next());
        let phases = self.windows().map(Window::next);
        if self.observes() {
            pods.chain(phases).min()
        } else {
            phases.min()
        }
    }

    /// What happened to windows since it was last asked.
    pub fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// Whether what is known is true now: everything has been listed, and watched since.
    pub const fn observes(&self) -> bool {
        self.observes_slices && self.observes_pods
    }

    pub fn open_windows(&self) -> usize {
        self.windows().filter(|window| window.is_open()).count()
    }

    /// In how many namespaces a Service or a pod is known.
    pub fn count(&self) -> usize {
        let namespaces = self.pods.keys().map(|pod| &pod.namespace);
        let without_services: HashSet<_> = namespaces
            .filter(|namespace| !self.readiness.contains_key(*namespace))
            .collect();
        self.readiness.len() + without_services.len()
    }

    fn windows(&self) -> impl Iterator<Item = &Window> {
        self.windows.values().flat_map(BTreeMap::values)
    }

    /// Lets a namespace's readiness change, and its windows with it.
    fn transition(
        &mut self,
        namespace: String,
        cause: Cause,
        now: Instant,
        change: impl FnOnce(&mut Readiness) -> Vec<Transition>,
    ) {
        let readiness = self.readiness.entry(namespace.clone()).or_default();
        let transitions = change(readiness);
        if readiness.is_empty() {
            self.readiness.remove(&namespace);
        }
        if self.leads {
            self.follow(&namespace, transitions, cause, now);
        }
    }

    /// Opens and closes windows as the Services of a namespace turned.
    fn follow(
        &mut self,
        namespace: &str,
        transitions: Vec<Transition>,
        cause: Cause,
        now: Instant,
    ) {
        for transition in transitions {
            match transition {
                Transition::Ready(service) => {
                    self.close(namespace, service, End::Renewed);
                    self.open(namespace, service, cause, now);
                }
                Transition::NotReady(service) => self.close(namespace, service, End::NotReady),
            }
        }
    }

    fn close(&mut self, namespace: &str, service: usize, end: End) {
        let closed = self
            .windows
            .get_mut(namespace)
            .and_then(|windows| windows.remove(&service));
        if closed.is_some_and(|window| window.is_open()) {
            self.reports.push(Report {
                namespace: namespace.to_owned(),
                service,
                event: Event::Closed(end),
            });
        }
    }

    fn open(&mut self, namespace: &str, service: usize, cause: Cause, now: Instant) {
        let duration = self.config.watch_duration;
        let delay = match cause {
            Cause::Start => spread(namespace, service, duration),
            Cause::Recovery => Duration::ZERO,
        };
        let window = Window::new(cause, now + delay, duration);
        self.windows
            .entry(namespace.to_owned())
            .or_default()
            .insert(service, window);
        let first = Key {
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        for (_, tracked) in self
            .pods
            .range_mut(first..)
            .take_while(|(pod, _)| pod.namespace == namespace)
        {
            if tracked.candidate.services.contains(&service) {
                tracked.start_over();
            }
        }
    }

    /// Lets time go on for the windows.
    fn advance(&mut self, now: Instant) {
        for (namespace, windows) in &mut self.windows {
            windows.retain(|&service, window| {
                let event = window.advance(now);
                self.reports.extend(event.map(|event| Report {
                    namespace: namespace.clone(),
                    service,
                    event,
                }));
                !window.is_over(now)
            });
        }
        self.windows.retain(|_, windows| !windows.is_empty());
    }

    /// The slices of each namespace, and the names of those that could not be read; also of
    /// namespaces that had some before and have none now.
    fn by_namespace(
        &self,
        slices: HashMap<Key, Slice>,
        unreadable: HashSet<Key>,
    ) -> BTreeMap<String, (HashMap<String, Slice>, HashSet<String>)> {
        let known = self
            .readiness
            .keys()
            .map(|namespace| (namespace.clone(), Default::default()));
        let mut namespaces: BTreeMap<String, (HashMap<_, _>, HashSet<_>)> = known.collect();
        for (key, slice) in slices {
            namespaces
                .entry(key.namespace)
                .or_default()
                .0
                .insert(key.name, slice);
        }
        for key in unreadable {
            namespaces
                .entry(key.namespace)
                .or_default()
                .1
                .insert(key.name);
        }
        namespaces
    }
}

#[cfg(test)]
mod tests;
