//! When the nodes of synthetic shoots renew their leases, as a function of the time: no renewal is
//! ever carried out.
//!
//! Node i of n renews in the i-th of n equal parts of a beat, somewhere in that part, and each
//! shoot begins its beats at a moment of its own. So the moment at which a verdict can fall is
//! spread over a hundredth of a beat with 100 nodes, whatever the moment of the outage.

use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How the nodes of one shoot renew. Times within a beat are microseconds, as exact as stamps are.
#[derive(Clone, Debug)]
pub struct RenewalSchedule {
    beat: i64,
    /// When in a beat each node renews.
    phases: Vec<i64>,
    /// From when on no node reaches its API server.
    pub cut: Option<DateTime<Utc>>,
    /// From when on each renews again, when its phase wants it.
    pub reconnected: Option<DateTime<Utc>>,
}

impl RenewalSchedule {
    /// The schedule of this shoot, of `nodes` nodes that renew once in `beat`: the same in every
    /// run and process.
    pub fn new(shoot: usize, nodes: usize, beat: TimeDelta) -> Self {
        let beat = (beat.as_seconds_f64() * 1e6) as i64;
        let mut random = StdRng::seed_from_u64(shoot as u64);
        let begin: f64 = random.random();
        let mut part = |node: usize| (node as f64 + random.random::<f64>()) / nodes as f64;
        let phases = (0..nodes)
            .map(|node| ((begin + part(node)).fract() * beat as f64) as i64)
            .collect();
        Self {
            beat,
            phases,
            cut: None,
            reconnected: None,
        }
    }

    /// When each node has last renewed, as seen at `now`.
    pub fn renewed(&self, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let renewed = |&phase: &i64| {
            let last = |at: DateTime<Utc>| {
                let at = at.timestamp_micros();
                DateTime::from_timestamp_micros(at - (at - phase).rem_euclid(self.beat))
                    .unwrap_or_default()
            };
            let is_back = self.reconnected.is_some_and(|back| last(now) >= back);
            last(self.cut.filter(|cut| !is_back && *cut < now).unwrap_or(now))
        };
        self.phases.iter().map(renewed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: TimeDelta = TimeDelta::seconds(10);

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).expect("a calendar date")
    }

    #[test]
    fn nodes_renew_at_their_phases_but_in_outages() {
        let mut schedule = RenewalSchedule::new(7, 100, BEAT);
        let mut before = schedule.renewed(at(0));
        schedule.cut = Some(at(0));
        assert_eq!(schedule.renewed(at(60)), before);
        before.sort_unstable();
        assert!(
            before
                .iter()
                .all(|&renewed| at(0) - renewed < BEAT && renewed <= at(0))
        );
        let mut between = before.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(between.all(|between| between <= BEAT / 50), "{before:?}");
        schedule.reconnected = Some(at(60));
        let renewed = |now| {
            let renewed = schedule.renewed(at(now));
            renewed
                .into_iter()
                .filter(|renewed| *renewed >= at(60))
                .count()
        };
        assert!((45..=55).contains(&renewed(65)), "{}", renewed(65));
        assert_eq!(renewed(70), 100);
    }
}
