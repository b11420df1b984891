//! Outcome of a probe, as it is shown.

use std::cmp::Reverse;
use std::sync::Arc;

use chrono::TimeDelta;
use prober_core::judgement::{CountedLease, Finding};
use prober_core::lease::LeaseState;
use prober_core::moment::Moment;
use serde::{Deserialize, Serialize};

use super::seconds;

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
    /// Outcome of a probe with the leases that count.
    pub(super) fn new(finding: &Arc<Finding>, counted: &[CountedLease<'_>]) -> Self {
        Self {
            finding: Arc::clone(finding),
            leases: oldest(counted),
            overdue: overdue(finding, counted),
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

#[cfg(test)]
mod tests;
