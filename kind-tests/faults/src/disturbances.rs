//! Whether something keeps the watchdog from knowing or acting: faults that are on, and when the last one ended.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
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
pub struct Disturbances(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    seed: Disturbance,
    probers: Disturbance,
    weeders: Disturbance,
    /// The probers that are at work, and from when on each has watched for long enough to protect.
    guards: BTreeMap<String, Instant>,
    /// When a prober was last suspended or went on.
    suspended: Option<Instant>,
    /// The worst delay of this very process lately, and when.
    lag: (Duration, Instant),
    /// The worst of all.
    worst: Duration,
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
        let inner = Inner {
            seed: disturbance,
            probers: disturbance,
            weeders: disturbance,
            guards: BTreeMap::new(),
            suspended: None,
            lag: (Duration::ZERO, clear_from),
            worst: Duration::ZERO,
        };
        Self(Mutex::new(inner))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the seed's disturbance.
    pub fn seed(&self, act: impl FnOnce(&mut Disturbance)) {
        self.with(|inner| act(&mut inner.seed));
    }

    /// Changes the probers' disturbance.
    pub fn probers(&self, act: impl FnOnce(&mut Disturbance)) {
        self.with(|inner| act(&mut inner.probers));
    }

    /// Changes the weeders' disturbance.
    pub fn weeders(&self, act: impl FnOnce(&mut Disturbance)) {
        self.with(|inner| act(&mut inner.weeders));
    }

    /// This prober is at work, and on guard from then on; none: it is not at work.
    pub fn guard(&self, prober: &str, from: Option<Instant>) {
        self.with(|inner| match from {
            Some(from) => drop(inner.guards.insert(prober.to_owned(), from)),
            None => drop(inner.guards.remove(prober)),
        });
    }

    /// Notes that a prober is suspended, or goes on.
    pub fn suspend(&self, now: Instant) {
        self.with(|inner| inner.suspended = Some(now));
    }

    /// Notes how late this process was.
    pub fn lag(&self, lag: Duration, now: Instant) {
        self.with(|inner| {
            inner.worst = inner.worst.max(lag);
            if lag >= inner.lag.0 || now - inner.lag.1 > MEMORY {
                inner.lag = (lag, now);
            }
        });
    }

    /// The worst lag so far.
    pub fn worst_lag(&self) -> Duration {
        self.with(|inner| inner.worst)
    }

    /// How it is.
    pub fn read(&self, now: Instant) -> Reading {
        self.with(|inner| {
            let both = |agents: Option<Instant>| Some(inner.seed.clear_since(now)?.max(agents?));
            Reading {
                seed_since: inner.seed.clear_since(now),
                clear_since: both(inner.probers.clear_since(now)),
                guarded_since: both(inner.guards.values().copied().min().filter(|from| *from <= now)),
                weeding_since: both(inner.weeders.clear_since(now)),
                suspended: inner.suspended.is_some_and(|at| now - at < MEMORY),
                lag: if now - inner.lag.1 > MEMORY { Duration::ZERO } else { inner.lag.0 },
            }
        })
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
        let disturbances = Disturbances::new(now);
        let guarded = |second| disturbances.read(at(second)).guarded_since;
        assert_eq!(guarded(1), None);
        disturbances.guard("a", Some(at(6)));
        disturbances.guard("b", Some(at(9)));
        assert_eq!([guarded(5), guarded(6), guarded(20)], [None, Some(at(6)), Some(at(6))]);
        disturbances.guard("a", None);
        assert_eq!([guarded(8), guarded(20)], [None, Some(at(9))]);
        disturbances.guard("a", Some(at(30)));
        disturbances.guard("b", None);
        assert_eq!([guarded(29), guarded(31)], [None, Some(at(30))]);
        disturbances.seed(Disturbance::begin);
        assert_eq!(guarded(40), None, "nobody can write");
    }

    #[test]
    fn the_worst_lag_is_remembered_for_a_while() {
        let now = Instant::now();
        let disturbances = Disturbances::new(now);
        disturbances.lag(Duration::from_secs(2), now);
        disturbances.lag(Duration::from_millis(5), now + Duration::from_secs(1));
        assert_eq!(disturbances.read(now + Duration::from_secs(1)).lag, Duration::from_secs(2));
        assert_eq!(disturbances.read(now + MEMORY + Duration::from_secs(1)).lag, Duration::ZERO);
    }
}
