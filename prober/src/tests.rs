//! What the tests of several modules stand on.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use prober_core::judgement::{Finding, Judge, Rules};
use prober_core::lease::Grace;
use prober_core::moment::Moment;
use prober_core::verdict::PoolConditions;

use crate::observability::outcome::ProbeOutcome;

fn span(seconds: f64) -> TimeDelta {
    TimeDelta::microseconds((seconds * 1e6).round() as i64)
}

/// The moment so many seconds after the process began.
pub(crate) fn at(seconds: f64) -> Moment {
    Moment::since_start(span(seconds))
}

/// What a clock that agrees with ours says at that moment.
pub(crate) fn wall(seconds: f64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).expect("a calendar date") + span(seconds)
}

/// What is found where nothing was seen.
pub(crate) fn nothing_found() -> Finding {
    found_with_grace(40)
}

/// What is found where nothing was seen, with a grace of so many seconds.
pub(crate) fn found_with_grace(seconds: i64) -> Finding {
    let rules = Rules {
        grace: Grace::new(TimeDelta::seconds(seconds)),
        fraction: 0.6,
        pool_conditions: &PoolConditions::default(),
        renewed_after: None,
    };
    Judge::default().judge(&rules)
}

/// Outcome of a probe after which no lease is shown.
pub(crate) fn outcome(finding: Finding) -> ProbeOutcome {
    ProbeOutcome {
        finding: Arc::new(finding),
        leases: Vec::new(),
        lost_zones: Vec::new(),
    }
}
