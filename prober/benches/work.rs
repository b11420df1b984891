//! The work that is measured, on a shoot of so many nodes in its steady state: all leases are
//! renewed and known from earlier probes.

#![allow(
    dead_code,
    reason = "several programs share this file and each uses a part of it"
)]

use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use prober::shoot_client::wire::{ItemList, ListReader, ListRoom, NodeList, ReadBody};
use prober_core::judgement::{Finding, Judge, Rules};
use prober_core::lease::{Grace, LeaseList};
use prober_core::moment::{Moment, RequestTimes};
use prober_core::verdict::PoolConditions;

use super::bodies;

/// With Gardener's defaults.
static DEFAULT_CONDITIONS: PoolConditions = PoolConditions::new();

fn rules() -> Rules<'static> {
    Rules {
        grace: GRACE,
        fraction: 0.6,
        pool_conditions: &DEFAULT_CONDITIONS,
        renewed_after: None,
    }
}

pub const GRACE: Grace = Grace::new(TimeDelta::seconds(40));

/// The probe so many seconds after the first.
fn times(seconds: i64) -> RequestTimes {
    let received = Moment::since_start(TimeDelta::seconds(100 + seconds));
    let wall = DateTime::from_timestamp(1_800_000_000, 0).expect("a calendar date")
        + TimeDelta::seconds(seconds);
    RequestTimes {
        sent: received - TimeDelta::milliseconds(2),
        received,
        wall,
    }
}

/// A shoot that was probed before.
pub struct SteadyShoot {
    pub judge: Judge,
    /// The answer to the next probe, and to the one after that: they alternate, so that each shows
    /// renewed leases.
    pub leases: Vec<u8>,
    others: Vec<u8>,
    count: usize,
    pub times: RequestTimes,
}

impl SteadyShoot {
    pub fn new(count: usize) -> Self {
        let names: Vec<_> = (0..count).map(bodies::name).collect();
        let machines = names.iter().map(|name| Some(name.as_str())).collect();
        let mut judge = Judge::default();
        judge.set_machines(Arc::new(machines));
        let [first, others, leases] =
            [0, 20, 40].map(|seconds| bodies::lease_list(count, times(seconds).wall));
        for (seconds, body) in [(0, &first), (20, &others), (40, &leases)] {
            let leases: LeaseList = decode(body, count);
            judge.observe(times(seconds), leases.iter(), GRACE);
        }
        Self {
            judge,
            leases,
            others,
            count,
            times: times(40),
        }
    }

    /// The same, which has listed the nodes as in an outage.
    pub fn with_nodes(mut self) -> Self {
        let nodes = decode::<NodeList>(&bodies::node_list(self.count), 0).nodes;
        self.judge.set_nodes(nodes);
        self
    }

    /// Judges by all that is known at the last probe.
    pub fn judge(&self) -> Finding {
        self.judge.judge(&rules())
    }

    /// All that a healthy probe computes, from the body of the answer to the finding.
    pub fn probe(&mut self) -> Finding {
        std::mem::swap(&mut self.leases, &mut self.others);
        let leases: LeaseList = decode(&self.leases, self.count);
        self.judge.observe(self.times, leases.iter(), GRACE);
        assert!(!self.judge.wants_nodes(&rules(), true, None));
        self.judge()
    }
}

/// Decodes a page of about so many items, in the pieces that a connection gives.
pub fn decode<L: ItemList>(body: &[u8], expected: usize) -> L {
    let room = ListRoom::after(&L::default());
    let mut reader = ListReader::new(expected, &room);
    for piece in body.chunks(bodies::CHUNK) {
        reader.feed(piece).expect("a part of a page");
    }
    reader.finish().expect("a page").items
}
