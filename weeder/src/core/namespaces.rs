//! All namespaces together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use common::change::{Change, Key};
use tokio::time::Instant;

use super::deletion::{Deletion, Outcome};
use super::namespace::Namespace;
use super::news::{Cause, Report};
use super::readiness::{Slice, Turn};
use super::verdict::DeletionCandidate;
use super::window::Opening;
use crate::config::Config;

/// At most so many DELETEs are in flight at once, as the prober's protective writes.
pub const MAX_IN_FLIGHT: usize = 32;

/// What is known, and what is to be done.
///
/// Pods are deleted only while both EndpointSlices and pods are observed: what was true before a watch broke may not be any more.
/// After each change that is applied, and whenever [`Namespaces::next`] says so, it is asked what is [`Namespaces::due`].
#[derive(Debug)]
pub struct Namespaces {
    config: Arc<Config>,
    namespaces: BTreeMap<String, Namespace>,
    in_flight: usize,
    /// Whether this process may write: before, it only learns what is ready.
    leads: bool,
    /// Whether EndpointSlices have been listed once.
    slices_listed: bool,
    /// Whether EndpointSlices have been listed, and watched since.
    observes_slices: bool,
    observes_pods: bool,
    /// Services that a change of the config has added, until they have been listed: those that are ready then may always have
    /// been.
    added: BTreeSet<usize>,
    /// The number of the last window.
    serial: u64,
    reports: Vec<Report>,
}

impl Namespaces {
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            namespaces: BTreeMap::new(),
            in_flight: 0,
            leads: false,
            slices_listed: false,
            observes_slices: false,
            observes_pods: false,
            added: BTreeSet::new(),
            serial: 0,
            reports: Vec::new(),
        }
    }

    /// From now on this process may write.
    pub fn lead(&mut self, now: Instant) {
        self.leads = true;
        let opening = Opening { cause: Cause::Start, now, duration: self.config.watch_duration };
        for state in self.namespaces.values_mut() {
            state.lead(opening, &mut self.serial);
        }
    }

    /// From now on this config holds. Windows that are open keep their time. If the Services or their selectors are others, both
    /// kinds of objects are to be re-listed under the new config; no Service counts as recovered because of that.
    pub fn reconfigure(&mut self, config: Arc<Config>) {
        if config.services != self.config.services {
            let new_place = |name: &str| config.services.iter().position(|service| service.name == name);
            let place = |place: usize| self.config.services.get(place).and_then(|service| new_place(&service.name));
            for state in self.namespaces.values_mut() {
                self.reports.extend(state.relocate(place));
            }
            if self.slices_listed {
                let kept: BTreeSet<usize> =
                    (0..self.config.services.len()).filter(|old| !self.added.contains(old)).filter_map(place).collect();
                self.added = (0..config.services.len()).filter(|place| !kept.contains(place)).collect();
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
                self.turn(key.namespace, now, |state| (state.readiness.apply(key.name, slice), Cause::Recovery))
            }
            Change::Gone(key) if !self.namespaces.contains_key(&key.namespace) => {}
            Change::Gone(key) => self.turn(key.namespace, now, |state| (state.readiness.remove(&key.name), Cause::Recovery)),
            Change::Listed { objects, unreadable } => {
                let cause = if self.slices_listed { Cause::Recovery } else { Cause::Start };
                self.slices_listed = true;
                self.observes_slices = true;
                let added = std::mem::take(&mut self.added);
                let is_news = |turn: &Turn| !matches!(turn, Turn::Ready(service) if added.contains(service));
                for (namespace, (slices, unreadable)) in self.by_namespace(objects, unreadable) {
                    let list = |state: &mut Namespace| state.readiness.replace(slices, &unreadable);
                    self.turn(namespace, now, |state| (list(state).into_iter().filter(is_news).collect(), cause));
                }
            }
            Change::Lost(_) => self.observes_slices = false,
        }
    }

    /// Applies what the watch of pods shows.
    pub fn pods(&mut self, change: Change<DeletionCandidate>) {
        match change {
            Change::Applied(key, candidate) => entry(&mut self.namespaces, key.namespace).apply_pod(key.name, candidate),
            Change::Gone(key) => {
                if let Some(state) = self.namespaces.get_mut(&key.namespace) {
                    state.remove_pod(&key.name);
                }
            }
            Change::Listed { objects, unreadable } => {
                self.observes_pods = true;
                for (namespace, (candidates, unreadable)) in self.by_namespace(objects, unreadable) {
                    entry(&mut self.namespaces, namespace).replace_pods(candidates, &unreadable);
                }
            }
            Change::Lost(_) => self.observes_pods = false,
        }
    }

    pub fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(state) = self.namespaces.get_mut(&deletion.pod.namespace) {
            state.ended(deletion, outcome, now);
        }
    }

    /// The deletions to send now; each must be followed by [`Namespaces::ended`].
    pub fn due(&mut self, now: Instant) -> Vec<Deletion> {
        self.reports.extend(self.namespaces.values_mut().flat_map(|state| state.advance(now)));
        self.namespaces.retain(|_, state| !state.is_empty());
        let mut deletions = Vec::new();
        // When there is not room for all: first windows are no emergency, recoveries are. While something is not seen, nothing is due.
        let causes: &[Cause] = if self.observes() { &[Cause::Recovery, Cause::Start] } else { &[] };
        for &cause in causes {
            for state in self.namespaces.values_mut() {
                let room = MAX_IN_FLIGHT.saturating_sub(self.in_flight);
                let due = state.due(cause, self.config.max_deletions_per_owner, room, now);
                self.in_flight += due.len();
                deletions.extend(due);
            }
        }
        deletions
    }

    /// When to ask again for what is due, if nothing happens before; none: never, or not before a deletion has ended.
    pub fn next(&self) -> Option<Instant> {
        let next = if self.observes() { Namespace::next } else { Namespace::next_phase };
        (self.in_flight < MAX_IN_FLIGHT).then(|| self.namespaces.values().filter_map(next).min()).flatten()
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
        self.namespaces.values().map(Namespace::open_windows).sum()
    }

    /// In how many namespaces something is remembered.
    pub fn len(&self) -> usize {
        self.namespaces.len()
    }

    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// Lets a namespace's readiness change, and its windows with it.
    fn turn(&mut self, namespace: String, now: Instant, change: impl FnOnce(&mut Namespace) -> (Vec<Turn>, Cause)) {
        let state = entry(&mut self.namespaces, namespace);
        let (turns, cause) = change(state);
        if self.leads {
            let opening = Opening { cause, now, duration: self.config.watch_duration };
            self.reports.extend(state.follow(turns, opening, &mut self.serial));
        }
    }

    /// The objects of each namespace, and the names of those that could not be read; also of namespaces that had some before and
    /// have none now.
    fn by_namespace<V>(
        &self,
        objects: HashMap<Key, V>,
        unreadable: HashSet<Key>,
    ) -> HashMap<String, (HashMap<String, V>, HashSet<String>)> {
        let known = self.namespaces.keys().map(|namespace| (namespace.clone(), Default::default()));
        let mut namespaces: HashMap<String, (HashMap<String, V>, HashSet<String>)> = known.collect();
        for (key, object) in objects {
            namespaces.entry(key.namespace).or_default().0.insert(key.name, object);
        }
        for key in unreadable {
            // What was not known before need not be kept.
            if let Some((_, unreadable)) = namespaces.get_mut(&key.namespace) {
                unreadable.insert(key.name);
            }
        }
        namespaces
    }
}

fn entry(namespaces: &mut BTreeMap<String, Namespace>, name: String) -> &mut Namespace {
    namespaces.entry(name).or_insert_with_key(|name| Namespace::new(name.clone()))
}

#[cfg(test)]
mod tests;
