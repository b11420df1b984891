//! What was found and counted.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// What the oracle can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// Scaled down although the nodes renewed.
    WrongScaleDowns,
    /// Restored during an outage.
    WrongRestores,
    /// A write that is wrong in itself: memory lost, overwritten or 0, or anything else touched.
    WrongMemories,
    /// Written for a shoot that is paused or must not be probed.
    DisobedientWrites,
    /// Written or deleted without the lead, which it needs.
    LeaderlessWrites,
    /// A pod deleted that must not be.
    WrongDeletions,
    /// An outage without an answer in time although complete answers could be had.
    MissedOutages,
    /// Healthy, and not restored in time although complete answers could be had.
    NotRestored,
    /// A crash-looping pod left alone although its Service had recovered.
    NotWeeded,
    /// Tasks, connections, file descriptors or memory that grow.
    Leaks,
    /// A process that ended, panicked or leaked a token.
    ProcessFailures,
    /// A request that was forbidden.
    ForbiddenRequests,
}

/// What was found and counted, since when.
#[derive(Debug)]
pub struct Violations {
    pub start: Instant,
    totals: Mutex<RunTotals>,
}

#[derive(Debug, Default)]
pub struct RunTotals {
    pub found: BTreeMap<ViolationKind, u64>,
    /// The first things found that are not printed yet: where, and what.
    pub evidence: Vec<(String, String)>,
    pub counts: BTreeMap<&'static str, u64>,
}

/// Things found of which the evidence is kept.
const SHOWN: u64 = 20;

impl Violations {
    /// None before this moment.
    pub fn new(start: Instant) -> Self {
        Self {
            start,
            totals: Mutex::default(),
        }
    }

    pub fn totals(&self) -> MutexGuard<'_, RunTotals> {
        self.totals.lock()
    }

    /// Counts one more.
    pub fn count(&self, what: &'static str) {
        *self.totals().counts.entry(what).or_default() += 1;
    }

    /// Something was found.
    pub fn found(&self, kind: ViolationKind, place: &str, text: &str) {
        let at = self.start.elapsed().as_secs_f64();
        let mut totals = self.totals();
        *totals.found.entry(kind).or_default() += 1;
        if totals.found.values().sum::<u64>() <= SHOWN {
            let evidence = format!("{at:.1} s, {place}: {kind:?}: {text}");
            totals.evidence.push((place.to_owned(), evidence));
        }
    }
}
