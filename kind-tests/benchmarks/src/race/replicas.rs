//! The replicas of the prober, each with ways of its own to the seed and to the shoots, and an
//! account of its own, so that any one can be cut off and the audit log tells who wrote.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use testbed::agent::{AgentKind, RunningAgent};
use testbed::audit::Mark;
use testbed::gardener::{GARDEN, PROBE, PROBE_SECRET, PROBER, prober_access};
use testbed::proxy::{ProxyMode, TcpProxy};
use testbed::{ProberConfig, SeedCluster, ShootCluster, eventually};
use tokio::time::sleep;

use super::leader_fault::LeaderFault;
use crate::writes::elections;

/// A kubelet starts a container that has ended for the first time about so much later.
const KUBELET: Duration = Duration::from_secs(1);
/// The replicas' names.
const NAMES: [&str; 2] = ["a", "b"];

/// One or two replicas.
pub struct ProberReplicas {
    seed: Arc<SeedCluster>,
    config: String,
    all: Vec<RaceReplica>,
    mark: Mark,
}

struct RaceReplica {
    name: &'static str,
    seed: TcpProxy,
    shoots: Vec<TcpProxy>,
    /// What is dropped is killed.
    process: Option<RunningAgent>,
}

/// What was done to a leader.
#[derive(Clone, Debug)]
pub struct Hit {
    pub fault: LeaderFault,
    pub replica: &'static str,
    pub at: DateTime<Utc>,
}

impl ProberReplicas {
    /// So many, for these shoots. None runs yet.
    pub async fn create(
        seed: &Arc<SeedCluster>,
        shoots: &[&ShootCluster],
        config: &ProberConfig,
        count: usize,
    ) -> Result<Self> {
        let names = NAMES.into_iter().take(count);
        let all = names.map(|name| RaceReplica::create(seed, shoots, name));
        Ok(Self {
            seed: seed.clone(),
            config: config.text(),
            all: try_join_all(all).await?,
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
    pub async fn hit(&mut self, fault: LeaderFault) -> Result<Hit> {
        let name = self.leader()?;
        let mut replicas = self.all.iter_mut();
        let leader = replicas.find(|replica| replica.name == name);
        let leader = leader.context("a stranger leads")?;
        let at = Utc::now();
        match fault {
            LeaderFault::Killed => leader.process = None,
            LeaderFault::Terminated => {
                let running = leader.process.take().context("it does not run")?;
                running.terminate().await?;
            }
            LeaderFault::Stopped => {
                let running = leader.process.as_ref();
                running.context("it does not run")?.pause(true)?;
            }
            LeaderFault::ShootsCut => leader
                .shoots
                .iter()
                .for_each(|way| way.set(ProxyMode::Stalled)),
            LeaderFault::SeedCut => leader.seed.set(ProxyMode::Stalled),
            LeaderFault::Restarted => {
                leader.process = None;
                sleep(KUBELET).await;
                leader.start(&self.seed, &self.config).await?;
            }
            LeaderFault::None => {}
        }
        let replica = leader.name;
        Ok(Hit { fault, replica, at })
    }

    /// When somebody else led after that; the same one, where it was started again.
    pub fn elected(&self, hit: &Hit) -> Result<Option<DateTime<Utc>>> {
        let again = hit.fault == LeaderFault::Restarted;
        let mut elections = self.elections()?.into_iter();
        let next = elections.find(|(name, at)| *at > hit.at && (again || name != hit.replica));
        Ok(next.map(|(_, at)| at))
    }

    /// Opens all ways, ends who was stopped or cut off from the seed, and starts whoever does not
    /// run.
    pub async fn mend(&mut self, hit: &Hit) -> Result<()> {
        let ends = matches!(hit.fault, LeaderFault::Stopped | LeaderFault::SeedCut);
        for replica in &mut self.all {
            let ways = replica.shoots.iter().chain([&replica.seed]);
            ways.for_each(|way| way.set(ProxyMode::Open));
            replica
                .process
                .take_if(|_| ends && replica.name == hit.replica);
        }
        self.start(self.all.len()).await
    }
}

impl RaceReplica {
    /// Lets a replica into the seed and the shoots.
    async fn create(
        seed: &SeedCluster,
        shoots: &[&ShootCluster],
        name: &'static str,
    ) -> Result<Self> {
        seed.api()
            .create_all(&prober_access(&account(name)))
            .await?;
        let ways = shoots.iter().map(async |shoot| {
            let way = TcpProxy::start(shoot.plane.address()).await?;
            let token = shoot.plane.api().token("kube-system", PROBE).await?;
            let kubeconfig = shoot.kubeconfig(way.address(), &token);
            shoot.write_secret_named(&secret(name), &kubeconfig).await?;
            anyhow::Ok(way)
        });
        Ok(Self {
            name,
            shoots: try_join_all(ways).await?,
            seed: TcpProxy::start(seed.plane().address()).await?,
            process: None,
        })
    }

    async fn start(&mut self, seed: &SeedCluster, config: &str) -> Result<()> {
        let token = seed.api().token(GARDEN, &account(self.name)).await?;
        let url = format!("https://{}", self.seed.address());
        let kubeconfig = seed.plane().kubeconfig(&url, &token);
        let config = config.replace(PROBE_SECRET, &secret(self.name));
        let process = RunningAgent::alone(AgentKind::Prober, &kubeconfig, Some(&config), &[])?;
        seed.set_log(process.log_file().to_owned());
        self.process = Some(process);
        Ok(())
    }
}

fn account(replica: &str) -> String {
    format!("{PROBER}-{replica}")
}

/// The first replica reads the usual Secret, which healthy shoots beside the race have too; another
/// one of its own, which leads through proxies of its own.
fn secret(replica: &str) -> String {
    if replica == NAMES[0] {
        PROBE_SECRET.to_owned()
    } else {
        format!("{PROBE_SECRET}-{replica}")
    }
}
