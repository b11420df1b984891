//! The pieces of work that are measured, each on a shoot of so many nodes in its steady state: all leases are renewed and known from
//! earlier probes.

#![allow(dead_code, reason = "several programs share this file and each uses a part of it")]

use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use prober::core::judgement::{Finding, Judge, Rules};
use prober::core::lease::{Grace, LeaseList};
use prober::core::moment::{Moment, RequestTimes};
use prober::core::verdict::{NodeRecord, PoolConditions};
use prober::shoot_client::wire;

use super::bodies;

/// With Gardener's defaults.
fn rules() -> Rules {
    Rules { grace: GRACE, fraction: 0.6, pool_conditions: PoolConditions::new() }
}

pub const GRACE: Grace = Grace::new(TimeDelta::seconds(40));

/// The probe so many seconds after the first.
fn times(seconds: i64) -> RequestTimes {
    let received = Moment::since_start(TimeDelta::seconds(100 + seconds));
    let wall = DateTime::from_timestamp(1_800_000_000, 0).expect("a calendar date") + TimeDelta::seconds(seconds);
    RequestTimes { sent: received - TimeDelta::milliseconds(2), received, wall }
}

/// A shoot that was probed before.
pub struct Shoot {
    pub judge: Judge,
    pub nodes: Vec<NodeRecord>,
    pub protobuf: Vec<u8>,
    pub json: Vec<u8>,
    pub times: RequestTimes,
}

impl Shoot {
    pub fn new(count: usize) -> Self {
        let mut judge = Judge::default();
        let names: Vec<_> = (0..count).map(bodies::name).collect();
        judge.set_machines(Arc::new(names.iter().map(|name| Some(name.as_str())).collect()));
        for seconds in [0, 20] {
            let times = times(seconds);
            observe(&mut judge, times, &bodies::leases_protobuf(count, times.wall));
        }
        let times = times(40);
        let mut nodes = Vec::new();
        wire::nodes(bodies::PROTOBUF, &bodies::nodes_protobuf(count), &mut nodes).expect("a page");
        let protobuf = bodies::leases_protobuf(count, times.wall);
        observe(&mut judge, times, &protobuf);
        Self { judge, nodes, protobuf, json: bodies::leases_json(count, times.wall), times }
    }

    /// The same, which has listed the nodes as in an outage.
    pub fn with_nodes(mut self) -> Self {
        self.judge.set_nodes(std::mem::take(&mut self.nodes));
        self
    }
}

/// Decodes a list of leases.
pub fn decode(content_type: &str, body: &[u8]) -> LeaseList {
    let mut leases = LeaseList::default();
    wire::leases(content_type, body, &mut leases).expect("a page");
    leases
}

/// Decodes a page of nodes.
pub fn decode_nodes(body: &[u8]) -> Vec<NodeRecord> {
    let mut nodes = Vec::new();
    wire::nodes(bodies::PROTOBUF, body, &mut nodes).expect("a page");
    nodes
}

/// Decodes a list of leases and takes it in.
fn observe(judge: &mut Judge, times: RequestTimes, body: &[u8]) {
    judge.observe(times, decode(bodies::PROTOBUF, body).iter(), GRACE);
}

/// Judges by all that is known at the last probe.
pub fn judge(shoot: &Shoot) -> Finding {
    shoot.judge.judge(&rules())
}

/// All that a healthy probe computes, from the body of the answer to the finding.
pub fn probe(shoot: &mut Shoot) -> Finding {
    observe(&mut shoot.judge, shoot.times, &shoot.protobuf);
    assert!(!shoot.judge.wants_nodes(&rules(), true, None));
    judge(shoot)
}

/// What memory allows at best: copies the body, 64 bytes at a time in cache-sized pieces as `memcpy` does.
pub fn copy(body: &[u8], to: &mut Vec<u8>) -> usize {
    to.clear();
    to.extend_from_slice(body);
    to.len()
}
