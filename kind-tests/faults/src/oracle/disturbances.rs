//! What keeps the watchdog from knowing or acting: faults that are on, and since when the last one is
//! over.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::pace::{HAND_OVER, ON_GUARD, PROBE_AGE, SUSPENDED_PROBE_AGE};

/// When the consequences of the last fault are over; none while one is on.
pub type ClearFrom = Option<Instant>;

/// How long a suspension matters.
const MEMORY: Duration = Duration::from_secs(12);
/// For so long a disturbance can be why a leader steps down.
const EXCUSE: Duration = Duration::from_secs(15);

/// What all shoots share.
#[derive(Debug)]
pub struct Disturbances {
    pub seed: ClearFrom,
    /// Since when each replica has been at work; none while it does not run, or is suspended.
    pub at_work: BTreeMap<&'static str, Option<Instant>>,
    /// When a weeder last started or applied another config: it opens a window for each ready
    /// Service then.
    pub weeder_started: Instant,
    /// When a prober was last suspended or went on.
    pub suspended: Option<Instant>,
    /// How late this machine may let processes run.
    pub leeway: Duration,
}

impl Disturbances {
    /// Nothing is wrong from this moment on, but that nobody is at work.
    pub fn new(clear_from: Instant, leeway: Duration) -> Self {
        Self {
            seed: Some(clear_from),
            at_work: BTreeMap::new(),
            weeder_started: clear_from,
            suspended: None,
            leeway,
        }
    }

    fn replicas(&self, agent: &str) -> impl Iterator<Item = Option<Instant>> {
        let of_agent = move |(name, _): &(&&str, _)| name.starts_with(agent);
        self.at_work
            .iter()
            .filter(of_agent)
            .map(|(_, since)| *since)
    }

    /// Since when the seed has answered, and an agent has been ready.
    fn with_seed(&self, ready_from: Instant, now: Instant) -> Option<Instant> {
        let both = self.seed?.max(ready_from);
        (both <= now).then_some(both)
    }

    /// Since when the seed has answered and a replica of an agent has led: whoever is not at work may
    /// have led before.
    pub fn led_since(&self, agent: &str, now: Instant) -> Option<Instant> {
        let all_since: Option<Vec<_>> = self.replicas(agent).collect();
        self.with_seed(all_since?.into_iter().max()? + HAND_OVER, now)
    }

    /// Since when the seed has answered and a prober has watched, leading or not.
    pub fn guarded_since(&self, now: Instant) -> Option<Instant> {
        let watched = self.replicas("prober").flatten().min()?;
        self.with_seed(watched + ON_GUARD, now)
    }

    /// How old the finding may be that a write rests on.
    pub fn probe_age(&self, now: Instant) -> Duration {
        let was_suspended = self.suspended.is_some_and(|at| now - at < MEMORY);
        let age = if was_suspended {
            SUSPENDED_PROBE_AGE
        } else {
            PROBE_AGE
        };
        age + self.leeway
    }

    /// Whether a replica may have stepped down for what happened to it or to the seed.
    pub fn excuse(&self, replica: &str, now: Instant) -> bool {
        let at_work = self.at_work.get(replica).copied().flatten();
        [at_work, self.seed]
            .iter()
            .any(|since| since.is_none_or(|since| now < since + EXCUSE))
    }
}
