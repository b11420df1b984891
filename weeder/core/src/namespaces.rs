//! State of all namespaces, and the deletions that follow from it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use common_core::change::{Change, Key, Listed};

use crate::config::{Config, ServiceName};
use crate::deletion::{Deletion, Outcome};
use crate::hold_back::HoldBack;
use crate::namespace::{Namespace, Rank};
use crate::queue::NameQueue;
use crate::readiness::{Readiness, Slice, Transition};
use crate::verdict::DeletionCandidate;
use crate::window::{OpenReason, WindowChange, WindowEvent};

/// Maximum number of DELETEs in flight, equal to the prober's limit for protective writes.
pub(crate) const MAX_IN_FLIGHT: usize = 32;

/// State of all namespaces, and the pods to delete because of it.
///
/// Pods are deleted only while both EndpointSlices and pods are observed: the state before a watch
/// failed may be outdated. Call [`Namespaces::due`] after each applied change and at
/// [`Namespaces::next`]. The cost of a change does not depend on the number of crash-looping pods
/// in other namespaces.
#[derive(Debug)]
pub struct Namespaces {
    config: Arc<Config>,
    by_name: BTreeMap<String, Namespace>,
    /// Namespaces by their next deadline.
    waiting: NameQueue<Instant>,
    /// Namespaces with a pod to delete and capacity for its DELETE.
    due: NameQueue<Rank>,
    in_flight: usize,
    /// True if this process may write. Before that, it only tracks readiness.
    leads: bool,
    /// Holds all deletions back while the permission to delete pods is missing everywhere.
    hold_back: HoldBack,
    /// True once EndpointSlices were listed.
    slices_listed: bool,
    /// True if EndpointSlices were listed and have been watched since.
    observes_slices: bool,
    observes_pods: bool,
    /// Services added by a config change that have not been listed yet: those that are ready may
    /// always have been.
    added: HashSet<ServiceName>,
    /// Window events not yet taken.
    events: Vec<WindowEvent>,
    open_windows: usize,
}

impl Namespaces {
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            by_name: BTreeMap::new(),
            waiting: NameQueue::default(),
            due: NameQueue::default(),
            in_flight: 0,
            leads: false,
            hold_back: HoldBack::default(),
            slices_listed: false,
            observes_slices: false,
            observes_pods: false,
            added: HashSet::new(),
            events: Vec::new(),
            open_windows: 0,
        }
    }

    /// Allows writes. Services that became ready while this process was a standby have their
    /// windows already; the other ready ones start their first window now.
    pub fn lead(&mut self, now: Instant) {
        self.leads = true;
        self.change_all(now, |name, namespace, config| {
            namespace.lead(name, config, now);
        });
    }

    /// Replaces the config. Open windows keep their times. If the Services or their selectors have
    /// changed, both kinds of objects must be listed again under the new config, and no Service
    /// counts as recovered because of that.
    pub fn reconfigure(&mut self, config: Arc<Config>, now: Instant) {
        if config.services != self.config.services {
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
        self.change_all(now, |_, namespace, config| {
            namespace.reconfigure(config, now);
        });
    }

    pub fn apply_slices(&mut self, change: Change<Slice>, now: Instant) {
        match change {
            Change::Applied(Key { namespace, name }, slice) => {
                self.update(&namespace, now, |readiness| readiness.apply(name, slice));
            }
            Change::Gone(Key { namespace, name }) => {
                self.update(&namespace, now, |readiness| readiness.remove(&name));
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
        name: &str,
        now: Instant,
        change: impl FnOnce(&mut Readiness) -> Vec<Transition>,
    ) {
        self.change(name, now, |namespace, config| {
            let transitions = change(&mut namespace.readiness);
            namespace.follow(name, transitions, OpenReason::Recovery, config, now);
        });
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
        let follows = self.leads || reason == OpenReason::Recovery;
        self.add_namespaces(&listed);
        self.change_all(now, |name, namespace, config| {
            let slices = listed.remove(name).unwrap_or_default();
            let mut transitions = namespace.readiness.relist(slices);
            transitions.retain(|change| !change.ready || !added.contains(&change.service));
            if follows {
                namespace.follow(name, transitions, reason, config, now);
            }
        });
    }

    pub fn apply_pods(&mut self, change: Change<DeletionCandidate>, now: Instant) {
        match change {
            Change::Applied(Key { namespace, name }, candidate) => {
                self.change(&namespace, now, |namespace, config| {
                    namespace.apply_pod(name, candidate, config, now);
                });
            }
            Change::Gone(Key { namespace, name }) => {
                self.change(&namespace, now, |namespace, config| {
                    namespace.remove_pod(&name, config, now);
                });
            }
            Change::Listed(mut listed) => {
                self.observes_pods = true;
                self.add_namespaces(&listed);
                self.change_all(now, |name, namespace, config| {
                    let pods = listed.remove(name).unwrap_or_default();
                    namespace.relist_pods(pods, config, now);
                });
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

    /// Deletions to send now, each of which must be followed by [`Namespaces::ended`].
    pub fn due(&mut self, now: Instant) -> Vec<Deletion> {
        let mut deletions = Vec::new();
        if !self.leads {
            return deletions;
        }
        while let Some(name) = self.waiting.pop_until(now) {
            self.change(&name, now, |namespace, config| {
                namespace.advance(config, now);
            });
        }
        let limit = self.hold_back.limit(MAX_IN_FLIGHT, now);
        while self.observes()
            && self.in_flight < limit
            && let Some(name) = self.due.pop()
        {
            let deletion = self.change(&name, now, |namespace, config| {
                namespace.send(&name, config, now)
            });
            self.in_flight += usize::from(deletion.is_some());
            deletions.extend(deletion);
        }
        deletions
    }

    pub fn ended(&mut self, deletion: &Deletion, outcome: Outcome, now: Instant) {
        self.in_flight -= 1;
        match outcome {
            Outcome::Refused if self.misses_right() => self.hold_back.refused(now),
            // All these outcomes prove the permission.
            Outcome::Deleted | Outcome::Gone | Outcome::Changed => self.find_right(),
            _ => {}
        }
        self.change(&deletion.pod.namespace, now, |namespace, config| {
            namespace.ended(deletion, outcome, config, now);
        });
    }

    /// Records that the permission to delete pods is missing everywhere. One DELETE at a time is
    /// tried until one succeeds.
    pub fn miss_right(&mut self, now: Instant) {
        self.hold_back.refused(now);
    }

    /// Records that the permission to delete pods was restored.
    pub fn find_right(&mut self) {
        self.hold_back.lift();
    }

    /// True if the permission to delete pods is known to be missing everywhere.
    pub const fn misses_right(&self) -> bool {
        self.hold_back.until().is_some()
    }

    /// Time of the next call of [`Namespaces::due`] if nothing happens before. `None` if only a
    /// change or the end of a deletion can make one necessary.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        if !self.leads {
            return None;
        }
        let trial = self.hold_back.until();
        let trial = trial.filter(|time| *time > now && !self.due.is_empty());
        let waiting = self.waiting.first().map(|(time, _)| time);
        waiting.into_iter().chain(trial).min()
    }

    /// Window events since the last call.
    pub fn take_events(&mut self) -> Vec<WindowEvent> {
        std::mem::take(&mut self.events)
    }

    /// True if the state is current: everything was listed and has been watched since.
    pub const fn observes(&self) -> bool {
        self.observes_slices && self.observes_pods
    }

    pub const fn open_windows(&self) -> usize {
        self.open_windows
    }

    /// Number of namespaces with a known Service or pod.
    pub fn count(&self) -> usize {
        self.by_name.len()
    }

    fn change_all(&mut self, now: Instant, mut change: impl FnMut(&str, &mut Namespace, &Config)) {
        let names: Vec<String> = self.by_name.keys().cloned().collect();
        for name in names {
            self.change(&name, now, |namespace, config| {
                change(&name, namespace, config)
            });
        }
    }

    /// Changes a namespace and updates what depends on it. Empty namespaces are removed.
    fn change<T>(
        &mut self,
        name: &str,
        now: Instant,
        change: impl FnOnce(&mut Namespace, &Config) -> T,
    ) -> T {
        let namespace = self.by_name.entry(name.to_owned()).or_default();
        let result = change(namespace, &self.config);
        for (service, change) in namespace.events.drain(..) {
            match change {
                WindowChange::Opened(_) => self.open_windows += 1,
                WindowChange::Closed(_) => self.open_windows -= 1,
            }
            self.events.push(WindowEvent {
                namespace: name.to_owned(),
                service,
                change,
            });
        }
        self.waiting.set(name, namespace.next(now));
        self.due.set(name, namespace.rank(now));
        if namespace.is_empty() {
            self.by_name.remove(name);
        }
        result
    }
}

#[cfg(test)]
mod tests;
