//! State of all namespaces, and the deletions that follow from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use common_core::change::{Change, Key, Listed};

use crate::config::Config;
use crate::deletion::{Deletion, Outcome};
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
/// [`Namespaces::next`]. A change costs a look at the crash-looping pods of its namespace; how many
/// there are in others does not matter.
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
    /// True once EndpointSlices were listed.
    slices_listed: bool,
    /// True if EndpointSlices were listed and have been watched since.
    observes_slices: bool,
    observes_pods: bool,
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
            slices_listed: false,
            observes_slices: false,
            observes_pods: false,
            events: Vec::new(),
            open_windows: 0,
        }
    }

    /// Allows writes. Services that became ready while this process was a standby have their
    /// windows already; the other ready ones start their first window now.
    pub fn lead(&mut self, now: Instant) {
        self.leads = true;
        let closes = now + self.config.watch_duration;
        self.change_all(now, |_, namespace| namespace.lead(closes, now));
    }

    /// Replaces the config by one with the same Services. Open windows keep their times.
    pub fn reconfigure(&mut self, config: Arc<Config>, now: Instant) {
        self.config = config;
        self.change_all(now, |_, _| ());
    }

    /// Closes all windows, since other Services are configured: another core begins for them.
    pub fn drop_windows(&mut self, now: Instant) {
        self.change_all(now, |_, namespace| namespace.drop_windows());
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
        let closes = now + self.config.watch_duration;
        self.change(name, now, |namespace, _| {
            let transitions = change(&mut namespace.readiness);
            namespace.follow(transitions, OpenReason::Recovery, closes);
        });
    }

    fn relist_slices(&mut self, mut listed: Listed<Slice>, now: Instant) {
        let reason = match self.slices_listed {
            true => OpenReason::Recovery,
            false => OpenReason::Start,
        };
        self.slices_listed = true;
        self.observes_slices = true;
        let follows = self.leads || reason == OpenReason::Recovery;
        let closes = now + self.config.watch_duration;
        self.add_namespaces(&listed);
        self.change_all(now, |name, namespace| {
            let slices = listed.remove(name).unwrap_or_default();
            let transitions = namespace.readiness.relist(slices);
            if follows {
                namespace.follow(transitions, reason, closes);
            }
        });
    }

    pub fn apply_pods(&mut self, change: Change<DeletionCandidate>, now: Instant) {
        match change {
            Change::Applied(Key { namespace, name }, candidate) => {
                self.change(&namespace, now, |namespace, _| {
                    namespace.apply_pod(name, candidate, now);
                });
            }
            Change::Gone(Key { namespace, name }) => {
                self.change(&namespace, now, |namespace, _| {
                    namespace.pods.remove(&name);
                });
            }
            Change::Listed(mut listed) => {
                self.observes_pods = true;
                self.add_namespaces(&listed);
                self.change_all(now, |name, namespace| {
                    namespace.relist_pods(listed.remove(name).unwrap_or_default(), now);
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
        while let Some(name) = self.waiting.first_until(now) {
            self.change(&name, now, |_, _| ());
        }
        while self.observes()
            && self.in_flight < MAX_IN_FLIGHT
            && let Some((_, name)) = self.due.first().cloned()
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
        self.change(&deletion.pod.namespace, now, |namespace, _| {
            namespace.ended(deletion, outcome, now);
        });
    }

    /// Time of the next call of [`Namespaces::due`] if nothing happens before. `None` if only a
    /// change or the end of a deletion can make one necessary.
    pub fn next(&self) -> Option<Instant> {
        let (next, _) = self.waiting.first().filter(|_| self.leads)?;
        Some(*next)
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

    fn change_all(&mut self, now: Instant, mut change: impl FnMut(&str, &mut Namespace)) {
        let names: Vec<String> = self.by_name.keys().cloned().collect();
        for name in names {
            self.change(&name, now, |namespace, _| change(&name, namespace));
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
        if self.leads {
            namespace.advance(now);
        }
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
        self.waiting.set(name, namespace.next(&self.config, now));
        self.due.set(name, namespace.rank(&self.config, now));
        if namespace.is_empty() {
            self.by_name.remove(name);
        }
        result
    }
}

#[cfg(test)]
mod tests;
