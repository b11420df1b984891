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
    pub outage: Option<NodeOutage>,
}

/// From `cut` on no node reaches its API server; from `reconnected` on each renews again when its
/// phase wants it.
#[derive(Clone, Copy, Debug)]
pub struct NodeOutage {
    pub cut: DateTime<Utc>,
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
            outage: None,
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
            match self.outage {
                Some(NodeOutage { cut, reconnected })
                    if reconnected.is_none_or(|reconnected| last(now) < reconnected) =>
                {
                    last(cut.min(now))
                }
                _ => last(now),
            }
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
    fn healthy_nodes_have_renewed_within_a_beat_each_at_its_own_phase() {
        let mut renewed = RenewalSchedule::new(7, 100, BEAT).renewed(at(0));
        assert_ne!(renewed, RenewalSchedule::new(8, 100, BEAT).renewed(at(0)));
        assert!(
            renewed
                .iter()
                .all(|&renewed| renewed <= at(0) && at(0) - renewed < BEAT),
            "{renewed:?}"
        );
        renewed.sort_unstable();
        assert!(
            renewed
                .windows(2)
                .all(|pair| pair[1] - pair[0] <= BEAT / 50),
            "{renewed:?}"
        );
    }

    #[test]
    fn in_an_outage_nothing_is_renewed_until_each_node_beats_again() {
        let mut schedule = RenewalSchedule::new(7, 100, BEAT);
        let before = schedule.renewed(at(0));
        schedule.outage = Some(NodeOutage {
            cut: at(0),
            reconnected: None,
        });
        assert_eq!(schedule.renewed(at(60)), before);
        schedule.outage = Some(NodeOutage {
            cut: at(0),
            reconnected: Some(at(60)),
        });
        let renewed = |now: i64| {
            schedule
                .renewed(at(now))
                .into_iter()
                .filter(|&renewed| renewed >= at(60))
                .count()
        };
        assert!((45..=55).contains(&renewed(65)), "{}", renewed(65));
        assert_eq!(renewed(70), 100);
    }
}
