//! Light shoots: many API servers in memory, in one process of their own, so that what they cost is not mistaken for the watchdog's
//! cost. Their leases and nodes come in protobuf, with the fields and the sizes that kubelets leave there. When nodes have renewed
//! is computed at the moment of the answer ([`super::heart`]).
//!
//! ```text
//! let mut shoots = LightShoots::start(Plan::healthy(300, 100)).await?;
//! let secret = shoots.kubeconfig(17);
//! shoots.cut(0..300, Duration::from_secs(1)).await?;      // an outage, one shoot after the other within a second
//! shoots.heal(0..300).await?;
//! let asked = shoots.counts().await?;                     // per shoot: requests, connections, bytes
//! ```

mod answer;
mod server;

use std::ops::Range;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use testbed::ProberConfig;
use testbed::kube_api::kubeconfig;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::heart::{Heart, Micros, SECOND, now};

pub use server::serve;

/// Kubernetes' grace period, in seconds.
pub const USUAL_GRACE: u32 = 40;

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
    pub fn grace(&self) -> Micros {
        Micros::from(self.grace) * SECOND
    }

    /// The heart of one of the shoots, as the server computes it.
    pub fn heart(&self, shoot: usize) -> Heart {
        Heart::new(shoot, self.nodes, self.grace() / 4)
    }

    /// A configuration with short times where the grace period is not the usual one; otherwise Gardener's own is the right one.
    pub fn short_config(&self) -> Result<Option<String>> {
        Ok((self.grace != USUAL_GRACE).then(|| ProberConfig::default().text()))
    }

    /// The names of the nodes, which are the same in all shoots; Machines on the seed carry them in the label `node`.
    pub fn node_names(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.nodes).map(answer::node_name)
    }
}

/// What one shoot's API server was asked so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Requests for leases.
    pub leases: u64,
    /// All requests.
    pub requests: u64,
    /// Connections with a finished TLS handshake.
    pub connections: u64,
    /// Bytes of answers, without heads and TLS.
    pub bytes: u64,
}

impl Counts {
    /// The sum over shoots.
    pub fn sum(all: &[Self]) -> Self {
        all.iter().fold(Self::default(), |sum, one| Self {
            leases: sum.leases + one.leases,
            requests: sum.requests + one.requests,
            connections: sum.connections + one.connections,
            bytes: sum.bytes + one.bytes,
        })
    }

    /// What was added since an earlier count.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            leases: self.leases - before.leases,
            requests: self.requests - before.requests,
            connections: self.connections - before.connections,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// What a server is told on standard input, a line each.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// The nodes of these shoots lose their way, shoot by shoot at these moments.
    Cut { from: usize, moments: Vec<Micros> },
    /// The nodes of these shoots get it back.
    Heal { from: usize, to: usize, at: Micros },
    /// Tell what was asked so far.
    Count,
    /// Tell how late the requests for leases came since this was last asked, and begin anew.
    Lateness,
}

/// What a server tells first.
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
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl LightShoots {
    /// Starts a process that serves them.
    pub async fn start(plan: Plan) -> Result<Self> {
        let mut process = tokio::process::Command::new(std::env::current_exe()?)
            .arg("light-shoots")
            .args([format!("--shoots={}", plan.shoots), format!("--nodes={}", plan.nodes), format!("--grace={}", plan.grace)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the light shoots")?;
        let input = process.stdin.take().context("no way in")?;
        let mut output = BufReader::new(process.stdout.take().context("no way out")?).lines();
        let line = output.next_line().await?.context("the light shoots have ended")?;
        Ok(Self { plan, opened: serde_json::from_str(&line)?, input, output, _process: process })
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

    /// From now on the nodes of these shoots renew no more, one shoot after the other `within` this time. Returns their hearts,
    /// which tell when the verdict can fall.
    pub async fn cut(&mut self, shoots: Range<usize>, within: Duration) -> Result<Vec<Heart>> {
        let (begin, count) = (now(), shoots.len() as f64);
        let moments: Vec<Micros> =
            (0..shoots.len()).map(|place| begin + (within.as_micros() as f64 * place as f64 / count) as Micros).collect();
        let hearts = shoots.clone().zip(&moments).map(|(shoot, &moment)| {
            let mut heart = self.plan.heart(shoot);
            heart.cut(moment);
            heart
        });
        let hearts = hearts.collect();
        self.ask(&Order::Cut { from: shoots.start, moments }).await?;
        Ok(hearts)
    }

    /// From now on the nodes of these shoots renew again, each when its phase wants it.
    pub async fn heal(&mut self, shoots: Range<usize>) -> Result<()> {
        self.ask(&Order::Heal { from: shoots.start, to: shoots.end, at: now() }).await.map(drop)
    }

    /// What each was asked so far.
    pub async fn counts(&mut self) -> Result<Vec<Counts>> {
        Ok(serde_json::from_str(&self.ask(&Order::Count).await?)?)
    }

    /// By how many seconds each request for leases came later than the prober's schedule wants it, since this was last asked.
    pub async fn lateness(&mut self) -> Result<Vec<f64>> {
        Ok(serde_json::from_str(&self.ask(&Order::Lateness).await?)?)
    }

    async fn ask(&mut self, order: &Order) -> Result<String> {
        let line = serde_json::to_string(order)? + "\n";
        self.input.write_all(line.as_bytes()).await.context("the light shoots have ended")?;
        self.output.next_line().await?.context("the light shoots have ended")
    }
}
