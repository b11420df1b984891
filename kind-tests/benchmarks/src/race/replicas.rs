//! The replicas of the prober, each with ways of its own to the seed and to the shoots, and an account of its own, so that any one
//! can be cut off and the audit log tells who wrote.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use nix::sys::signal::Signal;
use serde_json::json;
use testbed::agent::{Agent, Kind};
use testbed::audit::Mark;
use testbed::manifests::{GARDEN, Manifest, PROBE, PROBER, SECRET, seed_access};
use testbed::relay::{Path, Relay};
use testbed::{ProberConfig, Seed, Shoot, eventually};
use tokio::time::sleep;

use super::change::Change;
use super::writes::elections;

/// The longest that it takes to have a leader: the Lease lasts 15 s, and who waits tries every 2 s.
const ELECTION: Duration = Duration::from_secs(60);
/// A kubelet starts a container that has ended for the first time about so much later.
const KUBELET: Duration = Duration::from_secs(1);
/// The replicas' names.
const NAMES: [&str; 2] = ["a", "b"];

/// One or two replicas.
pub struct Replicas {
    config: String,
    all: Vec<Replica>,
    mark: Mark,
}

struct Replica {
    name: &'static str,
    seed: Relay,
    shoots: Vec<Relay>,
    process: Option<Agent>,
}

/// What was done to a leader.
#[derive(Clone, Debug)]
pub struct Hit {
    pub change: Change,
    pub replica: &'static str,
    pub at: DateTime<Utc>,
}

impl Replicas {
    /// So many, for these shoots. None runs yet.
    pub async fn create(seed: &Seed, shoots: &[&Shoot], config: &ProberConfig, count: usize) -> Result<Self> {
        let all = try_join_all(NAMES.iter().take(count).map(|name| Replica::create(seed, shoots, name))).await?;
        Ok(Self { config: config.text(), all, mark: seed.plane().mark() })
    }

    /// Starts those of the first `count` that do not run. Before any other the first one runs, and leads.
    pub async fn start(&mut self, seed: &Seed, count: usize) -> Result<()> {
        for replica in self.all.iter_mut().take(count).filter(|replica| replica.process.is_none()) {
            replica.start(seed, &self.config).await?;
            let mark = &self.mark;
            eventually("a prober leads", ELECTION, async || leader(seed, mark)).await?;
        }
        Ok(())
    }

    /// Lets this happen to the leader.
    pub async fn hit(&mut self, seed: &Seed, change: Change) -> Result<Hit> {
        let name = leader(seed, &self.mark)?;
        let replica = self.all.iter_mut().find(|replica| replica.name == name).context("a stranger leads")?;
        let at = Utc::now();
        replica.hit(change).await?;
        if change == Change::Restarted {
            sleep(KUBELET).await;
            replica.start(seed, &self.config).await?;
        }
        Ok(Hit { change, replica: replica.name, at })
    }

    /// When somebody else led after that; the same one, where it was started again.
    pub fn elected(&self, seed: &Seed, hit: &Hit) -> Result<Option<DateTime<Utc>>> {
        let log = elections(&seed.plane().asked(&self.mark))?;
        let again = hit.change == Change::Restarted;
        Ok(log.into_iter().find(|(name, at)| *at > hit.at && (again || name != hit.replica)).map(|(_, at)| at))
    }

    /// Opens all ways, ends who was stopped or cut off from the seed, and starts whoever does not run.
    pub async fn mend(&mut self, seed: &Seed, hit: &Hit) -> Result<()> {
        for replica in &mut self.all {
            replica.shoots.iter().chain([&replica.seed]).for_each(|way| way.set(Path::Open));
            if replica.name == hit.replica && matches!(hit.change, Change::Stopped | Change::SeedCut) {
                replica.kill().await?;
            }
        }
        self.start(seed, self.all.len()).await
    }
}

impl Replica {
    /// Lets a replica into the seed and the shoots.
    async fn create(seed: &Seed, shoots: &[&Shoot], name: &'static str) -> Result<Self> {
        seed.apply(access(name)).await?;
        let ways = shoots.iter().map(async |shoot| {
            let way = Relay::start(shoot.plane.address()).await?;
            write_secret(shoot, &secret(name), way.address()).await?;
            anyhow::Ok(way)
        });
        let shoots = try_join_all(ways).await?;
        Ok(Self { name, seed: Relay::start(seed.plane().address()).await?, shoots, process: None })
    }

    async fn start(&mut self, seed: &Seed, config: &str) -> Result<()> {
        let token = seed.api().token(GARDEN, &account(self.name)).await?;
        let kubeconfig = seed.plane().kubeconfig(&format!("https://{}", self.seed.address()), &token);
        let config = config.replace(SECRET, &secret(self.name));
        let process = Agent::alone(Kind::Prober, &kubeconfig, Some(&config), &[])?;
        seed.set_log(process.log_file().to_owned());
        self.process = Some(process);
        Ok(())
    }

    async fn hit(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Killed | Change::Restarted => self.kill().await,
            Change::Terminated => self.process.take().context("it does not run")?.terminate().await.map(drop),
            Change::Stopped => self.process.as_ref().context("it does not run")?.signal(Signal::SIGSTOP),
            Change::ShootsCut => {
                self.shoots.iter().for_each(|way| way.set(Path::Stalled));
                Ok(())
            }
            Change::SeedCut => {
                self.seed.set(Path::Stalled);
                Ok(())
            }
            Change::None => Ok(()),
        }
    }

    async fn kill(&mut self) -> Result<()> {
        self.process.take().context("it does not run")?.kill().await
    }
}

fn account(replica: &str) -> String {
    format!("{PROBER}-{replica}")
}

/// Each replica reads a Secret of its own, which leads through relays of its own.
fn secret(replica: &str) -> String {
    format!("{SECRET}-{replica}")
}

/// Writes a Secret for a replica, with a kubeconfig that leads to its way to the shoot.
async fn write_secret(shoot: &Shoot, name: &str, way: SocketAddr) -> Result<()> {
    let token = shoot.plane.api().token("kube-system", PROBE).await?;
    let kubeconfig = STANDARD.encode(shoot.kubeconfig(way, &token));
    let metadata = json!({"name": name, "namespace": shoot.namespace});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"kubeconfig": kubeconfig}});
    shoot.seed.api().create(&format!("/api/v1/namespaces/{}/secrets", shoot.namespace), &secret).await
}

/// An account with the prober's rights under a name of its own.
fn access(replica: &str) -> Vec<Manifest> {
    let own = account(replica);
    let is_binding = |manifest: &Manifest| manifest.1["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding"));
    let bindings = seed_access().into_iter().filter(is_binding).map(|(path, mut binding)| {
        let name = binding["metadata"]["name"].as_str().unwrap_or_default();
        binding["metadata"]["name"] = format!("{name}-{replica}").into();
        binding["subjects"][0]["name"] = own.clone().into();
        (path, binding)
    });
    let metadata = json!({"namespace": GARDEN, "name": own});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let mut manifests = vec![(format!("/api/v1/namespaces/{GARDEN}/serviceaccounts"), account)];
    manifests.extend(bindings);
    manifests
}

/// Who has written the election's Lease last.
fn leader(seed: &Seed, mark: &Mark) -> Result<String> {
    let (leader, _) = elections(&seed.plane().asked(mark))?.pop().context("nobody has led yet")?;
    ensure!(NAMES.contains(&leader.as_str()), "{leader} leads");
    Ok(leader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_has_the_probers_rights_and_no_other() {
        let manifests = access("b");
        let (roles, bindings): (Vec<_>, Vec<_>) = manifests.iter().partition(|(path, _)| path.ends_with("serviceaccounts"));
        assert_eq!((roles.len(), bindings.len()), (1, 2));
        for (_, binding) in bindings {
            assert_eq!(binding["subjects"][0]["name"], "dependency-watchdog-prober-b");
            assert_eq!(binding["roleRef"]["name"], "gardener.cloud:dependency-watchdog-prober");
        }
    }
}
