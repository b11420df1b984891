//! Synthetic shoots: many API servers in memory. Their leases and nodes come in protobuf, with the
//! fields and the sizes that kubelets leave there. When nodes have renewed is computed at the
//! moment of the answer: no renewal is ever carried out.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use api_server::protobuf::wire::{message, number, text, time};
use api_server::{Authority, MemoryApi, Options, Record, protobuf};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use rand::RngExt;
use serde_json::json;
use testbed::eventually;
use testbed::full_size;
use testbed::usage::Usage;
use tokio::time::sleep;

use super::FleetPlan;
use crate::outage::Course;
use crate::report::progress;

const LEASES: &str = "leases.coordination.k8s.io";

/// Probes in some seconds, and what the process that probes used in them.
pub struct Measured {
    /// Requests for leases.
    pub probes: f64,
    /// All requests.
    pub requests: f64,
    /// Connections with a finished TLS handshake.
    pub connections: f64,
    /// Seconds of CPU in that time.
    pub cpu: f64,
    /// Usage of the process since its start.
    pub usage: Usage,
}

/// The shoots. Dropping them ends their API servers.
pub struct SyntheticShoots {
    pub plan: FleetPlan,
    pub authority: Authority,
    all: Vec<(MemoryApi, Arc<Mutex<Renewals>>)>,
}

/// Renewals of the nodes of one shoot, one after the other, evenly spread over a beat. All times are
/// microseconds, as exact as stamps are.
struct Renewals {
    beat: i64,
    /// The first node's moment in a beat.
    phase: i64,
    nodes: i64,
    /// The time in which no node reaches its API server.
    outage: Range<i64>,
}

impl Renewals {
    /// The last renewal of each node, as seen at this moment.
    fn renewed(&self, at: i64) -> Vec<DateTime<Utc>> {
        let renewed = |node: i64| {
            let phase = self.phase + node * self.beat / self.nodes;
            let last = |at: i64| at - (at - phase).rem_euclid(self.beat);
            let in_outage = self.outage.contains(&last(at));
            let renewed = last(if in_outage { self.outage.start } else { at });
            DateTime::from_timestamp_micros(renewed).unwrap_or_default()
        };
        (0..self.nodes).map(renewed).collect()
    }
}

impl SyntheticShoots {
    pub async fn start(plan: FleetPlan) -> Result<Self> {
        // Of a lease what does not change: its metadata, and the beginning of its spec.
        let lease = |node| {
            let metadata = json!({"metadata": full_size::lease(node)["metadata"]});
            let holder = text(1, &full_size::node_name(node));
            let spec = [holder, number(2, plan.grace.into())].concat();
            (protobuf::lease(&metadata), spec)
        };
        let leases: Arc<[_]> = (0..plan.nodes).map(lease).collect();
        let node = |node| protobuf::node(&full_size::node(node));
        let nodes: Arc<[Bytes]> = (0..plan.nodes).map(node).collect();
        let beat = i64::from(plan.grace) * 1_000_000 / 4;
        let (authority, mut all) = (Authority::new()?, Vec::new());
        for _ in 0..plan.shoots {
            let renewals = Arc::new(Mutex::new(Renewals {
                beat,
                phase: rand::rng().random_range(0..beat),
                nodes: plan.nodes as i64,
                outage: 0..0,
            }));
            let api = MemoryApi::start(&authority, Options::default()).await?;
            let (renewed, leases, nodes) = (renewals.clone(), leases.clone(), nodes.clone());
            api.computed().set(LEASES, move || {
                let stamps = renewed.lock().renewed(Utc::now().timestamp_micros());
                let lease = |((metadata, spec), at): (&(Bytes, Vec<u8>), _)| {
                    let spec = message(2, &[spec.clone(), time(4, at)]);
                    [metadata, spec.as_slice()].concat().into()
                };
                leases.iter().zip(stamps).map(lease).collect()
            });
            api.computed().set("nodes", move || nodes.to_vec());
            all.push((api, renewals));
        }
        Ok(Self {
            plan,
            authority,
            all,
        })
    }

    /// The URL of each.
    pub fn urls(&self) -> impl Iterator<Item = String> {
        self.apis().map(MemoryApi::url)
    }

    /// The kubeconfig for one of them, as Gardener writes it into the access Secret.
    pub fn kubeconfig(&self, shoot: usize) -> String {
        self.all[shoot].0.kubeconfig("admin")
    }

    /// Ends the renewals, in one shoot after the other within a second. Returns when the verdict can
    /// fall in each.
    pub fn cut(&self) -> Result<Vec<DateTime<Utc>>> {
        let (now, count) = (Utc::now(), i32::try_from(self.all.len())?);
        let cut = |(shoot, (_, renewals)): (i32, &(_, Arc<Mutex<Renewals>>))| {
            let at = (now + TimeDelta::seconds(1) * shoot / count).timestamp_micros();
            let mut renewals = renewals.lock();
            let stamps = renewals.renewed(at);
            renewals.outage = at..i64::MAX;
            Ok(Course::of(stamps, self.plan.grace())?.verdict)
        };
        (0..count).zip(&self.all).map(cut).collect()
    }

    /// Lets the nodes renew again, each when its phase wants it. Returns the moment.
    pub fn reconnect(&self) -> DateTime<Utc> {
        let now = Utc::now();
        for (_, renewals) in &self.all {
            renewals.lock().outage.end = now.timestamp_micros();
        }
        now
    }

    fn apis(&self) -> impl Iterator<Item = &MemoryApi> {
        self.all.iter().map(|(api, _)| api)
    }

    fn forget_requests(&self) {
        self.apis().for_each(|api| api.requests().clear());
    }

    /// Waits until each of the first `shoots` has been probed so often from now on.
    pub async fn probed(&self, times: usize, shoots: usize) -> Result<()> {
        progress(format!(
            "waiting until each of {shoots} shoots has been probed {times} times"
        ));
        self.forget_requests();
        eventually("each shoot has been probed", async || {
            let apis = self.apis().take(shoots);
            let few = apis.filter(|api| api.requests().count(is_probe) < times);
            let few = few.count();
            ensure!(few == 0, "{few} have not");
            Ok(())
        })
        .await
    }

    /// Measures for so many seconds, in which this process probes.
    pub async fn measure(&self, seconds: u64, process: i32) -> Result<Measured> {
        progress(format!("measuring for {seconds} s"));
        let connections = || -> u64 {
            let handshakes = self.apis().map(|api| api.connections().handshakes);
            handshakes.sum()
        };
        self.forget_requests();
        let (connected, used) = (connections(), Usage::of(process)?);
        sleep(Duration::from_secs(seconds)).await;
        let usage = Usage::of(process)?;
        let count = |is_counted: fn(&Record) -> bool| {
            let counts = self.apis().map(|api| api.requests().count(is_counted));
            counts.sum::<usize>() as f64
        };
        Ok(Measured {
            probes: count(is_probe),
            requests: count(|_| true),
            connections: (connections() - connected) as f64,
            cpu: (usage.cpu - used.cpu).as_secs_f64(),
            usage,
        })
    }
}

fn is_probe(request: &Record) -> bool {
    request.resource == LEASES
}
