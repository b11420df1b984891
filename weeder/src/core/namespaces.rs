//! All namespaces together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use common::view::Key;
use tokio::time::Instant;

use super::deletion::{Deletion, Outcome};
use super::namespace::{Namespace, Told};
use super::news::{Cause, Change, Report};
use super::readiness::{Slice, Turn};
use super::verdict::Weed;
use crate::config::Config;

/// At most so many DELETEs are in flight at once, as the prober's protective writes.
pub const MAX_IN_FLIGHT: usize = 32;

/// What is known, and what is to be done.
///
/// After each thing that it is told, and whenever [`Namespaces::next`] says so, it is asked what is [`Namespaces::due`].
#[derive(Debug)]
pub struct Namespaces {
    config: Arc<Config>,
    namespaces: HashMap<String, Namespace>,
    /// The namespaces in which something may be due.
    touched: BTreeSet<String>,
    in_flight: usize,
    /// Whether this process may write: before, it only learns what is ready.
    leads: bool,
    /// Whether the slices were listed once.
    listed: bool,
    /// Whether the pods were.
    pods_listed: bool,
    reports: Vec<Report>,
}

impl Namespaces {
    /// Nothing is known yet.
    pub fn new(config: Arc<Config>) -> Self {
        let reports = Vec::new();
        Self {
            config,
            namespaces: HashMap::new(),
            touched: BTreeSet::new(),
            in_flight: 0,
            leads: false,
            listed: false,
            pods_listed: false,
            reports,
        }
    }

    /// From now on this process may write.
    pub fn lead(&mut self, now: Instant) {
        self.leads = true;
        for (namespace, state) in &mut self.namespaces {
            state.lead(namespace, &self.config, now);
            self.touched.insert(namespace.clone());
        }
    }

    /// Takes in what the watch of EndpointSlices shows.
    pub fn slices(&mut self, change: Change<Slice>, now: Instant) {
        match change {
            Change::Applied(key, slice) => {
                self.turn(key.namespace, now, |state| (state.readiness.apply(key.name, slice), Cause::Recovery))
            }
            Change::Gone(key) if !self.namespaces.contains_key(&key.namespace) => {}
            Change::Gone(key) => self.turn(key.namespace, now, |state| (state.readiness.remove(&key.name), Cause::Recovery)),
            Change::Listed { objects, unreadable } => {
                let cause = if self.listed { Cause::Recovery } else { Cause::Start };
                self.listed = true;
                for (namespace, slices) in self.by_namespace(objects) {
                    let is_unreadable =
                        |name: &str| unreadable.contains(&Key { namespace: namespace.clone(), name: name.to_owned() });
                    self.turn(namespace.clone(), now, |state| (state.readiness.replace(slices, is_unreadable), cause));
                }
            }
        }
    }

    /// Takes in what the watch of pods shows.
    pub fn pods(&mut self, change: Change<Weed>) {
        match change {
            Change::Applied(key, weed) => self.entry(key.namespace).apply_pod(key.name, weed),
            Change::Gone(key) => {
                if let Some(state) = self.namespaces.get_mut(&key.namespace) {
                    state.remove_pod(&key.name);
                    self.touched.insert(key.namespace);
                }
            }
            Change::Listed { objects, unreadable } => {
                self.pods_listed = true;
                for (namespace, weeds) in self.by_namespace(objects) {
                    let is_unreadable =
                        |name: &str| unreadable.contains(&Key { namespace: namespace.clone(), name: name.to_owned() });
                    self.entry(namespace.clone()).replace_pods(weeds, is_unreadable);
                }
            }
        }
    }

    /// A deletion ended.
    pub fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(state) = self.namespaces.get_mut(&deletion.pod.namespace) {
            state.ended(deletion, outcome, now);
            self.touched.insert(deletion.pod.namespace.clone());
        }
    }

    /// The deletions to send now; each must be followed by [`Namespaces::ended`].
    pub fn due(&mut self, now: Instant) -> Vec<Deletion> {
        let awake = self.namespaces.iter().filter(|(_, state)| state.next().is_some_and(|next| next <= now));
        self.touched.extend(awake.map(|(namespace, _)| namespace.clone()));
        let mut deletions = Vec::new();
        let mut left = BTreeSet::new();
        for namespace in std::mem::take(&mut self.touched) {
            let Some(state) = self.namespaces.get_mut(&namespace) else { continue };
            let told = state.advance(now);
            let room = MAX_IN_FLIGHT.saturating_sub(self.in_flight);
            let due = state.due(&namespace, self.config.max_deletions_per_owner, room, now);
            self.in_flight += due.len();
            if due.len() == room {
                left.insert(namespace.clone());
            }
            if state.is_empty() {
                self.namespaces.remove(&namespace);
            }
            deletions.extend(due);
            self.report(&namespace, told);
        }
        self.touched = left;
        deletions
    }

    /// When to ask again for what is due, if nothing happens before; none: never, or not before a deletion has ended.
    pub fn next(&self) -> Option<Instant> {
        (self.in_flight < MAX_IN_FLIGHT).then(|| self.namespaces.values().filter_map(Namespace::next).min()).flatten()
    }

    /// What happened to windows since it was last asked.
    pub fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// Whether everything has been listed once.
    pub const fn is_filled(&self) -> bool {
        self.listed && self.pods_listed
    }

    /// In how many namespaces something is remembered.
    pub fn len(&self) -> usize {
        self.namespaces.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    fn entry(&mut self, namespace: String) -> &mut Namespace {
        self.touched.insert(namespace.clone());
        self.namespaces.entry(namespace).or_default()
    }

    /// Lets a namespace's readiness change, and its windows with it.
    fn turn(&mut self, namespace: String, now: Instant, change: impl FnOnce(&mut Namespace) -> (Vec<Turn>, Cause)) {
        let config = Arc::clone(&self.config);
        let leads = self.leads;
        let state = self.entry(namespace.clone());
        let (turns, cause) = change(state);
        if leads {
            let told = state.follow(turns, cause, &namespace, &config, now);
            self.report(&namespace, told);
        }
    }

    fn report(&mut self, namespace: &str, told: Vec<Told>) {
        let report = |(service, event)| Report { namespace: namespace.to_owned(), service, event };
        self.reports.extend(told.into_iter().map(report));
    }

    /// The objects of each namespace; also of those that had some before and have none now.
    fn by_namespace<V>(&self, objects: HashMap<Key, V>) -> HashMap<String, HashMap<String, V>> {
        let mut namespaces: HashMap<String, HashMap<String, V>> =
            self.namespaces.keys().map(|namespace| (namespace.clone(), HashMap::new())).collect();
        for (key, object) in objects {
            namespaces.entry(key.namespace).or_default().insert(key.name, object);
        }
        namespaces
    }
}

#[cfg(test)]
mod tests;
