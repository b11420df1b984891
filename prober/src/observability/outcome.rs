//! Outcome of a probe, as it is shown.

use std::cmp::Reverse;
use std::sync::Arc;

use chrono::TimeDelta;
use prober_core::judgement::{CountedLease, Finding};
use prober_core::lease::LeaseState;
use prober_core::verdict::{Tally, Verdict};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::zones::{LostZone, lost};
use super::{in_seconds, word};

/// Most leases that are shown of a shoot: more would be read by nobody, and thousands of shoots may
/// be down at once.
const SHOWN_LEASES: usize = 20;

#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    pub finding: Arc<Finding>,
    /// Oldest leases that counted, oldest first; empty while nodes do not matter.
    pub leases: Vec<SeenLease>,
    /// Zones that are lost while the shoot is not; nothing is scaled for them.
    pub lost_zones: Vec<LostZone>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SeenLease {
    pub node: String,
    /// Time since the last renewal at that moment, on our clock. Only the next probe shows later
    /// renewals.
    #[serde(rename = "ageSeconds", serialize_with = "as_seconds")]
    pub age: TimeDelta,
    #[serde(serialize_with = "word")]
    pub state: LeaseState,
    /// Lag of the node's clock behind ours; negative if it is ahead.
    #[serde(
        rename = "skewSeconds",
        serialize_with = "as_seconds",
        skip_serializing_if = "TimeDelta::is_zero"
    )]
    pub skew: TimeDelta,
}

impl ProbeOutcome {
    /// Outcome of a probe with the leases that count; `before` is that of the probe before.
    pub(super) fn new(
        finding: &Arc<Finding>,
        counted: &[CountedLease<'_>],
        before: Option<&Self>,
    ) -> Self {
        let lost_zones = match finding.verdict {
            Verdict::ScaleDown => Vec::new(),
            _ => lost(counted),
        };
        // A probe that was not answered leaves for a moment undecided which leases are expired: no
        // zone is back for that.
        let may_be_lost = finding.tally.undecided > 0 && finding.verdict != Verdict::ScaleDown;
        let lost_zones = match before {
            Some(before) if may_be_lost && lost_zones.is_empty() => before.lost_zones.clone(),
            _ => lost_zones,
        };
        Self {
            finding: Arc::clone(finding),
            leases: oldest(counted),
            lost_zones,
        }
    }
}

fn oldest(counted: &[CountedLease<'_>]) -> Vec<SeenLease> {
    let mut leases: Vec<_> = counted.iter().collect();
    leases.sort_unstable_by_key(|lease| (Reverse(lease.age), lease.node));
    leases.truncate(SHOWN_LEASES);
    let seen = |lease: &CountedLease<'_>| SeenLease {
        node: lease.node.to_owned(),
        age: lease.age,
        state: lease.state,
        skew: lease.skew,
    };
    leases.into_iter().map(seen).collect()
}

impl Serialize for ProbeOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Finding {
            verdict,
            tally,
            skewed,
            fraction,
            grace,
            excluded,
            ..
        } = &*self.finding;
        let Tally {
            candidates,
            expired,
            undecided,
        } = tally;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("verdict", verdict)?;
        map.serialize_entry("candidates", candidates)?;
        map.serialize_entry("expired", expired)?;
        map.serialize_entry("undecided", undecided)?;
        map.serialize_entry("skewed", skewed)?;
        map.serialize_entry("fraction", fraction)?;
        map.serialize_entry("expiredAfterSeconds", &in_seconds(grace.threshold()))?;
        map.serialize_entry("unknownAfterSeconds", &in_seconds(grace.period()))?;
        if grace.is_too_short() {
            map.serialize_entry("graceTooShort", &true)?;
        }
        map.serialize_entry("excluded", excluded)?;
        if !self.leases.is_empty() {
            map.serialize_entry("leases", &self.leases)?;
        }
        if !self.lost_zones.is_empty() {
            map.serialize_entry("lostZones", &self.lost_zones)?;
        }
        map.end()
    }
}

/// Serializes as seconds, to the millisecond.
fn as_seconds<S: Serializer>(span: &TimeDelta, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(in_seconds(*span))
}

#[cfg(test)]
mod tests;
