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

/// The Services of one namespace with their slices.
#[derive(Debug, Default)]
pub struct Readiness {
    slices: HashMap<String, Slice>,
    /// The ready Services with their ready endpoints, over all slices.
    ready: BTreeMap<usize, BTreeSet<String>>,
}

/// What became of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is ready and was not, or nobody can say whether it was all the time.
    Ready(usize),
    NotReady(usize),
}

impl Readiness {
    pub fn apply(&mut self, name: String, slice: Slice) -> Vec<Turn> {
        self.slices.insert(name, slice);
        self.settle(|_, _| false)
    }

    pub fn remove(&mut self, name: &str) -> Vec<Turn> {
        match self.slices.remove(name) {
            Some(_) => self.settle(|_, _| false),
            None => Vec::new(),
        }
    }

    /// All slices are these; what happened since the last change was not seen. A Service that was ready and is ready may
    /// not have been meanwhile: it has recovered if other endpoints are ready now. Slices that cannot be read stay as they were.
    pub fn replace(&mut self, mut slices: HashMap<String, Slice>, unreadable: &HashSet<String>) -> Vec<Turn> {
        let known = std::mem::take(&mut self.slices);
        slices.extend(known.into_iter().filter(|(name, _)| unreadable.contains(name)));
        self.slices = slices;
        self.settle(|before, after| before != after)
    }

    /// Services have other places in the config now, or none any more.
    pub fn relocate(&mut self, place: impl Fn(usize) -> Option<usize>) {
        self.slices.retain(|_, slice| {
            let place = place(slice.service);
            slice.service = place.unwrap_or(slice.service);
            place.is_some()
        });
        let ready = std::mem::take(&mut self.ready);
        self.ready = ready.into_iter().filter_map(|(service, endpoints)| Some((place(service)?, endpoints))).collect();
    }

    pub fn ready(&self) -> impl Iterator<Item = usize> {
        self.ready.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    fn settle(&mut self, has_recovered: impl Fn(&BTreeSet<String>, &BTreeSet<String>) -> bool) -> Vec<Turn> {
        let mut after: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for slice in self.slices.values().filter(|slice| !slice.ready.is_empty()) {
            after.entry(slice.service).or_default().extend(slice.ready.iter().cloned());
        }
        let before = std::mem::replace(&mut self.ready, after);
        let ended = before.keys().filter(|service| !self.ready.contains_key(service)).map(|&service| Turn::NotReady(service));
        let is_new = |(service, now): &(&usize, &BTreeSet<String>)| match before.get(service) {
            None => true,
            Some(earlier) => has_recovered(earlier, now),
        };
        let begun = self.ready.iter().filter(is_new).map(|(&service, _)| Turn::Ready(service));
        ended.chain(begun).collect()
    }
}

#[cfg(test)]
mod tests;
