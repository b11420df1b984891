//! Synthetic shoots: many API servers in memory. Their leases and nodes come in protobuf, with the
//! fields and the sizes that kubelets leave there. When nodes have renewed is computed at the
//! moment of the answer: no renewal is ever carried out.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::protobuf::wire::{message, number, text, time};
use api_server::{Authority, MemoryApi, Options, protobuf};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use rand::random;
use serde_json::json;
use testbed::eventually;
use testbed::full_size;
use testbed::usage::Usage;
use tokio::time::sleep;

use super::FleetPlan;
use crate::outage::Course;
use crate::report::progress;

const LEASES: &str = "leases.coordination.k8s.io";

/// What was observed of the probes in some seconds, and what the process that probes used in them.
pub struct Measured {
    /// Requests for leases.
    pub probes: f64,
    /// All requests.
    pub requests: f64,
    /// Connections with a finished TLS handshake.
    pub connections: f64,
    /// Seconds of CPU in that time.
    pub cpu: f64,
    /// What the process has used since its start.
    pub usage: Usage,
}

/// The shoots. Dropping them ends their API servers.
pub struct SyntheticShoots {
    pub plan: FleetPlan,
    pub authority: Authority,
    all: Vec<(MemoryApi, Arc<Mutex<Renewals>>)>,
}

/// How the nodes of one shoot renew. All times are microseconds, as exact as stamps are.
struct Renewals {
    beat: i64,
    /// When in a beat each node renews: each somewhere in its own of as many equal parts, so that
    /// the moment of a verdict is spread little, whatever the moment of the outage.
    phases: Vec<i64>,
    /// When no node reaches its API server.
    outage: Range<i64>,
}

impl Renewals {
    /// When each node has last renewed, as seen at this moment.
    fn renewed(&self, at: i64) -> Vec<DateTime<Utc>> {
        let renewed = |phase: &i64| {
            let last = |at: i64| at - (at - phase).rem_euclid(self.beat);
            let in_outage = self.outage.contains(&last(at));
            let renewed = last(if in_outage { self.outage.start } else { at });
            DateTime::from_timestamp_micros(renewed).unwrap_or_default()
        };
        self.phases.iter().map(renewed).collect()
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
        let (authority, mut all) = (Authority::new()?, Vec::new());
        for _ in 0..plan.shoots {
            let (beat, begin) = (plan.grace().as_seconds_f64() / 4.0 * 1e6, random::<f64>());
            let part = |node: usize| (node as f64 + random::<f64>()) / plan.nodes as f64;
            let phase = |node| ((begin + part(node)).fract() * beat) as i64;
            let renewals = Arc::new(Mutex::new(Renewals {
                beat: beat as i64,
                phases: (0..plan.nodes).map(phase).collect(),
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

    /// Where each listens.
    pub fn urls(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|(api, _)| api.url())
    }

    /// The kubeconfig for one of them, as Gardener writes it into the access Secret.
    pub fn kubeconfig(&self, shoot: usize) -> String {
        self.all[shoot].0.kubeconfig("admin")
    }

    /// From now on the nodes renew no more, one shoot after the other `within` this time. Returns
    /// what follows in each.
    pub fn cut(&self, within: TimeDelta) -> Result<Vec<Course>> {
        let (now, count) = (Utc::now(), i32::try_from(self.all.len())?);
        let cut = |(shoot, (_, renewals)): (i32, &(_, Arc<Mutex<Renewals>>))| {
            let at = (now + within * shoot / count).timestamp_micros();
            let mut renewals = renewals.lock();
            let stamps = renewals.renewed(at);
            renewals.outage = at..i64::MAX;
            Course::of(stamps, self.plan.grace()).context("fewer than two nodes")
        };
        (0..count).zip(&self.all).map(cut).collect()
    }

    /// From now on the nodes renew again, each when its phase wants it. Returns the moment.
    pub fn reconnect(&self) -> DateTime<Utc> {
        let now = Utc::now();
        for (_, renewals) in &self.all {
            renewals.lock().outage.end = now.timestamp_micros();
        }
        now
    }

    /// How often each was probed so far.
    pub fn probes(&self) -> Vec<usize> {
        let is_probe = |request: &api_server::Record| request.resource == LEASES;
        let apis = self.all.iter();
        apis.map(|(api, _)| api.requests().count(is_probe))
            .collect()
    }

    /// Waits until each of the first `shoots` has been probed so often from now on.
    pub async fn probed(&self, times: usize, shoots: usize) -> Result<()> {
        progress(format!(
            "waiting until each of {shoots} shoots has been probed {times} times"
        ));
        let begin = self.probes();
        eventually("each shoot has been probed", async || {
            let now = self.probes();
            let counts = now.iter().zip(&begin).take(shoots);
            let few = counts.filter(|&(now, begin)| *now < begin + times).count();
            ensure!(few == 0, "{few} have not");
            Ok(())
        })
        .await
    }

    /// Requests and connections with a finished TLS handshake so far, of all.
    pub fn counts(&self) -> [u64; 2] {
        let apis = self.all.iter().map(|(api, _)| api);
        let counts = apis.map(|api| [api.requests().total(), api.connections().handshakes]);
        counts.fold([0, 0], |[a, b], [c, d]| [a + c, b + d])
    }

    /// What happens in so many seconds, in which this process probes.
    pub async fn measure(&self, seconds: u64, process: i32) -> Result<Measured> {
        progress(format!("measuring for {seconds} s"));
        let counts = || {
            let [requests, connections] = self.counts();
            let probes = self.probes().iter().sum::<usize>() as u64;
            [probes, requests, connections]
        };
        let (before, used) = (counts(), Usage::of(process)?);
        sleep(Duration::from_secs(seconds)).await;
        let (usage, now) = (Usage::of(process)?, counts());
        let [probes, requests, connections] =
            std::array::from_fn(|count| (now[count] - before[count]) as f64);
        Ok(Measured {
            probes,
            requests,
            connections,
            cpu: (usage.cpu - used.cpu).as_secs_f64(),
            usage,
        })
    }
}
