//! Which Services of one namespace are ready (D-39, D-40).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What is kept of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The place in the config of the Service it belongs to.
    pub service: usize,
    /// What distinguishes the ready endpoints: the UIDs of what they lead to, or their addresses.
    pub ready: BTreeSet<String>,
}

/// The slices of the Services of one namespace, by name.
#[derive(Debug, Default)]
pub struct Readiness(HashMap<String, Slice>);

/// What became of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It is ready and was not, or nobody can say whether it was all the time.
    Ready(usize),
    NotReady(usize),
}

impl Readiness {
    pub fn apply(&mut self, name: String, slice: Slice) -> Vec<Transition> {
        self.change(false, |slices| drop(slices.insert(name, slice)))
    }

    pub fn remove(&mut self, name: &str) -> Vec<Transition> {
        self.change(false, |slices| drop(slices.remove(name)))
    }

    /// All slices are these; what happened since the last change was not seen. A Service that was
    /// ready and is ready may not have been meanwhile: it has recovered if other endpoints are
    /// ready now. Slices that cannot be read stay as they were.
    pub fn replace(
        &mut self,
        slices: HashMap<String, Slice>,
        unreadable: &HashSet<String>,
    ) -> Vec<Transition> {
        self.change(true, |known| {
            known.retain(|name, _| unreadable.contains(name));
            known.extend(slices);
        })
    }

    /// Services have other places in the config now, or none any more.
    pub fn relocate(&mut self, place: impl Fn(usize) -> Option<usize>) {
        self.0.retain(|_, slice| {
            let place = place(slice.service);
            slice.service = place.unwrap_or(slice.service);
            place.is_some()
        });
    }

    /// The ready Services with their ready endpoints, over all slices.
    pub fn ready(&self) -> BTreeMap<usize, BTreeSet<String>> {
        let mut ready: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for slice in self.0.values().filter(|slice| !slice.ready.is_empty()) {
            ready
                .entry(slice.service)
                .or_default()
                .extend(slice.ready.iter().cloned());
        }
        ready
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn change(
        &mut self,
        relisted: bool,
        change: impl FnOnce(&mut HashMap<String, Slice>),
    ) -> Vec<Transition> {
        let before = self.ready();
        change(&mut self.0);
        let after = self.ready();
        let ended = before
            .keys()
            .filter(|service| !after.contains_key(service))
            .map(|&service| Transition::NotReady(service));
        let is_new = |(service, endpoints): &(&usize, &BTreeSet<String>)| {
            before
                .get(service)
                .is_none_or(|earlier| relisted && earlier != *endpoints)
        };
        let begun = after
            .iter()
            .filter(is_new)
            .map(|(&service, _)| Transition::Ready(service));
        ended.chain(begun).collect()
    }
}

#[cfg(test)]
mod tests;
