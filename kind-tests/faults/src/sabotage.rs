//! Shows that the oracle bites: something wrong is done in the watchdog's name, and must be found
//! as what it is.
//!
//! It happens to the first shoot, which has no story of its own then, in the name of the replica
//! that leads, or of one that does not.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testbed::agent::Kind as Agent;
use testbed::api::Network;
use testbed::gardener::{PROTECTED, REPLICAS};
use testbed::{KubeApi, PATIENCE, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::agents::Agents;
use crate::options::Sabotage;
use crate::oracle::ledger::ViolationKind;
use crate::pace::{ELECTION, SUSPENDED_FINDING_AGE};
use crate::shoot::{KCM, ShootApi, SoakShoot};
use crate::story::{be_away, injected_fault::InjectedFault};
use crate::world::SoakWorld;

const LOOK: Duration = Duration::from_millis(20);
/// How long the API server is away: leases that were renewed just before that look expired then.
const AWAY: Duration = Duration::from_secs(9);
/// The finding must be wrong beyond doubt.
const MARGIN: Duration = Duration::from_secs(1);
/// More connections than any process has at one idle time more than at another.
const CONNECTIONS: usize = 12;

/// Does it at the first fit moment; the connections that make the agents grow.
pub async fn act(world: &SoakWorld, agents: &Agents, wanted: Sabotage) -> Result<Vec<TcpStream>> {
    let shoot = &world.shoots[0];
    match wanted {
        Sabotage::Leak => return leak(agents).await,
        Sabotage::Restore | Sabotage::Sleep => {
            cut_all(shoot, true);
            match wanted {
                Sabotage::Sleep => hold_up(world, agents).await,
                _ => wrong_act(world, agents, wanted).await?,
            }
            cut_all(shoot, false);
        }
        Sabotage::Away => {
            let ShootApi::Memory(api) = &*shoot.api else {
                bail!("the first shoot is not in memory")
            };
            // Nothing that could be right must lie so near that a finding may rest on it, also if
            // an agent is suspended meanwhile.
            while !shoot
                .record()
                .judged_for(beyond_doubt(world) + SUSPENDED_FINDING_AGE, |judgement| {
                    !judgement.may_down
                })
            {
                sleep(LOOK).await;
            }
            shoot.record().api.begin();
            be_away(shoot, api, InjectedFault::Network(Network::Refused), AWAY).await;
            wrong_act(world, agents, wanted).await?;
            shoot.record().api.end(Instant::now());
        }
        _ => wrong_act(world, agents, wanted).await?,
    }
    Ok(Vec::new())
}

/// Asks each agent for a page, again and again, and keeps the connections.
async fn leak(agents: &Agents) -> Result<Vec<TcpStream>> {
    let mut held = Vec::new();
    for replica in &agents.0 {
        let address = replica.metrics_address()?;
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(&address).await?;
            stream
                .write_all(format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
                .await?;
            timeout(PATIENCE, stream.read_u8())
                .await
                .context("no answer")??;
            held.push(stream);
        }
    }
    Ok(held)
}

/// Holds the probers up until an outage has been missed.
async fn hold_up(world: &SoakWorld, agents: &Agents) {
    let signal = |signal| {
        agents
            .of(Agent::Prober)
            .for_each(|replica| replica.signal(signal))
    };
    signal(Signal::SIGSTOP);
    let begin = Instant::now();
    while world
        .oracle
        .ledger
        .pages
        .lock()
        .total(ViolationKind::MissedOutages)
        == 0
        && begin.elapsed() < PATIENCE
    {
        sleep(LOOK).await;
    }
    signal(Signal::SIGCONT);
}

/// Writes or deletes what it must not, as soon as that is wrong and the seed takes it.
async fn wrong_act(world: &SoakWorld, agents: &Agents, wanted: Sabotage) -> Result<()> {
    let shoot = &world.shoots[0];
    let place = |resource: &str| format!("/{resource}/namespaces/{}", shoot.namespace);
    let agent = if wanted == Sabotage::Deletion {
        Agent::Weeder
    } else {
        Agent::Prober
    };
    eventually("the sabotage", async || {
        // One that will not lose the lead before it has written.
        let leads = |name: &&str| {
            world
                .oracle
                .fences
                .lock()
                .leaderless(name, ELECTION[1] / 2, Instant::now())
                .is_none()
        };
        let (leaders, others): (Vec<_>, Vec<_>) = agents
            .of(agent)
            .map(|replica| replica.name)
            .partition(leads);
        let leader = leaders.first().context("nobody leads")?;
        let writer = others
            .first()
            .filter(|_| wanted == Sabotage::Leaderless)
            .unwrap_or(leader);
        let mut patch = wrong_patch(world, wanted).context("no fit moment")?;
        let seed =
            KubeApi::connect(&world.seed.kubeconfig(&format!("soak-{writer}-token"))).await?;
        shoot.note(format!("SABOTAGE: {wanted:?}"));
        if wanted == Sabotage::Deletion {
            return seed.delete(&format!("{}/pods/bare", place("api/v1"))).await;
        }
        if wanted == Sabotage::Leaderless {
            // If the leader restores it before the sabotage does, there is nothing wrong to find.
            let at_0 = shoot.change_deployment(KCM, |object| object["spec"]["replicas"] = json!(0));
            patch["metadata"]["resourceVersion"] =
                at_0.context("no such Deployment")?["metadata"]["resourceVersion"].clone();
        }
        seed.merge(
            &format!("{}/deployments/{KCM}", place("apis/apps/v1")),
            &patch,
        )
        .await
        .map(drop)
    })
    .await
}

/// How long it must have been so, that nothing can rest on its having been otherwise.
fn beyond_doubt(world: &SoakWorld) -> Duration {
    world.oracle.reading(Instant::now()).finding_age() + MARGIN
}

/// What is written, once that is wrong beyond doubt.
fn wrong_patch(world: &SoakWorld, wanted: Sabotage) -> Option<Value> {
    let beyond_doubt = beyond_doubt(world);
    let record = world.shoots[0].record();
    let kcm = record.dependents.get(KCM)?;
    let is_up = kcm.replicas > 0;
    let healthy = record.judged_for(beyond_doubt, |judgement| !judgement.may_down);
    let outage = record.judged_for(beyond_doubt, |judgement| !judgement.may_up);
    let down = |memory: String| (0, json!(memory), json!(""));
    let up = (kcm.remembered().unwrap_or(1), Value::Null, Value::Null);
    let (fit, (replicas, memory, marker)) = match wanted {
        Sabotage::Leaderless => (is_up && healthy, up),
        Sabotage::Restore => (!is_up && outage && kcm.remembered().is_some(), up),
        Sabotage::Memory => (is_up, down("0".into())),
        Sabotage::ScaleDown => (is_up && healthy, down(kcm.replicas.to_string())),
        _ => (is_up, down(kcm.replicas.to_string())),
    };
    let annotations = json!({REPLICAS: memory, PROTECTED: marker});
    fit.then(|| json!({"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}))
}

/// All nodes lose their way to the API server, or find it again.
fn cut_all(shoot: &SoakShoot, cut: bool) {
    shoot.know(|record, _| record.nodes.values_mut().for_each(|node| node.cut = cut));
}
