//! Synthetic shoots: many API servers in memory. Their leases and nodes come in protobuf, with the
//! fields and the sizes that kubelets leave there. When nodes have renewed is computed at the
//! moment of the answer ([`super::renewals`]).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::protobuf::wire::{message, number, text, time};
use api_server::{Authority, MemoryApi, Options, protobuf};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use parking_lot::Mutex;
use serde_json::json;
use testbed::eventually;
use testbed::full_size;
use testbed::usage::Usage;
use tokio::time::sleep;

use super::renewals::RenewalSchedule;
use crate::course::{Course, expiry, seconds};
use crate::report::{Spread, progress};

/// Kubernetes' grace period, in seconds.
pub const USUAL_GRACE: u32 = 40;
/// The token of the probe.
pub const TOKEN: &str = "synthetic";

/// How many synthetic shoots there are, and what they are like.
#[derive(Args, Clone, Debug)]
pub struct FleetPlan {
    /// How many shoots.
    #[arg(long, default_value_t = 300)]
    pub shoots: usize,
    /// Nodes in each.
    #[arg(long, default_value_t = 100)]
    pub nodes: usize,
    /// nodeMonitorGracePeriod in seconds; nodes renew four times in it.
    #[arg(long, default_value_t = USUAL_GRACE)]
    pub grace: u32,
}

impl FleetPlan {
    pub fn grace(&self) -> TimeDelta {
        TimeDelta::seconds(self.grace.into())
    }
}

/// What was observed of the probes in some seconds, and what the process that probes used in them.
pub struct Measured {
    /// Requests for leases.
    pub probes: u64,
    /// All requests.
    pub requests: u64,
    /// Connections with a finished TLS handshake.
    pub connections: u64,
    /// Bytes of answers, without heads and TLS.
    pub bytes: u64,
    /// By how many seconds each request for leases came later than the prober's schedule wants it.
    pub late: Spread,
    /// Seconds of CPU in that time.
    pub cpu: f64,
    /// What the process has used since its start.
    pub usage: Usage,
}

/// The shoots. Dropping them ends their API servers.
pub struct SyntheticShoots {
    pub plan: FleetPlan,
    pub authority: Authority,
    all: Vec<(MemoryApi, Arc<Mutex<Probes>>)>,
}

/// What is known of a shoot beside its server.
struct Probes {
    renewals: RenewalSchedule,
    count: u64,
    /// When the prober's schedule wants the next one.
    due: Option<DateTime<Utc>>,
    /// See [`Measured`].
    late: Vec<f64>,
}

/// Of a lease what does not change: its metadata, and the beginning of its spec.
struct LeaseTemplate(Bytes, Vec<u8>);

impl SyntheticShoots {
    pub async fn start(plan: FleetPlan) -> Result<Self> {
        let (authority, grace) = (Authority::new()?, plan.grace());
        let nodes = 0..plan.nodes;
        let leases: Arc<[LeaseTemplate]> = nodes
            .clone()
            .map(|node| LeaseTemplate::new(node, plan.grace))
            .collect();
        let nodes: Arc<[Bytes]> = nodes
            .map(|node| protobuf::node(&full_size::node(node)))
            .collect();
        let mut all = Vec::with_capacity(plan.shoots);
        for shoot in 0..plan.shoots {
            let options = Options {
                history: 1,
                requests_kept: 1,
                admin_token: TOKEN.into(),
                ..Options::default()
            };
            let api = MemoryApi::start(&authority, options).await?;
            let probes = Arc::new(Mutex::new(Probes {
                renewals: RenewalSchedule::new(shoot, plan.nodes, grace / 4),
                count: 0,
                due: None,
                late: Vec::new(),
            }));
            let (probed, leases) = (probes.clone(), leases.clone());
            api.computed().set("leases.coordination.k8s.io", move || {
                let renewed = probed.lock().answer(Utc::now(), grace);
                let leases = leases.iter().zip(renewed);
                leases.map(|(lease, at)| lease.renewed(at)).collect()
            });
            let nodes = nodes.clone();
            api.computed().set("nodes", move || nodes.to_vec());
            all.push((api, probes));
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
        self.all[shoot].0.kubeconfig(TOKEN)
    }

    /// From now on the nodes renew no more, one shoot after the other `within` this time. Returns
    /// what follows in each.
    pub fn cut(&self, within: Duration) -> Result<Vec<Course>> {
        let (now, within) = (Utc::now(), TimeDelta::from_std(within)?);
        let count = i32::try_from(self.plan.shoots)?;
        let cut = |(shoot, (_, probes)): (i32, &(_, Arc<Mutex<Probes>>))| {
            let (cut, renewals) = (now + within * shoot / count, &mut probes.lock().renewals);
            renewals.cut = Some(cut);
            Course::of(&renewals.renewed(cut), self.plan.grace()).context("fewer than two nodes")
        };
        (0..count).zip(&self.all).map(cut).collect()
    }

    /// From now on the nodes renew again, each when its phase wants it. Returns the moment.
    pub fn reconnect(&self) -> DateTime<Utc> {
        let now = Utc::now();
        for (_, probes) in &self.all {
            probes.lock().renewals.reconnected = Some(now);
        }
        now
    }

    /// How often each was probed so far.
    pub fn probes(&self) -> Vec<u64> {
        let probes = self.all.iter().map(|(_, probes)| probes.lock().count);
        probes.collect()
    }

    /// Probes, requests, connections and bytes so far.
    fn counts(&self) -> [u64; 4] {
        let sum = |of: fn(&MemoryApi) -> u64| self.all.iter().map(|(api, _)| of(api)).sum();
        [
            self.probes().iter().sum(),
            sum(|api| api.requests().total()),
            sum(|api| api.connections().handshakes),
            sum(|api| api.requests().bytes()),
        ]
    }

    /// By how much each probe was late, since this was last asked.
    fn take_late(&self) -> Spread {
        let late = self.all.iter();
        late.flat_map(|(_, probes)| std::mem::take(&mut probes.lock().late))
            .collect()
    }

    /// Waits until each of the first `shoots` has been probed so often from now on.
    pub async fn probed(&self, times: u64, shoots: usize) -> Result<()> {
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

    /// What happens in so many seconds, in which each of `shoots` is to be probed by this process.
    pub async fn measure(&self, shoots: usize, seconds: u64, process: i32) -> Result<Measured> {
        progress(format!("{shoots} shoots: measuring for {seconds} s"));
        self.take_late();
        let (before, used) = (self.counts(), Usage::of(process)?);
        sleep(Duration::from_secs(seconds)).await;
        let (usage, now) = (Usage::of(process)?, self.counts());
        let [probes, requests, connections, bytes] =
            std::array::from_fn(|count| now[count] - before[count]);
        ensure!(probes >= shoots as u64, "{probes} probes are too few");
        Ok(Measured {
            probes,
            requests,
            connections,
            bytes,
            late: self.take_late(),
            cpu: (usage.cpu - used.cpu).as_secs_f64(),
            usage,
        })
    }
}

impl Probes {
    /// When the shoot's nodes have renewed, as the probe that comes now is answered.
    ///
    /// The prober comes again before the verdict can fall, and before a renewal could be doubted:
    /// three quarters of the grace period less a beat and a second after its last probe, or when
    /// two of the leases that it saw expire, whichever is earlier.
    fn answer(&mut self, now: DateTime<Utc>, grace: TimeDelta) -> Vec<DateTime<Utc>> {
        let renewed = self.renewals.renewed(now);
        self.count += 1;
        // Probes are at most 0.41 of the grace apart (D-70).
        let doubted = now + grace / 100 * 41;
        let next = expiry(&renewed, 2, grace).map_or(doubted, |expired| expired.min(doubted));
        self.late
            .extend(self.due.replace(next).map(|due| seconds(due, now)));
        renewed
    }
}

impl LeaseTemplate {
    fn new(node: usize, grace: u32) -> Self {
        let metadata = json!({"metadata": full_size::lease(node)["metadata"]});
        let holder = text(1, &full_size::node_name(node));
        let spec = [holder, number(2, grace.into())].concat();
        Self(protobuf::lease(&metadata), spec)
    }

    fn renewed(&self, at: DateTime<Utc>) -> Bytes {
        let Self(metadata, spec) = self;
        let spec = message(2, &[spec.clone(), time(4, at)]);
        [metadata, spec.as_slice()].concat().into()
    }
}
