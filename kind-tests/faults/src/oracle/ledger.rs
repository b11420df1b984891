//! What was found and counted.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use faults::lock;
use tokio::time::Instant;

/// What the oracle can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Scaled down although the nodes renewed.
    WrongDown,
    /// Restored during an outage.
    WrongUp,
    /// A write that is wrong in itself: memory lost, overwritten or 0.
    Memory,
    /// Written for a shoot that must be left alone.
    Disobedient,
    /// Written or deleted without the lead, which it needs.
    Leaderless,
    /// A pod deleted that must not be.
    WrongDeletion,
    /// An outage without an answer.
    Missed,
    /// A clean outage that was answered after the first node's end.
    TooLate,
    /// Healthy, and not restored.
    NotRestored,
    /// A crash-looping pod left alone although its Service had recovered.
    NotWeeded,
    /// Not idle after a round.
    NotIdle,
    /// Tasks, connections, file descriptors or memory that grow.
    Leak,
    /// A process that ended, panicked or leaked a token.
    Process,
    /// A request that was forbidden.
    Forbidden,
}

impl Kind {
    /// All, as the JSON line and as the table say it.
    pub const ALL: [(Self, &str, &str); 14] = [
        (Self::WrongDown, "wrong_scale_downs", "scale-downs of shoots whose nodes did renew"),
        (Self::WrongUp, "wrong_restores", "restores during an outage"),
        (Self::Memory, "wrong_memories", "writes that lose, overwrite or zero a memory, or touch anything else"),
        (Self::Disobedient, "disobedient_writes", "writes for shoots that are paused or must not be probed"),
        (Self::Leaderless, "leaderless_writes", "writes without the lead that need it"),
        (Self::WrongDeletion, "wrong_deletions", "deletions of pods that must stay"),
        (Self::Missed, "missed_outages", "outages missed although complete answers could be had"),
        (Self::TooLate, "late_answers", "clean outages answered after the first node's end"),
        (Self::NotRestored, "not_restored", "shoots not restored although complete answers could be had"),
        (Self::NotWeeded, "not_weeded", "crash-looping pods left alone after their Service's recovery"),
        (Self::NotIdle, "not_at_rest", "shoots that are not idle after a round"),
        (Self::Leak, "leaks", "leaks of tasks, connections, file descriptors or memory"),
        (Self::Process, "process_failures", "processes that ended, panicked or printed a token"),
        (Self::Forbidden, "forbidden_requests", "requests that were forbidden"),
    ];

    /// As the table says it.
    pub fn words(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., words)| words)
    }
}

/// One thing found.
#[derive(Clone, Debug)]
pub struct Violation {
    pub at: Duration,
    pub kind: Kind,
    pub place: String,
    pub told: String,
    pub story: Vec<String>,
}

/// What was found and counted.
#[derive(Debug)]
pub struct Ledger {
    pub start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    found: BTreeMap<Kind, u64>,
    /// With evidence; no more than [`SHOWN`].
    violations: Vec<Violation>,
    /// How many of them have been printed.
    printed: usize,
    counts: BTreeMap<&'static str, u64>,
    /// Milliseconds from a clean outage's being beyond doubt to all being at 0.
    latencies: Vec<u32>,
}

/// Violations whose evidence is kept.
const SHOWN: usize = 20;
/// Latencies kept: those of a day.
const LATENCIES: usize = 1_000_000;

impl Ledger {
    /// Nothing yet.
    pub fn new(start: Instant) -> Self {
        Self { start, inner: Mutex::default() }
    }

    /// Counts one more.
    pub fn count(&self, what: &'static str) {
        *lock(&self.inner).counts.entry(what).or_default() += 1;
    }

    /// How many there were.
    pub fn counted(&self, what: &str) -> u64 {
        lock(&self.inner).counts.get(what).copied().unwrap_or_default()
    }

    /// All counts.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.inner).counts.clone()
    }

    /// Notes how long an answer took.
    pub fn answered(&self, after: Duration) {
        let mut inner = lock(&self.inner);
        if inner.latencies.len() < LATENCIES {
            inner.latencies.push(u32::try_from(after.as_millis()).unwrap_or(u32::MAX));
        }
    }

    /// The median, the 99th percentile and the longest of the answers, in milliseconds.
    pub fn latencies(&self) -> Option<[u32; 3]> {
        let mut all = lock(&self.inner).latencies.clone();
        all.sort_unstable();
        let at = |part: usize| all.get((all.len().checked_sub(1)?) * part / 100).copied();
        Some([at(50)?, at(99)?, at(100)?])
    }

    /// Something was found.
    pub fn found(&self, kind: Kind, place: &str, told: String, story: Vec<String>) {
        let at = self.start.elapsed();
        let mut inner = lock(&self.inner);
        *inner.found.entry(kind).or_default() += 1;
        if inner.violations.len() < SHOWN {
            inner.violations.push(Violation { at, kind, place: place.to_owned(), told, story });
        }
    }

    /// How much of this kind was found.
    pub fn total(&self, kind: Kind) -> u64 {
        lock(&self.inner).found.get(&kind).copied().unwrap_or_default()
    }

    /// How much was found of all kinds.
    pub fn all(&self) -> u64 {
        lock(&self.inner).found.values().sum()
    }

    /// The violations that have not been taken to be printed yet.
    pub fn to_print(&self) -> Vec<Violation> {
        let mut inner = lock(&self.inner);
        let (printed, all) = (inner.printed, inner.violations.len());
        inner.printed = all;
        inner.violations[printed..].to_vec()
    }
}
