//! Zones that are lost while their shoot is not. They are only shown: a zone that is really dead
//! needs new machines elsewhere, which machine-controller-manager makes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::lease::LeaseState;
use super::verdict::{Tally, fails};

/// From which share of expired leases on a zone is lost, whatever the config says of the whole
/// shoot.
const FRACTION: f64 = 0.6;
/// A single node is no zone.
const FEWEST: usize = 2;
/// So many are shown: more would be read by nobody.
const SHOWN: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostZone {
    /// Its name; of nodes without a zone that of their worker pool.
    pub zone: String,
    pub candidates: usize,
    pub expired: usize,
}

/// Which of the zones are lost, given zone and state of each lease that counts.
pub fn lost<'a>(leases: impl IntoIterator<Item = (&'a str, LeaseState)>) -> Vec<LostZone> {
    let mut zones: BTreeMap<&str, Vec<LeaseState>> = BTreeMap::new();
    for (zone, state) in leases {
        zones.entry(zone).or_default().push(state);
    }
    let tallies = zones
        .into_iter()
        .map(|(zone, states)| (zone, Tally::of(states)));
    let lost = tallies.filter(|(_, tally)| {
        tally.expired >= FEWEST && fails(tally.expired, tally.candidates, FRACTION)
    });
    let shown = |(zone, tally): (&str, Tally)| LostZone {
        zone: zone.to_owned(),
        candidates: tally.candidates,
        expired: tally.expired,
    };
    lost.take(SHOWN).map(shown).collect()
}

#[cfg(test)]
mod tests;
