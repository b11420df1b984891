//! Whether something keeps the watchdog from knowing or acting: faults that are on, and when the last one ended.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::pace::{FINDING_AGE, SUSPENDED_FINDING_AGE};

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
    pub probers: Disturbance,
    pub weeders: Disturbance,
    /// The probers that are at work, and from when on each has watched for long enough to protect.
    pub guards: BTreeMap<String, Instant>,
    /// When a prober was last suspended or went on.
    pub suspended: Option<Instant>,
    /// The worst delay of this machine lately, and when.
    lag: (Duration, Instant),
    pub worst_lag: Duration,
}

/// The disturbances at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Since when the seed has answered, so that what stands there is known.
    pub seed_since: Option<Instant>,
    /// Since when the seed has answered and a prober has led.
    pub clear_since: Option<Instant>,
    /// Since when the seed has answered and a prober has watched, leading or not.
    pub guarded_since: Option<Instant>,
    /// The same for the weeder.
    pub weeding_since: Option<Instant>,
    /// Whether a prober was suspended lately.
    pub suspended: bool,
    /// How late this machine lets processes run at present.
    pub lag: Duration,
}

impl Reading {
    /// How old the finding may be that a write rests on.
    pub fn finding_age(&self) -> Duration {
        (if self.suspended { SUSPENDED_FINDING_AGE } else { FINDING_AGE }) + self.lag
    }
}

/// How long a lag or a suspension matters.
const MEMORY: Duration = Duration::from_secs(12);

impl Disturbances {
    /// Nothing is wrong from this moment on.
    pub fn new(clear_from: Instant) -> Self {
        let disturbance = Disturbance::clear_from(clear_from);
        Self {
            seed: disturbance,
            probers: disturbance,
            weeders: disturbance,
            guards: BTreeMap::new(),
            suspended: None,
            lag: (Duration::ZERO, clear_from),
            worst_lag: Duration::ZERO,
        }
    }

    /// Notes how late this machine was.
    pub fn lag(&mut self, lag: Duration, now: Instant) {
        self.worst_lag = self.worst_lag.max(lag);
        if lag >= self.lag.0 || now - self.lag.1 > MEMORY {
            self.lag = (lag, now);
        }
    }

    /// How it is.
    pub fn read(&self, now: Instant) -> Reading {
        let seed_since = self.seed.clear_since(now);
        let both = |agents: Option<Instant>| Some(seed_since?.max(agents?));
        Reading {
            seed_since,
            clear_since: both(self.probers.clear_since(now)),
            guarded_since: both(self.guards.values().copied().min().filter(|from| *from <= now)),
            weeding_since: both(self.weeders.clear_since(now)),
            suspended: self.suspended.is_some_and(|at| now - at < MEMORY),
            lag: if now - self.lag.1 > MEMORY { Duration::ZERO } else { self.lag.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_clear_after_the_last_fault_and_its_consequences() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut disturbance = Disturbance::clear_from(now);
        assert_eq!(disturbance.clear_since(now), Some(now));
        disturbance.begin();
        disturbance.begin();
        disturbance.end(now + 5 * second);
        assert_eq!(disturbance.clear_since(now + 9 * second), None, "the other one is still on");
        disturbance.end(now + 3 * second);
        assert_eq!(disturbance.clear_since(now + 4 * second), None);
        assert_eq!(disturbance.clear_since(now + 5 * second), Some(now + 5 * second));
    }

    #[test]
    fn one_prober_that_has_watched_for_long_is_enough_of_a_guard() {
        let now = Instant::now();
        let at = |second: u64| now + Duration::from_secs(second);
        let mut disturbances = Disturbances::new(now);
        let guarded = |disturbances: &Disturbances, second| disturbances.read(at(second)).guarded_since;
        assert_eq!(guarded(&disturbances, 1), None);
        disturbances.guards = [("a".to_owned(), at(6)), ("b".to_owned(), at(9))].into();
        assert_eq!([5, 6, 20].map(|second| guarded(&disturbances, second)), [None, Some(at(6)), Some(at(6))]);
        disturbances.guards.remove("a");
        assert_eq!([8, 20].map(|second| guarded(&disturbances, second)), [None, Some(at(9))]);
        disturbances.guards = [("a".to_owned(), at(30))].into();
        assert_eq!([29, 31].map(|second| guarded(&disturbances, second)), [None, Some(at(30))]);
        disturbances.seed.begin();
        assert_eq!(guarded(&disturbances, 40), None, "nobody can write");
    }

    #[test]
    fn the_worst_lag_is_remembered_for_a_while() {
        let now = Instant::now();
        let mut disturbances = Disturbances::new(now);
        disturbances.lag(Duration::from_secs(2), now);
        disturbances.lag(Duration::from_millis(5), now + Duration::from_secs(1));
        assert_eq!(disturbances.read(now + Duration::from_secs(1)).lag, Duration::from_secs(2));
        assert_eq!(disturbances.read(now + MEMORY + Duration::from_secs(1)).lag, Duration::ZERO);
        assert_eq!(disturbances.worst_lag, Duration::from_secs(2));
    }
}
