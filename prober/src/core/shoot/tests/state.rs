//! What tells two machines apart, for the model: counters only as far as they are compared.

use std::hash::{Hash, Hasher};

use super::super::standby::StandbyWrite;
use super::*;

impl Hash for Shoot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            start: _,
            created: _,
            judge: _,
            resources: _,
            jitter: _,
            intended: _,
            known,
            probing,
            next_probe,
            reprobes,
            ..
        } = self;
        let Self { failures, throttled_until, finding, complete, up_since, turns, last_direction, down_since, .. } = self;
        let Self { was_paused, stood_down, prevented, leader_may_protect_since, .. } = self;
        let Self { marker_seen, verification, standby_writes, scaling, scalings: _, ended, failed_scalings, wake, .. } = self;
        let standby_writes: Vec<_> =
            standby_writes.iter().map(|write| write.map(|StandbyWrite { turn, at }| (turn == *turns, at))).collect();
        let finding = finding.as_ref().map(|finding| (finding.verdict, finding.judged_at, finding.ordering_deadline));
        (known, probing, next_probe, reprobes, failures, throttled_until, finding, complete).hash(state);
        (was_paused, stood_down, prevented, leader_may_protect_since).hash(state);
        (up_since, last_direction, down_since, marker_seen, verification, standby_writes, scaling, ended, failed_scalings, wake)
            .hash(state);
    }
}
