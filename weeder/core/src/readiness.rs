//! Readiness of the Services of one namespace.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::ServiceName;

/// The relevant part of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub service: ServiceName,
    /// Identity of the ready endpoints: the UIDs of their targets, or their addresses.
    pub ready: BTreeSet<String>,
}

/// Slices of the Services of one namespace, by name.
#[derive(Debug, Default)]
pub(crate) struct Readiness(BTreeMap<String, Slice>);

/// Change of a Service: it became ready, may have done so unobserved, or is no longer ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) service: ServiceName,
    pub(crate) ready: bool,
}

impl Readiness {
    pub(crate) fn apply(&mut self, name: String, slice: Slice) -> Vec<Transition> {
        self.change(false, |slices| drop(slices.insert(name, slice)))
    }

    pub(crate) fn remove(&mut self, name: &str) -> Vec<Transition> {
        self.change(false, |slices| drop(slices.remove(name)))
    }

    /// Replaces all slices after a time in which changes may have been missed. Those that cannot be
    /// decoded are kept. A Service that was ready before and is ready now has recovered in between
    /// if its ready endpoints differ.
    pub(crate) fn relist(&mut self, listed: BTreeMap<String, Option<Slice>>) -> Vec<Transition> {
        self.change(true, |slices| {
            slices.retain(|name, _| listed.contains_key(name));
            let decoded = listed.into_iter();
            slices.extend(decoded.filter_map(|(name, slice)| Some((name, slice?))));
        })
    }

    /// Ready Services with their ready endpoints, over all slices.
    pub(crate) fn ready(&self) -> BTreeMap<ServiceName, BTreeSet<String>> {
        let mut ready: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for slice in self.0.values().filter(|slice| !slice.ready.is_empty()) {
            let endpoints = ready.entry(slice.service.clone()).or_default();
            endpoints.extend(slice.ready.iter().cloned());
        }
        ready
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn change(
        &mut self,
        relisted: bool,
        change: impl FnOnce(&mut BTreeMap<String, Slice>),
    ) -> Vec<Transition> {
        let before = self.ready();
        change(&mut self.0);
        let after = self.ready();
        let mut transitions = Vec::new();
        for service in before.keys().filter(|name| !after.contains_key(*name)) {
            transitions.push(Transition {
                service: service.clone(),
                ready: false,
            });
        }
        for (service, endpoints) in after {
            let earlier = before.get(&service);
            if earlier.is_none_or(|earlier| relisted && *earlier != endpoints) {
                transitions.push(Transition {
                    service,
                    ready: true,
                });
            }
        }
        transitions
    }
}
