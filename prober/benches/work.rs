//! The pieces of work that are measured, each on a shoot of so many nodes in its steady state: all
//! leases are renewed and known from earlier probes.

#![allow(
    dead_code,
    reason = "several programs share this file and each uses a part of it"
)]

use std::hint::black_box;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use prober::shoot_client::wire::{NodeList, read_page};
use prober_core::judgement::{Finding, Judge, Rules};
use prober_core::lease::{Grace, LeaseList};
use prober_core::moment::{Moment, RequestTimes};
use prober_core::verdict::{NodeRecord, PoolConditions};

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
    pub nodes: Vec<NodeRecord>,
    pub protobuf: Vec<u8>,
    pub json: Vec<u8>,
    pub times: RequestTimes,
}

impl SteadyShoot {
    pub fn new(count: usize) -> Self {
        let mut judge = Judge::default();
        let names: Vec<_> = (0..count).map(bodies::name).collect();
        judge.set_machines(Arc::new(
            names.iter().map(|name| Some(name.as_str())).collect(),
        ));
        for seconds in [0, 20] {
            let times = times(seconds);
            observe(
                &mut judge,
                times,
                &bodies::leases_protobuf(count, times.wall),
            );
        }
        let times = times(40);
        let nodes = decode_nodes(&bodies::nodes_protobuf(count));
        let protobuf = bodies::leases_protobuf(count, times.wall);
        observe(&mut judge, times, &protobuf);
        Self {
            judge,
            nodes,
            protobuf,
            json: bodies::leases_json(count, times.wall),
            times,
        }
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
    read_page(content_type, body, &mut leases).expect("a page");
    leases
}

/// Decodes a page of nodes.
fn decode_nodes(body: &[u8]) -> Vec<NodeRecord> {
    let mut list = NodeList::default();
    read_page(bodies::PROTOBUF, body, &mut list).expect("a page");
    list.nodes
}

/// Decodes a list of leases and takes it in.
fn observe(judge: &mut Judge, times: RequestTimes, body: &[u8]) {
    judge.observe(times, decode(bodies::PROTOBUF, body).iter(), GRACE);
}

/// Judges by all that is known at the last probe.
pub fn judge(shoot: &SteadyShoot) -> Finding {
    shoot.judge.judge(&rules())
}

/// All that a healthy probe computes, from the body of the answer to the finding.
fn probe(shoot: &mut SteadyShoot) -> Finding {
    observe(&mut shoot.judge, shoot.times, &shoot.protobuf);
    assert!(!shoot.judge.wants_nodes(&rules(), true, None));
    judge(shoot)
}

/// A piece of work that is timed and whose instructions are counted.
pub struct Piece {
    /// The bytes of the body that it reads; 0 where it reads none.
    pub bytes: usize,
    /// Does it once.
    pub work: Box<dyn FnMut()>,
}

/// A piece's name, and what makes its ground, which is not measured.
pub type NamedPiece = (&'static str, fn() -> Piece);

pub const PIECES: [NamedPiece; 10] = [
    ("decode 5,000 leases, protobuf", || {
        reading(large().protobuf, |body| decode(bodies::PROTOBUF, body))
    }),
    ("decode 5,000 leases, JSON", || {
        reading(large().json, |body| decode(bodies::JSON, body))
    }),
    ("copy 5,000 leases, protobuf", || copying(large().protobuf)),
    ("copy 5,000 leases, JSON", || copying(large().json)),
    ("decode a page of 500 nodes, protobuf", || {
        reading(bodies::nodes_protobuf(500), decode_nodes)
    }),
    ("copy a page of 500 nodes, protobuf", || {
        copying(bodies::nodes_protobuf(500))
    }),
    ("verdict on 5,000 leases and Machines", || {
        on(large(), |shoot| judge(shoot))
    }),
    ("verdict on 5,000 leases, Machines, nodes", || {
        on(large().with_nodes(), |shoot| judge(shoot))
    }),
    ("healthy probe computed, 100 nodes", || probing(100)),
    ("healthy probe computed, 5,000 nodes", || probing(5_000)),
];

/// The largest cluster that Kubernetes supports.
fn large() -> SteadyShoot {
    SteadyShoot::new(5_000)
}

fn on<T: 'static, R>(mut ground: T, mut work: impl FnMut(&mut T) -> R + 'static) -> Piece {
    Piece {
        bytes: 0,
        work: Box::new(move || drop(black_box(work(black_box(&mut ground))))),
    }
}

fn reading<R>(body: Vec<u8>, mut work: impl FnMut(&[u8]) -> R + 'static) -> Piece {
    Piece {
        bytes: body.len(),
        ..on(body, move |body| work(body))
    }
}

/// What memory allows at best: copies the body, 64 bytes at a time in cache-sized pieces as
/// `memcpy` does.
fn copying(body: Vec<u8>) -> Piece {
    let (bytes, to) = (body.len(), Vec::with_capacity(body.len()));
    let copy = |(body, to): &mut (Vec<u8>, Vec<u8>)| {
        to.clear();
        to.extend_from_slice(body);
        to.len()
    };
    Piece {
        bytes,
        ..on((body, to), copy)
    }
}

/// The body alternates, so that every probe shows renewed leases.
fn probing(count: usize) -> Piece {
    let shoot = SteadyShoot::new(count);
    let other = bodies::leases_protobuf(count, shoot.times.wall - TimeDelta::seconds(20));
    on((shoot, other), |(shoot, other)| {
        std::mem::swap(&mut shoot.protobuf, other);
        probe(shoot)
    })
}
