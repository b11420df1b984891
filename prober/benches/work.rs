//! The work that is measured, on a shoot of so many nodes in its steady state: all leases are
//! renewed and known from earlier probes.

#![allow(
    dead_code,
    reason = "several programs share this file and each uses a part of it"
)]

use std::sync::Arc;

use api_server::protobuf;
use api_server::protobuf::wire::{envelope, message, push, text};
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use prober::shoot_client::wire::{ItemList, read_pieces};
use prober_core::judgement::{Finding, Judge, Rules};
use prober_core::lease::{Grace, LeaseList};
use prober_core::moment::{Moment, RequestTimes};
use prober_core::verdict::{NodeRecord, PoolConditions};
use testbed::full_size::{self, node_name};

/// Go's HTTP server sends what is written to it in chunks of its buffer's size.
pub const CHUNK: usize = 2048;
pub const GRACE: Grace = Grace::new(TimeDelta::seconds(40));
/// With Gardener's defaults.
static DEFAULT_CONDITIONS: PoolConditions = PoolConditions::new();

fn rules() -> Rules<'static> {
    Rules {
        grace: GRACE,
        fraction: 0.6,
        pool_conditions: &DEFAULT_CONDITIONS,
        renewed_after: None,
        down_since: None,
        nodes_good_for: TimeDelta::zero(),
    }
}

/// The messages of leases that are read at this time. Kubelets renew every 10 s, each at a phase of
/// its own.
pub fn leases(count: usize, read: DateTime<Utc>) -> Vec<Bytes> {
    let lease = |number| {
        let age = TimeDelta::microseconds(10_000_000 * number as i64 / count as i64);
        let mut lease = full_size::lease(number);
        let renewed = (read - age).to_rfc3339_opts(SecondsFormat::Micros, true);
        lease["spec"]["renewTime"] = renewed.into();
        protobuf::lease(&lease)
    };
    (0..count).map(lease).collect()
}

/// An answer with these leases.
fn list(leases: &[Bytes]) -> Vec<u8> {
    let mut list = message(1, &[text(2, "1234567")]);
    leases.iter().for_each(|lease| push(&mut list, 2, lease));
    envelope("v1", "LeaseList", &list)
}

/// The probe so many seconds after the first.
fn times(seconds: i64) -> RequestTimes {
    let since = TimeDelta::seconds(seconds);
    let received = Moment::since_start(TimeDelta::seconds(100) + since);
    RequestTimes {
        sent: received - TimeDelta::milliseconds(2),
        received,
        wall: DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + since,
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
        let names: Vec<_> = (0..count).map(node_name).collect();
        let machines = names.iter().map(|name| Some(name.as_str())).collect();
        let mut judge = Judge::default();
        judge.set_machines(Arc::new(machines));
        let [_, others, leases] = [0, 20, 40].map(|seconds| {
            let body = list(&leases(count, times(seconds).wall));
            let leases: LeaseList = decode(&body);
            judge.observe(times(seconds), leases.iter(), GRACE);
            body
        });
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
        let node = |number| NodeRecord {
            name: node_name(number).into(),
            traits: Arc::default(),
        };
        self.judge.set_nodes((0..self.count).map(node).collect());
        self
    }

    /// Judges by all that is known at the last probe.
    pub fn judge(&self) -> Finding {
        self.judge.judge(&rules())
    }

    /// All that a healthy probe computes, from the body of the answer to the finding.
    pub fn probe(&mut self) -> Finding {
        std::mem::swap(&mut self.leases, &mut self.others);
        let leases: LeaseList = decode(&self.leases);
        self.judge.observe(self.times, leases.iter(), GRACE);
        assert!(!self.judge.lacks_nodes(&rules(), true));
        self.judge()
    }
}

/// Decodes a page, in the pieces that a connection gives.
pub fn decode<L: ItemList>(body: &[u8]) -> L {
    read_pieces(body.chunks(CHUNK)).expect("a page").items
}
