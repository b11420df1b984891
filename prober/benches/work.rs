//! The pieces of work that are measured, each on a shoot of so many nodes in its steady state: all
//! leases are renewed and known from earlier probes.

#![allow(
    dead_code,
    reason = "several programs share this file and each uses a part of it"
)]

use std::hint::black_box;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use prober::shoot_client::wire::{ItemList, ListReader, ListRoom, NodeList, ReadBody};
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
    pub leases: Vec<u8>,
    pub count: usize,
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
                &bodies::lease_list(count, times.wall),
                count,
            );
        }
        let times = times(40);
        let nodes = decode::<NodeList>(&bodies::node_list(count), 0).nodes;
        let leases = bodies::lease_list(count, times.wall);
        observe(&mut judge, times, &leases, count);
        Self {
            judge,
            nodes,
            leases,
            count,
            times,
        }
    }

    /// The same, which has listed the nodes as in an outage.
    pub fn with_nodes(mut self) -> Self {
        self.judge.set_nodes(std::mem::take(&mut self.nodes));
        self
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

/// Decodes a list of about so many leases and takes it in.
fn observe(judge: &mut Judge, times: RequestTimes, body: &[u8], count: usize) {
    let leases: LeaseList = decode(body, count);
    judge.observe(times, leases.iter(), GRACE);
}

/// Judges by all that is known at the last probe.
pub fn judge(shoot: &SteadyShoot) -> Finding {
    shoot.judge.judge(&rules())
}

/// All that a healthy probe computes, from the body of the answer to the finding.
fn probe(shoot: &mut SteadyShoot) -> Finding {
    observe(&mut shoot.judge, shoot.times, &shoot.leases, shoot.count);
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

pub const PIECES: [NamedPiece; 8] = [
    ("decode 5,000 leases", || {
        reading(large().leases, |body| decode::<LeaseList>(body, 5_000))
    }),
    ("copy 5,000 leases", || copying(large().leases)),
    ("decode a page of 500 nodes", || {
        reading(bodies::node_list(500), |body| decode::<NodeList>(body, 0))
    }),
    ("copy a page of 500 nodes", || {
        copying(bodies::node_list(500))
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
    let other = bodies::lease_list(count, shoot.times.wall - TimeDelta::seconds(20));
    on((shoot, other), |(shoot, other)| {
        std::mem::swap(&mut shoot.leases, other);
        probe(shoot)
    })
}
