//! The time in which pods that wait for a Service are deleted.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use super::news::Cause;

/// First windows open within this time. They are no emergency, and a seed may have hundreds of shoots.
const MAX_SPREAD: Duration = Duration::from_secs(30);
/// ... and within this part of watchDuration, so that short ones are still full.
const SPREAD_PART: u32 = 10;

/// How windows are made at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    pub cause: Cause,
    /// When they are made; those at the start open a little later.
    pub now: Instant,
    pub duration: Duration,
}

#[derive(Debug)]
pub struct Window {
    /// Its number, which no other window has or had.
    pub serial: u64,
    pub cause: Cause,
    opens: Instant,
    closes: Instant,
    is_open: bool,
    /// The pods deleted, by their owner's UID.
    deletions: HashMap<String, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Ahead,
    /// It has opened just now.
    Opened,
    Open,
    Over,
}

impl Window {
    /// A window that opens at this instant, for this long.
    pub fn new(serial: u64, cause: Cause, opens: Instant, duration: Duration) -> Self {
        Self { serial, cause, opens, closes: opens + duration, is_open: false, deletions: HashMap::new() }
    }

    /// Lets time go on.
    pub fn advance(&mut self, now: Instant) -> Phase {
        if now >= self.closes {
            return Phase::Over;
        }
        if now < self.opens {
            return Phase::Ahead;
        }
        match std::mem::replace(&mut self.is_open, true) {
            true => Phase::Open,
            false => Phase::Opened,
        }
    }

    /// Whether it was open when time last went on.
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// When time changes it next.
    pub const fn next(&self) -> Instant {
        if self.is_open { self.closes } else { self.opens }
    }

    /// Whether one more pod of this owner may be deleted (D-46).
    pub fn has_room(&self, owner: &str, limit: Option<u32>) -> bool {
        limit.is_none_or(|limit| self.deletions.get(owner).is_none_or(|&count| count < limit))
    }

    pub fn charge(&mut self, owner: &str) {
        *self.deletions.entry(owner.to_owned()).or_default() += 1;
    }

    /// Takes one back: it was not deleted after all.
    pub fn refund(&mut self, owner: &str) {
        if let Some(count) = self.deletions.get_mut(owner) {
            *count = count.saturating_sub(1);
        }
    }
}

/// How long after the start the first window of a ready Service opens: spread evenly, always the same for the same Service.
pub fn spread(namespace: &str, service: usize, duration: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (namespace, service).hash(&mut hasher);
    let part = (hasher.finish() >> 32) as f64 / f64::from(u32::MAX);
    MAX_SPREAD.min(duration / SPREAD_PART).mul_f64(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_window_is_ahead_then_opens_once_and_is_over_after_its_duration() {
        let start = Instant::now();
        let mut window = Window::new(1, Cause::Start, start + MINUTE, 5 * MINUTE);
        assert_eq!((window.advance(start), window.next()), (Phase::Ahead, start + MINUTE));
        assert!(!window.is_open());
        assert_eq!((window.advance(start + MINUTE), window.next()), (Phase::Opened, start + 6 * MINUTE));
        assert!(window.is_open());
        assert_eq!(window.advance(start + 6 * MINUTE - Duration::from_nanos(1)), Phase::Open);
        assert_eq!(window.advance(start + 6 * MINUTE), Phase::Over);
    }

    #[test]
    fn a_window_that_nobody_looked_at_in_its_time_is_over() {
        let start = Instant::now();
        let mut window = Window::new(1, Cause::Recovery, start, MINUTE);
        assert_eq!(window.advance(start + 2 * MINUTE), Phase::Over);
        assert!(!window.is_open());
    }

    #[test]
    fn each_owner_has_a_limit_of_its_own() {
        let mut window = Window::new(1, Cause::Recovery, Instant::now(), MINUTE);
        window.charge("a");
        window.charge("a");
        window.charge("b");
        assert!(!window.has_room("a", Some(2)));
        assert!(window.has_room("b", Some(2)));
        assert!(window.has_room("c", Some(1)));
        assert!(window.has_room("a", None));
        window.refund("a");
        window.refund("never charged");
        assert!(window.has_room("a", Some(2)));
    }

    #[test]
    fn first_windows_are_spread_over_a_tenth_of_their_duration_and_at_most_half_a_minute() {
        let spreads = |duration| -> Vec<Duration> {
            (0..300).map(|shoot| spread(&format!("shoot--garden--{shoot}"), shoot % 2, duration)).collect()
        };
        for (duration, limit) in [(5 * MINUTE, MINUTE / 2), (MINUTE, MINUTE / 10), (600 * MINUTE, MINUTE / 2)] {
            let spreads = spreads(duration);
            assert!(spreads.iter().all(|spread| *spread <= limit));
            for third in 0..3 {
                let (from, to) = (limit * third / 3, limit * (third + 1) / 3);
                let count = spreads.iter().filter(|spread| **spread >= from && **spread < to).count();
                assert!((50..150).contains(&count), "{count} of 300 between {from:?} and {to:?}");
            }
        }
    }
}
