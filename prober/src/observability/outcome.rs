//! Outcome of a probe, as it is shown.

use std::cmp::Reverse;
use std::sync::Arc;

use chrono::TimeDelta;
use prober_core::judgement::{CountedLease, Finding};
use prober_core::lease::LeaseState;
use prober_core::moment::Moment;
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};

use super::seconds;
use super::zones::{LostZone, lost};

/// Most leases that are shown of a shoot: more would be read by nobody, and thousands of shoots may
/// be down at once.
const SHOWN_LEASES: usize = 20;

#[derive(Clone, Debug)]
pub(crate) struct ProbeOutcome {
    pub finding: Arc<Finding>,
    /// Oldest leases that counted, oldest first; empty while nodes do not matter.
    pub leases: Vec<SeenLease>,
    /// Last renewals of all that count and were silent for the whole grace then.
    pub overdue: Vec<Moment>,
    /// Zones that are lost while the shoot is not; nothing is scaled for them.
    pub lost_zones: Vec<LostZone>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeenLease {
    pub node: String,
    /// Time since the last renewal at that moment, on our clock. Only the next probe shows later
    /// renewals.
    #[serde(rename = "ageSeconds", with = "seconds")]
    pub age: TimeDelta,
    pub state: LeaseState,
    /// Lag of the node's clock behind ours; negative if it is ahead.
    #[serde(
        rename = "skewSeconds",
        with = "seconds",
        default,
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
            overdue: overdue(finding, counted),
            lost_zones,
        }
    }
}

fn overdue(finding: &Finding, counted: &[CountedLease<'_>]) -> Vec<Moment> {
    let is_overdue = |lease: &&CountedLease<'_>| {
        lease.state == LeaseState::Expired && lease.age >= finding.grace.period()
    };
    let overdue = counted.iter().filter(is_overdue);
    overdue.map(|lease| finding.judged_at - lease.age).collect()
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
