//! Zones that are lost while the shoot as a whole is not. They are only displayed: a zone that is
//! really gone needs new machines elsewhere, which machine-controller-manager creates.

use std::collections::BTreeMap;

use prober_core::judgement::CountedLease;
use prober_core::lease::LeaseState;
use prober_core::verdict::{Tally, fails};
use serde::{Deserialize, Serialize};

/// Share of expired leases that makes a zone a lost one, whatever the config says of the whole
/// shoot.
const FRACTION: f64 = 0.6;
/// A single node is not a zone.
const FEWEST: usize = 2;
/// Most zones that are shown: more would be read by nobody.
const SHOWN: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostZone {
    /// Name; of nodes without a zone that of their worker pool.
    pub zone: String,
    pub candidates: usize,
    pub expired: usize,
}

/// Returns the zones that are lost by the leases that count.
pub(crate) fn lost(leases: &[CountedLease<'_>]) -> Vec<LostZone> {
    let mut zones: BTreeMap<&str, Vec<LeaseState>> = BTreeMap::new();
    for lease in leases {
        if let Some(zone) = lease.failure_zone {
            zones.entry(zone).or_default().push(lease.state);
        }
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
