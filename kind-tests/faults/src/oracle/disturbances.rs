//! Whether something keeps the watchdog from knowing or acting: faults that are on, and when the
//! last one ended.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::pace::{HAND_OVER, ON_GUARD, PROBE_AGE, SUSPENDED_PROBE_AGE};

/// Faults of one kind. Several may be on at once.
#[derive(Clone, Copy, Debug)]
pub struct Disturbance {
    on: u32,
    clear_from: Instant,
}

impl Disturbance {
    /// Clear from this moment on.
    pub fn clear_from(clear_from: Instant) -> Self {
        Self { on: 0, clear_from }
    }

    /// A fault begins.
    pub fn begin(&mut self) {
        self.on += 1;
    }

    /// A fault ends, whose consequences may last until then.
    pub fn end(&mut self, clear_from: Instant) {
        self.on = self.on.saturating_sub(1);
        self.clear_from = self.clear_from.max(clear_from);
    }

    /// Since when it has been clear; none while it is not.
    pub fn clear_since(&self, now: Instant) -> Option<Instant> {
        (self.on == 0 && self.clear_from <= now).then_some(self.clear_from)
    }
}

/// What all shoots share.
#[derive(Debug)]
pub struct Disturbances {
    pub seed: Disturbance,
    /// Since when each replica has been at work; none while it does not run, or is suspended.
    pub at_work: BTreeMap<&'static str, Option<Instant>>,
    /// When a weeder last started or applied another config: it opens a window for each ready
    /// Service then.
    pub weeder_started: Instant,
    /// When a prober was last suspended or went on.
    pub suspended: Option<Instant>,
    /// How late this machine may let processes run.
    leeway: Duration,
}

/// The disturbances at one moment.
#[derive(Clone, Copy, Debug)]
pub struct DisturbanceSnapshot {
    /// Since when the seed has answered, so that what stands there is known.
    pub seed_since: Option<Instant>,
    /// Since when the seed has answered and a prober has led.
    pub clear_since: Option<Instant>,
    /// Since when the seed has answered and a prober has watched, leading or not.
    pub guarded_since: Option<Instant>,
    /// Since when the seed has answered and a weeder has led.
    pub weeding_since: Option<Instant>,
    pub weeder_started: Instant,
    /// Whether a prober was suspended lately.
    pub suspended: bool,
    /// How late this machine may let processes run.
    pub leeway: Duration,
}

impl DisturbanceSnapshot {
    /// How old the finding may be that a write rests on.
    pub fn probe_age(&self) -> Duration {
        let age = if self.suspended {
            SUSPENDED_PROBE_AGE
        } else {
            PROBE_AGE
        };
        age + self.leeway
    }
}

/// How long a suspension matters.
const MEMORY: Duration = Duration::from_secs(12);

impl Disturbances {
    /// Nothing is wrong from this moment on, but that nobody is at work.
    pub fn new(clear_from: Instant, leeway: Duration) -> Self {
        Self {
            seed: Disturbance::clear_from(clear_from),
            at_work: BTreeMap::new(),
            weeder_started: clear_from,
            suspended: None,
            leeway,
        }
    }

    /// How it is at this moment.
    pub fn at(&self, now: Instant) -> DisturbanceSnapshot {
        let seed_since = self.seed.clear_since(now);
        let both =
            |agents: Option<Instant>| Some(seed_since?.max(agents.filter(|from| *from <= now)?));
        let since = |agent: &'static str| {
            let replicas = self.at_work.iter();
            let of_agent = replicas.filter(move |(name, _)| name.starts_with(agent));
            of_agent.map(|(_, since)| *since)
        };
        // Whoever is not at work may have led.
        let led = |agent| {
            let all_since: Option<Vec<_>> = since(agent).collect();
            Some(all_since?.into_iter().max()? + HAND_OVER)
        };
        let watched = since("prober").flatten().min();
        DisturbanceSnapshot {
            seed_since,
            clear_since: both(led("prober")),
            guarded_since: both(watched.map(|since| since + ON_GUARD)),
            weeding_since: both(led("weeder")),
            weeder_started: self.weeder_started,
            suspended: self.suspended.is_some_and(|at| now - at < MEMORY),
            leeway: self.leeway,
        }
    }
}
