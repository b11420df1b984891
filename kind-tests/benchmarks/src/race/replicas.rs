//! The replicas of the prober, each with ways of its own to the seed and to the shoots, and an
//! account of its own, so that any one can be cut off and the audit log tells who wrote.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use nix::sys::signal::Signal;
use testbed::agent::{Agent, Kind};
use testbed::audit::Mark;
use testbed::gardener::{GARDEN, PROBE, PROBE_SECRET, PROBER, prober_access};
use testbed::relay::{Path, Relay};
use testbed::{ProberConfig, Seed, Shoot, eventually};
use tokio::time::sleep;

use super::change::LeaderFault;
use crate::writes::elections;

/// A kubelet starts a container that has ended for the first time about so much later.
const KUBELET: Duration = Duration::from_secs(1);
/// The replicas' names.
const NAMES: [&str; 2] = ["a", "b"];

/// One or two replicas.
pub struct ProberReplicas {
    seed: Arc<Seed>,
    config: String,
    all: Vec<RaceReplica>,
    mark: Mark,
}

struct RaceReplica {
    name: &'static str,
    seed: Relay,
    shoots: Vec<Relay>,
    /// What is dropped is killed.
    process: Option<Agent>,
}

/// What was done to a leader.
#[derive(Clone, Debug)]
pub struct Hit {
    pub change: LeaderFault,
    pub replica: &'static str,
    pub at: DateTime<Utc>,
}

impl ProberReplicas {
    /// So many, for these shoots. None runs yet.
    pub async fn create(
        seed: &Arc<Seed>,
        shoots: &[&Shoot],
        config: &ProberConfig,
        count: usize,
    ) -> Result<Self> {
        let all = try_join_all(
            NAMES
                .iter()
                .take(count)
                .map(|name| RaceReplica::create(seed, shoots, name)),
        )
        .await?;
        Ok(Self {
            seed: seed.clone(),
            config: config.text(),
            all,
            mark: seed.plane().mark(),
        })
    }

    /// Starts those of the first `count` that do not run. Before any other the first one runs, and
    /// leads.
    pub async fn start(&mut self, count: usize) -> Result<()> {
        for at in 0..count {
            if self.all[at].process.is_none() {
                self.all[at].start(&self.seed, &self.config).await?;
                eventually("a prober leads", async || self.leader()).await?;
            }
        }
        Ok(())
    }

    /// Who has written the election's Lease last.
    fn leader(&self) -> Result<String> {
        Ok(self.elections()?.pop().context("nobody has led yet")?.0)
    }

    fn elections(&self) -> Result<Vec<(String, DateTime<Utc>)>> {
        elections(&self.seed.plane().asked(&self.mark))
    }

    /// Lets this happen to the leader.
    pub async fn hit(&mut self, change: LeaderFault) -> Result<Hit> {
        let name = self.leader()?;
        let leader = self
            .all
            .iter_mut()
            .find(|replica| replica.name == name)
            .context("a stranger leads")?;
        let at = Utc::now();
        match change {
            LeaderFault::Killed => leader.process = None,
            LeaderFault::Terminated => drop(
                leader
                    .process
                    .take()
                    .context("it does not run")?
                    .terminate()
                    .await?,
            ),
            LeaderFault::Stopped => leader
                .process
                .as_ref()
                .context("it does not run")?
                .signal(Signal::SIGSTOP)?,
            LeaderFault::ShootsCut => leader.shoots.iter().for_each(|way| way.set(Path::Stalled)),
            LeaderFault::SeedCut => leader.seed.set(Path::Stalled),
            LeaderFault::Restarted => {
                leader.process = None;
                sleep(KUBELET).await;
                leader.start(&self.seed, &self.config).await?;
            }
            LeaderFault::None => {}
        }
        Ok(Hit {
            change,
            replica: leader.name,
            at,
        })
    }

    /// When somebody else led after that; the same one, where it was started again.
    pub fn elected(&self, hit: &Hit) -> Result<Option<DateTime<Utc>>> {
        let again = hit.change == LeaderFault::Restarted;
        let mut elections = self.elections()?.into_iter();
        Ok(elections
            .find(|(name, at)| *at > hit.at && (again || name != hit.replica))
            .map(|(_, at)| at))
    }

    /// Opens all ways, ends who was stopped or cut off from the seed, and starts whoever does not
    /// run.
    pub async fn mend(&mut self, hit: &Hit) -> Result<()> {
        for replica in &mut self.all {
            replica
                .shoots
                .iter()
                .chain([&replica.seed])
                .for_each(|way| way.set(Path::Open));
            if replica.name == hit.replica
                && matches!(hit.change, LeaderFault::Stopped | LeaderFault::SeedCut)
            {
                replica.process = None;
            }
        }
        self.start(self.all.len()).await
    }
}

impl RaceReplica {
    /// Lets a replica into the seed and the shoots.
    async fn create(seed: &Seed, shoots: &[&Shoot], name: &'static str) -> Result<Self> {
        seed.api()
            .create_all(&prober_access(&account(name)))
            .await?;
        let ways = shoots.iter().map(async |shoot| {
            let way = Relay::start(shoot.plane.address()).await?;
            let token = shoot.plane.api().token("kube-system", PROBE).await?;
            shoot
                .write_secret_named(&secret(name), &shoot.kubeconfig(way.address(), &token))
                .await?;
            anyhow::Ok(way)
        });
        let shoots = try_join_all(ways).await?;
        Ok(Self {
            name,
            seed: Relay::start(seed.plane().address()).await?,
            shoots,
            process: None,
        })
    }

    async fn start(&mut self, seed: &Seed, config: &str) -> Result<()> {
        let token = seed.api().token(GARDEN, &account(self.name)).await?;
        let kubeconfig = seed
            .plane()
            .kubeconfig(&format!("https://{}", self.seed.address()), &token);
        let config = config.replace(PROBE_SECRET, &secret(self.name));
        let process = Agent::alone(Kind::Prober, &kubeconfig, Some(&config), &[])?;
        seed.set_log(process.log_file().to_owned());
        self.process = Some(process);
        Ok(())
    }
}

fn account(replica: &str) -> String {
    format!("{PROBER}-{replica}")
}

/// The first replica reads the usual Secret, which healthy shoots beside the race have too; another
/// one of its own, which leads through relays of its own.
fn secret(replica: &str) -> String {
    if replica == NAMES[0] {
        PROBE_SECRET.to_owned()
    } else {
        format!("{PROBE_SECRET}-{replica}")
    }
}
