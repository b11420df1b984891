//! Shows that the oracle bites: something wrong is done in the watchdog's name, and must be found as what it is.
//!
//! It happens to the first shoot, which has no story of its own then, in the name of the replica that leads, or of one that does not.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use faults::lock;
use faults::writes::Dependent;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testbed::KubeApi;
use testbed::api::Network;
use testbed::gardener::{PROTECTED, REPLICAS};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::agents::Agents;
use crate::agents::vitals::hold;
use crate::options::Sabotage;
use crate::oracle::ledger::Kind;
use crate::shoot::{Api, KCM, Shoot};
use crate::story::{be_away, ills::Ill};
use crate::world::World;

/// How long a fit moment is waited for: twice what an outage and its answer take, and a hand-over.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// How long the API server is away: leases that were renewed just before that look expired then.
const AWAY: Duration = Duration::from_secs(9);
/// The finding must be wrong beyond doubt.
const MARGIN: Duration = Duration::from_secs(1);
/// More connections than any process has at one idle time more than at another.
const CONNECTIONS: usize = 12;

/// Who does it.
pub struct Saboteur {
    world: Arc<World>,
    agents: Arc<Agents>,
    wanted: Option<Sabotage>,
    /// What makes the agents grow.
    held: Vec<TcpStream>,
}

impl Saboteur {
    /// Nothing is done yet.
    pub fn new(world: Arc<World>, agents: Arc<Agents>, wanted: Option<Sabotage>) -> Self {
        Self { world, agents, wanted, held: Vec::new() }
    }

    /// Does it in the last round, at the first fit moment.
    pub async fn act(&mut self, last: bool) -> Result<()> {
        let shoot = self.world.shoots[0].clone();
        match self.wanted.filter(|_| last) {
            None => Ok(()),
            Some(Sabotage::Leak) => self.leak().await,
            Some(wanted @ (Sabotage::Restore | Sabotage::Sleep)) => {
                cut_all(&shoot, true);
                let done = match wanted {
                    Sabotage::Sleep => self.sleep().await,
                    _ => self.wrong_act(wanted, &shoot).await,
                };
                cut_all(&shoot, false);
                done
            }
            Some(Sabotage::Away) => {
                let Api::Memory(api) = &*shoot.api else { bail!("the first shoot is not in memory") };
                // Nothing that could be right must lie so near that a finding may rest on it.
                while !shoot.record().healthy_for(self.beyond_doubt()) {
                    sleep(LOOK).await;
                }
                shoot.record().api.begin();
                be_away(&shoot, api, Ill::Network(Network::Refused), AWAY).await;
                let done = self.wrong_act(Sabotage::Away, &shoot).await;
                shoot.record().api.end(Instant::now());
                done
            }
            Some(wanted) => self.wrong_act(wanted, &shoot).await,
        }
    }

    /// Asks each agent for a page, again and again, and keeps the connections.
    async fn leak(&mut self) -> Result<()> {
        for replica in self.agents.all() {
            let address = replica.metrics_address().context("an agent does not say where it serves metrics")?;
            for _ in 0..CONNECTIONS {
                self.held.push(hold(&address).await?);
            }
        }
        Ok(())
    }

    /// Holds the probers up until an outage has been missed.
    async fn sleep(&self) -> Result<()> {
        let signal = |signal| self.agents.probers.iter().try_for_each(|replica| replica.signal(signal));
        signal(Signal::SIGSTOP)?;
        let begin = Instant::now();
        while self.world.oracle.ledger.total(Kind::Missed) == 0 && begin.elapsed() < PATIENCE {
            sleep(LOOK).await;
        }
        signal(Signal::SIGCONT)
    }

    async fn wrong_act(&self, wanted: Sabotage, shoot: &Shoot) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            sleep(LOOK).await;
            let agent = if wanted == Sabotage::Deletion { "weeder" } else { "prober" };
            let Some(leader) = lock(&self.world.oracle.fences).leader(agent, Instant::now()) else { continue };
            let other = self.agents.probers.iter().map(|prober| &prober.name).find(|name| **name != leader);
            let writer = other.filter(|_| wanted == Sabotage::Leaderless).unwrap_or(&leader);
            let Some(kcm) = shoot.record().dependents.get(KCM).cloned() else { continue };
            if !self.fit(wanted, shoot, &kcm) {
                continue;
            }
            let seed = KubeApi::connect(&self.world.seed.kubeconfig(&format!("soak-{writer}-token"))).await?;
            shoot.note(format!("SABOTAGE: {wanted:?}"));
            let mut patch = patch(wanted, &kcm);
            if wanted == Sabotage::Leaderless {
                // If the leader restores it before the sabotage does, there is nothing wrong to find.
                let at_0 = shoot.change_deployment(KCM, |object| object["spec"]["replicas"] = json!(0));
                patch["metadata"]["resourceVersion"] = at_0.context("no such Deployment")?["metadata"]["resourceVersion"].clone();
            }
            let place = |resource: &str| format!("/{resource}/namespaces/{}", shoot.namespace);
            let done = match wanted {
                Sabotage::Deletion => seed.delete(&format!("{}/pods/bare", place("api/v1"))).await,
                _ => seed.merge(&format!("{}/deployments/{KCM}", place("apis/apps/v1")), &patch).await.map(drop),
            };
            match done {
                Ok(()) => return Ok(()),
                // The seed is ill just now.
                Err(error) => shoot.note(format!("SABOTAGE failed: {error:#}")),
            }
        }
        bail!("no fit moment for the sabotage")
    }

    /// How long it must have been so, that nothing can rest on its having been otherwise.
    fn beyond_doubt(&self) -> Duration {
        self.world.oracle.reading(Instant::now()).finding_age() + MARGIN
    }

    fn fit(&self, wanted: Sabotage, shoot: &Shoot, kcm: &Dependent) -> bool {
        let beyond_doubt = self.beyond_doubt();
        match wanted {
            Sabotage::ScaleDown | Sabotage::Leaderless => kcm.replicas > 0 && shoot.record().healthy_for(beyond_doubt),
            Sabotage::Memory | Sabotage::Away => kcm.replicas > 0,
            Sabotage::Restore => kcm.replicas == 0 && kcm.remembered().is_some() && shoot.record().ill_for(beyond_doubt),
            Sabotage::Deletion | Sabotage::Sleep | Sabotage::Leak => true,
        }
    }
}

/// All nodes lose their way to the API server, or find it again.
fn cut_all(shoot: &Shoot, cut: bool) {
    shoot.know(|record, _| record.nodes.values_mut().for_each(|node| node.cut = cut));
}

fn patch(wanted: Sabotage, kcm: &Dependent) -> Value {
    let (replicas, memory, marker) = match wanted {
        Sabotage::Restore | Sabotage::Leaderless => (kcm.remembered().unwrap_or(1), Value::Null, Value::Null),
        Sabotage::Memory => (0, json!("0"), json!("")),
        _ => (0, json!(kcm.replicas.to_string()), json!("")),
    };
    json!({"metadata": {"annotations": {REPLICAS: memory, PROTECTED: marker}}, "spec": {"replicas": replicas}})
}
