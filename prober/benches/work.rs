//! The pieces of work that are measured, each on a shoot of so many nodes in its steady state: all leases are renewed and
//! known from earlier looks.

#![allow(dead_code, reason = "several programs share this file and each uses a part of it")]

use chrono::{DateTime, TimeDelta};
use prober::core::lease::{Grace, LeaseBook, LeaseList};
use prober::core::moment::{Look, Moment};
use prober::core::schedule::{Outlook, next_look, verdict_possible};
use prober::core::verdict::{BackedNodes, Candidates, NodeRecord, PoolConditions, Tally};
use prober::engine::wire;

use super::bodies;

pub const GRACE: Grace = Grace::new(TimeDelta::seconds(40));
const FRACTION: f64 = 0.6;

/// The look so many seconds after the first.
fn look(seconds: i64) -> Look {
    let received = Moment::since_start(TimeDelta::seconds(100 + seconds));
    let wall = DateTime::from_timestamp(1_800_000_000, 0).expect("a calendar date") + TimeDelta::seconds(seconds);
    Look { sent: received - TimeDelta::milliseconds(2), received, wall }
}

/// A shoot that was looked at before.
pub struct Shoot {
    pub book: LeaseBook,
    pub machines: BackedNodes,
    pub nodes: Vec<NodeRecord>,
    pub protobuf: Vec<u8>,
    pub json: Vec<u8>,
    pub look: Look,
}

impl Shoot {
    pub fn new(count: usize) -> Self {
        let mut book = LeaseBook::default();
        for seconds in [0, 20] {
            let look = look(seconds);
            observe(&mut book, &look, bodies::PROTOBUF, &bodies::leases_protobuf(count, look.wall));
        }
        let look = look(40);
        let names: Vec<_> = (0..count).map(bodies::name).collect();
        let mut nodes = Vec::new();
        wire::nodes(bodies::PROTOBUF, &bodies::nodes_protobuf(count), &mut nodes).expect("a page");
        Self {
            book,
            machines: names.iter().map(String::as_str).collect(),
            nodes,
            protobuf: bodies::leases_protobuf(count, look.wall),
            json: bodies::leases_json(count, look.wall),
            look,
        }
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
pub fn observe(book: &mut LeaseBook, look: &Look, content_type: &str, body: &[u8]) {
    book.observe(look, decode(content_type, body).iter(), GRACE);
}

/// Judges by the leases and the Machines alone, as a healthy probe does, and says when to look next.
pub fn judge(shoot: &Shoot) -> (Tally, Moment) {
    outlook(shoot, &Candidates::by_machines(&shoot.book, &shoot.machines), false)
}

/// Judges by leases, Machines and nodes, as in an outage.
pub fn judge_with_nodes(shoot: &Shoot) -> (Tally, Moment) {
    outlook(shoot, &Candidates::by_nodes(&shoot.book, &shoot.machines, &shoot.nodes, &PoolConditions::new()), true)
}

fn outlook(shoot: &Shoot, candidates: &Candidates<'_>, candidates_known: bool) -> (Tally, Moment) {
    let now = shoot.look.sent;
    let tally = candidates.tally(now, GRACE);
    std::hint::black_box(tally.verdict(FRACTION));
    let next = next_look(&Outlook {
        now: shoot.look.received,
        judged_at: now,
        interval: TimeDelta::seconds(30),
        verdict_possible: verdict_possible(candidates.clocks(), candidates_known, FRACTION, GRACE),
        doubt_from: Some(now + GRACE.longest_gap()),
        awaited: None,
        failure: None,
    });
    (tally, next)
}

/// All that a healthy probe computes, from the body of the answer to the moment of the next look.
pub fn probe(shoot: &mut Shoot) -> (Tally, Moment) {
    observe(&mut shoot.book, &shoot.look, bodies::PROTOBUF, &shoot.protobuf);
    judge(shoot)
}

/// What memory allows at best: copies the body, 64 bytes at a time in cache-sized pieces as `memcpy` does.
pub fn copy(body: &[u8], to: &mut Vec<u8>) -> usize {
    to.clear();
    to.extend_from_slice(body);
    to.len()
}
