//! Light shoots: many API servers in memory, in one process of their own. Their leases and nodes come in protobuf, with the fields
//! and the sizes that kubelets leave there. When nodes have renewed is computed at the moment of the answer ([`super::heart`]).
//!
//! ```text
//! let mut shoots = LightShoots::start(Plan::healthy(300, 100)).await?;
//! let secret = shoots.kubeconfig(17);
//! shoots.cut(Duration::from_secs(1)).await?;      // an outage, one shoot after the other within a second
//! shoots.heal().await?;
//! let seen = shoots.look().await?;                // requests, connections, bytes; how late probes came
//! ```

mod server;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use serde::{Deserialize, Serialize};
use testbed::api::full_size::node_name;
use testbed::kube_api::kubeconfig;
use testbed::usage::Usage;
use testbed::{ProberConfig, eventually};
use tokio::time::sleep;

use super::heart::{Heart, Outage};
use crate::beside::Beside;
use crate::course::Course;
use crate::report::{Spread, progress};

pub use server::serve;

/// Kubernetes' grace period, in seconds.
pub const USUAL_GRACE: u32 = 40;
/// The longest that it takes until all shoots have been probed some times.
const PROBING: Duration = Duration::from_secs(180);

/// How many light shoots there are, and what they are like.
#[derive(Args, Clone, Debug)]
pub struct Plan {
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

impl Plan {
    /// Shoots with Kubernetes' usual grace period.
    pub fn healthy(shoots: usize, nodes: usize) -> Self {
        Self { shoots, nodes, grace: USUAL_GRACE }
    }

    /// The grace period.
    pub fn grace(&self) -> TimeDelta {
        TimeDelta::seconds(self.grace.into())
    }

    /// The heart of one of the shoots, as the server computes it.
    fn heart(&self, shoot: usize) -> Heart {
        Heart::new(shoot, self.nodes, self.grace() / 4)
    }

    /// A configuration with short times where the grace period is not the usual one; otherwise Gardener's own is the right one.
    pub fn short_config(&self) -> Option<String> {
        (self.grace != USUAL_GRACE).then(|| ProberConfig::default().text())
    }

    /// The names of the nodes, which are the same in all shoots; Machines on the seed carry them in the label `node`.
    pub fn node_names(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.nodes).map(node_name)
    }
}

/// What all API servers together were asked.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Requests for leases.
    pub probes: u64,
    /// All requests.
    pub requests: u64,
    /// Connections with a finished TLS handshake.
    pub connections: u64,
    /// Bytes of answers, without heads and TLS.
    pub bytes: u64,
}

/// What is seen of the probes so far.
#[derive(Debug, Serialize, Deserialize)]
pub struct Seen {
    pub counts: Counts,
    /// Requests for leases, shoot by shoot.
    probes: Vec<u64>,
    /// By how many seconds each request for leases came later than the prober's schedule wants it, since this was last asked.
    late: Vec<f64>,
}

/// What was seen of the probes in some seconds, and what whoever probes used.
pub struct Measured {
    pub counts: Counts,
    pub late: Spread,
    pub cpu: Duration,
    pub usage: Usage,
}

/// What the server is told.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Tell where you listen.
    Open,
    /// The nodes of each shoot are cut off so.
    Outages(Vec<Outage>),
    /// Tell what is seen.
    Look,
}

/// Where the shoots listen, and the authority that signed the certificates of all of them, as PEM.
#[derive(Debug, Serialize, Deserialize)]
struct Opened {
    authority: String,
    ports: Vec<u16>,
}

/// Light shoots that are served. Dropping it ends them.
pub struct LightShoots {
    /// What they are like.
    pub plan: Plan,
    opened: Opened,
    process: Beside,
    outages: Vec<Outage>,
}

impl LightShoots {
    /// Starts a process that serves them.
    pub async fn start(plan: Plan) -> Result<Self> {
        let Plan { shoots, nodes, grace } = plan;
        let options = [format!("--shoots={shoots}"), format!("--nodes={nodes}"), format!("--grace={grace}")];
        let mut process = Beside::start(&[&["light-shoots".to_owned()], options.as_slice()].concat())?;
        Ok(Self { plan, opened: process.ask(&Order::Open).await?, process, outages: Vec::new() })
    }

    /// Where one of them listens.
    pub fn url(&self, shoot: usize) -> String {
        format!("https://127.0.0.1:{}", self.opened.ports[shoot])
    }

    /// The authority that signed the certificate of all of them, as PEM.
    pub fn authority(&self) -> &str {
        &self.opened.authority
    }

    /// The kubeconfig for one of them, as Gardener writes it into the access Secret.
    pub fn kubeconfig(&self, shoot: usize) -> String {
        kubeconfig(&self.url(shoot), self.authority(), super::TOKEN)
    }

    /// From now on the nodes renew no more, one shoot after the other `within` this time. Returns what follows in each.
    pub async fn cut(&mut self, within: Duration) -> Result<Vec<Course>> {
        let (now, within, shoots) = (Utc::now(), TimeDelta::from_std(within)?, i32::try_from(self.plan.shoots)?);
        self.outages = (0..shoots).map(|shoot| Outage { cut: now + within * shoot / shoots, healed: None }).collect();
        self.process.ask::<()>(&Order::Outages(self.outages.clone())).await?;
        let course = |(shoot, outage): (usize, &Outage)| {
            let last = self.plan.heart(shoot).renewed(outage.cut);
            Course::of(&last, self.plan.grace()).context("fewer than two nodes")
        };
        self.outages.iter().enumerate().map(course).collect()
    }

    /// From now on the nodes renew again, each when its phase wants it. Returns the moment.
    pub async fn heal(&mut self) -> Result<DateTime<Utc>> {
        let now = Utc::now();
        self.outages.iter_mut().for_each(|outage| outage.healed = Some(now));
        self.process.ask::<()>(&Order::Outages(self.outages.clone())).await?;
        Ok(now)
    }

    /// What is seen so far.
    pub async fn look(&mut self) -> Result<Seen> {
        self.process.ask(&Order::Look).await
    }

    /// Waits until each of the first `shoots` has been probed so often from now on.
    pub async fn probed(&mut self, times: u64, shoots: usize) -> Result<()> {
        progress(format!("waiting until each of {shoots} shoots has been probed {times} times"));
        let begin = self.look().await?.probes;
        eventually("each shoot has been probed", PROBING, async || {
            let now = self.look().await?.probes;
            let few = now.iter().zip(&begin).take(shoots).filter(|&(now, begin)| *now < begin + times).count();
            ensure!(few == 0, "{few} have not");
            Ok(())
        })
        .await
    }

    /// What happens in so many seconds, in which each of `shoots` is to be probed; `usage` is of whoever probes.
    pub async fn measure(&mut self, shoots: usize, seconds: u64, usage: impl Fn() -> Result<Usage>) -> Result<Measured> {
        progress(format!("{shoots} shoots: measuring for {seconds} s"));
        let (before, used) = (self.look().await?.counts, usage()?);
        sleep(Duration::from_secs(seconds)).await;
        let (usage, Seen { counts: after, late, .. }) = (usage()?, self.look().await?);
        let counts = Counts {
            probes: after.probes - before.probes,
            requests: after.requests - before.requests,
            connections: after.connections - before.connections,
            bytes: after.bytes - before.bytes,
        };
        ensure!(counts.probes >= shoots as u64, "{} probes are too few", counts.probes);
        Ok(Measured { counts, late: late.into_iter().collect(), cpu: usage.cpu - used.cpu, usage })
    }
}
