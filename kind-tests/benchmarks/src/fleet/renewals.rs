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
