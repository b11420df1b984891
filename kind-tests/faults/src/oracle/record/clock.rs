//! A node's clock, and how much too early the watchdog may take its lease for expired because of
//! it.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use crate::oracle::truth::TOLERANCE;
use crate::pace::{BEAT, PROBE_AGE};

/// After a clock was off, its stamps are doubted for so long: by then all that a probe can notice
/// has been noticed.
const MEMORY: Duration = Duration::from_secs(30);

/// A node's clock.
#[derive(Clone, Debug, Default)]
pub struct NodeClock {
    /// How far it is ahead of ours, and by how much more each second.
    skew: TimeDelta,
    drift: TimeDelta,
    /// Until when it is or was off.
    off_until: Option<Instant>,
    /// How far it was ahead at the last renewal, and at those that the watchdog may still measure
    /// it by.
    last: TimeDelta,
    stamped: BTreeSet<TimeDelta>,
}

impl NodeClock {
    /// Sets it.
    pub fn set(&mut self, skew: TimeDelta, drift: TimeDelta, now: Instant) {
        (self.skew, self.drift) = (skew, drift);
        self.off_until = Some(now + MEMORY);
    }

    /// Advances by a beat.
    pub fn advance(&mut self) {
        self.skew += self.drift * i32::try_from(BEAT.as_secs()).unwrap_or(1);
    }

    /// A renewal is stamped: how far the stamp is ahead.
    pub fn stamp(&mut self) -> TimeDelta {
        self.last = self.skew;
        self.stamped.insert(self.last);
        // A clock that is put back by more than this makes stamps that lie before the last probe,
        // whenever that was, by more than the tolerance: a step, and the watchdog measures again.
        let noticed = self.last + span(PROBE_AGE + TOLERANCE);
        self.stamped.retain(|ahead| *ahead <= noticed);
        self.last
    }

    /// Whether it differs from ours.
    pub fn differs(&self) -> bool {
        !self.skew.is_zero()
    }

    /// Whether its stamps cannot be taken at their word.
    pub fn is_off(&self, now: Instant) -> bool {
        self.differs() || self.off_until.is_some_and(|until| now < until)
    }

    /// By how much the watchdog may take the last renewal for older than it is, with leases that
    /// expire after `threshold`.
    ///
    /// It measures how far a clock differs by the smallest distance that it has seen between a
    /// stamp and its coming (D-21). One that was put back a little may still be measured by how it
    /// was before: only a renewal that comes soon after a probe gives the step away, so this can
    /// last for as long as the process lives.
    pub fn early(&self, threshold: Duration) -> Duration {
        let early = self
            .stamped
            .iter()
            .map(|ahead| early(*ahead, self.last, threshold))
            .max();
        early.unwrap_or_default()
    }
}

/// The same for a clock that is `now` ahead and is measured by a stamp at which it was `then`
/// ahead.
fn early(then: TimeDelta, now: TimeDelta, threshold: Duration) -> Duration {
    let (tolerance, trusted) = (span(TOLERANCE), span(BEAT + TOLERANCE));
    // Within these the clocks count as agreeing, and the stamp is taken at its word.
    let agree = -trusted <= then && then <= tolerance;
    let early = if agree { -now } else { then - now };
    let early = early.to_std().unwrap_or_default();
    // A stamp from further back than a beat explains is believed only when no other has come for a
    // beat.
    if then - now > trusted {
        early.min(threshold.saturating_sub(BEAT + TOLERANCE))
    } else {
        early
    }
}

fn span(time: Duration) -> TimeDelta {
    TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: Duration = Duration::from_secs(6);

    /// A clock after stamps that were ahead by so many milliseconds.
    fn after(stamps: &[i64]) -> NodeClock {
        let mut clock = NodeClock::default();
        for ahead in stamps {
            clock.set(
                TimeDelta::milliseconds(*ahead),
                TimeDelta::zero(),
                Instant::now(),
            );
            clock.stamp();
        }
        clock
    }

    #[test]
    fn a_lease_is_taken_for_older_by_what_its_clock_is_behind_or_was_put_back_unnoticed() {
        let never_stepped: [(&[i64], u128); 7] = [
            (&[0], 0),
            (&[500], 0),
            (&[90_000], 0),
            (&[-500], 500),
            (&[-2900], 2900),
            (&[-3100], 0),
            (&[-90_000], 0),
        ];
        let put_back: [(&[i64], u128); 5] = [
            (&[1300, 0], 1300),
            (&[-6300, 1297, 0, 0, 0], 1297),
            (&[2500, 0, 2000], 500),
            // It is believed a beat and the tolerance after it came.
            (&[4500, 0], 3000),
            // The clocks agreed.
            (&[900, 0], 0),
        ];
        let no_look_can_miss: [(&[i64], u128); 3] =
            [(&[5100, 0], 0), (&[90_000, 0], 0), (&[-20_000, 0], 0)];
        for (stamps, early) in never_stepped
            .into_iter()
            .chain(put_back)
            .chain(no_look_can_miss)
        {
            assert_eq!(
                after(stamps).early(THRESHOLD).as_millis(),
                early,
                "{stamps:?}"
            );
        }
        let mut clock = after(&[1300, 0]);
        clock.set(TimeDelta::seconds(5), TimeDelta::zero(), Instant::now());
        assert_eq!(
            clock.early(THRESHOLD).as_millis(),
            1300,
            "a step after the last renewal changes nothing"
        );
    }
}
