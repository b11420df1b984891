//! Light shoots: many API servers in memory, in one process of their own. Their leases and nodes
//! come in protobuf, with the fields and the sizes that kubelets leave there. When nodes have
//! renewed is computed at the moment of the answer ([`super::renewer`]).
//!
//! ```text
//! let mut shoots = LightShoots::start(FleetPlan { shoots: 300, nodes: 100, grace: 40 }).await?;
//! let secret = shoots.kubeconfig(17);
//! shoots.cut(Duration::from_secs(1)).await?;      // an outage, one shoot after the other within a second
//! shoots.heal().await?;
//! let seen = shoots.look().await?;                // requests, connections, bytes; how late probes came
//! ```

mod server;

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use testbed::eventually;
use testbed::kube_api::kubeconfig;
use testbed::usage::Usage;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::sleep;

use super::renewer::{NodeOutage, RenewalSchedule};
use crate::course::Course;
use crate::report::{Spread, progress};

pub use server::serve;

/// Kubernetes' grace period, in seconds.
pub const USUAL_GRACE: u32 = 40;
/// The token of the probe.
pub const TOKEN: &str = "light";

/// How many light shoots there are, and what they are like.
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

    /// The renewer of one of the shoots, as the server computes it.
    fn renewer(&self, shoot: usize) -> RenewalSchedule {
        RenewalSchedule::new(shoot, self.nodes, self.grace() / 4)
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

/// What the process that serves them answers to an order, each in a line of JSON. An order says how
/// the nodes of each shoot are cut off, if they are; it ends when there are no more.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FleetStatus {
    /// The authority that signed the certificates of all, as PEM.
    pub authority: String,
    /// Where each listens.
    ports: Vec<u16>,
    pub counts: Counts,
    /// Requests for leases, shoot by shoot.
    probes: Vec<u64>,
    /// By how many seconds each request for leases came later than the prober's schedule wants it,
    /// since this was last asked.
    late: Vec<f64>,
}

/// What was seen of the probes in some seconds, and what whoever probes used, of CPU in that time.
pub struct Measured {
    pub counts: Counts,
    pub late: Spread,
    pub usage: Usage,
}

/// Light shoots that are served. Dropping it ends them.
pub struct LightShoots {
    pub plan: FleetPlan,
    /// What was seen at first.
    pub opened: FleetStatus,
    outages: Vec<NodeOutage>,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl LightShoots {
    /// Starts a process that serves them.
    pub async fn start(plan: FleetPlan) -> Result<Self> {
        let FleetPlan {
            shoots,
            nodes,
            grace,
        } = plan;
        let mut process = Command::new(std::env::current_exe()?)
            .args([
                "light-shoots",
                &format!("--shoots={shoots}"),
                &format!("--nodes={nodes}"),
                &format!("--grace={grace}"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let orders = process.stdin.take().context("no way in")?;
        let answers = BufReader::new(process.stdout.take().context("no way out")?).lines();
        let mut light = Self {
            plan,
            opened: FleetStatus::default(),
            outages: Vec::new(),
            orders,
            answers,
            _process: process,
        };
        light.opened = light.look().await?;
        Ok(light)
    }

    /// Where one of them listens.
    pub fn url(&self, shoot: usize) -> String {
        format!("https://127.0.0.1:{}", self.opened.ports[shoot])
    }

    /// The kubeconfig for one of them, as Gardener writes it into the access Secret.
    pub fn kubeconfig(&self, shoot: usize) -> String {
        kubeconfig(&self.url(shoot), &self.opened.authority, TOKEN)
    }

    /// From now on the nodes renew no more, one shoot after the other `within` this time. Returns
    /// what follows in each.
    pub async fn cut(&mut self, within: Duration) -> Result<Vec<Course>> {
        let (now, within, shoots) = (
            Utc::now(),
            TimeDelta::from_std(within)?,
            i32::try_from(self.plan.shoots)?,
        );
        self.outages = (0..shoots)
            .map(|shoot| NodeOutage {
                cut: now + within * shoot / shoots,
                healed: None,
            })
            .collect();
        self.look().await?;
        let course = |(shoot, outage): (usize, &NodeOutage)| {
            let last = self.plan.renewer(shoot).renewed(outage.cut);
            Course::of(&last, self.plan.grace()).context("fewer than two nodes")
        };
        self.outages.iter().enumerate().map(course).collect()
    }

    /// From now on the nodes renew again, each when its phase wants it. Returns the moment.
    pub async fn heal(&mut self) -> Result<DateTime<Utc>> {
        let now = Utc::now();
        self.outages
            .iter_mut()
            .for_each(|outage| outage.healed = Some(now));
        self.look().await?;
        Ok(now)
    }

    /// What is seen so far.
    pub async fn look(&mut self) -> Result<FleetStatus> {
        self.orders
            .write_all(format!("{}\n", json!(self.outages)).as_bytes())
            .await?;
        let answer = self
            .answers
            .next_line()
            .await?
            .context("the light shoots have ended")?;
        Ok(serde_json::from_str(&answer)?)
    }

    /// Waits until each of the first `shoots` has been probed so often from now on.
    pub async fn probed(&mut self, times: u64, shoots: usize) -> Result<()> {
        progress(format!(
            "waiting until each of {shoots} shoots has been probed {times} times"
        ));
        let begin = self.look().await?.probes;
        eventually("each shoot has been probed", async || {
            let now = self.look().await?.probes;
            let few = now
                .iter()
                .zip(&begin)
                .take(shoots)
                .filter(|&(now, begin)| *now < begin + times)
                .count();
            ensure!(few == 0, "{few} have not");
            Ok(())
        })
        .await
    }

    /// What happens in so many seconds, in which each of `shoots` is to be probed by this process.
    pub async fn measure(&mut self, shoots: usize, seconds: u64, process: i32) -> Result<Measured> {
        progress(format!("{shoots} shoots: measuring for {seconds} s"));
        let (before, used) = (self.look().await?.counts, Usage::of(process)?);
        sleep(Duration::from_secs(seconds)).await;
        let (
            usage,
            FleetStatus {
                counts: after,
                late,
                ..
            },
        ) = (Usage::of(process)?, self.look().await?);
        let counts = Counts {
            probes: after.probes - before.probes,
            requests: after.requests - before.requests,
            connections: after.connections - before.connections,
            bytes: after.bytes - before.bytes,
        };
        ensure!(
            counts.probes >= shoots as u64,
            "{} probes are too few",
            counts.probes
        );
        let usage = Usage {
            cpu: usage.cpu - used.cpu,
            ..usage
        };
        Ok(Measured {
            counts,
            late: late.into_iter().collect(),
            usage,
        })
    }
}
