//! Shows that the oracle bites: something wrong is done in the watchdog's name, and must be found
//! as what it is.
//!
//! It happens to the first shoot, which has no story of its own then, in the name of the replica
//! that leads, or of one that does not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::Network;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testbed::agent::AgentKind;
use testbed::gardener::{PROTECTED, REPLICAS};
use testbed::{PATIENCE, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::agents::Agents;
use crate::options::Sabotage;
use crate::oracle::violations::ViolationKind;
use crate::pace::{ELECTION, SUSPENDED_PROBE_AGE};
use crate::shoot::{KCM, SoakShoot};
use crate::story::{be_away, injected_fault::InjectedFault};
use crate::world::SoakWorld;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long the API server is away: leases that were renewed just before that seem expired then.
const AWAY: Duration = Duration::from_secs(9);
/// The write must be wrong beyond doubt.
const MARGIN: Duration = Duration::from_secs(1);
/// More connections than any process has at one idle time more than at another.
const CONNECTIONS: usize = 12;

/// Does it at the first fit moment; the connections that make the agents grow.
pub async fn act(world: &SoakWorld, agents: &Agents, wanted: Sabotage) -> Result<Vec<TcpStream>> {
    let shoot = &world.shoots[0];
    let wrong = || act_wrongly(world, agents, wanted);
    match wanted {
        Sabotage::Leak => return leak(agents).await,
        Sabotage::Restore | Sabotage::Record => {
            cut_all(shoot, true);
            wrong().await?;
            cut_all(shoot, false);
        }
        Sabotage::Sleep => {
            cut_all(shoot, true);
            hold_up(world, agents).await;
            cut_all(shoot, false);
        }
        Sabotage::Away => {
            // Nothing that could be right must lie so near that a probe may rest on it, also if an
            // agent is suspended meanwhile.
            let long = beyond_doubt(world) + SUSPENDED_PROBE_AGE;
            while !shoot
                .record()
                .judged_for(long, |judgement| !judgement.may_down)
            {
                sleep(POLL_INTERVAL).await;
            }
            shoot.record().api.begin();
            be_away(shoot, InjectedFault::Network(Network::Refused), AWAY).await;
            wrong().await?;
            shoot.record().api.end(Instant::now());
        }
        _ => wrong().await?,
    }
    Ok(Vec::new())
}

/// Asks each agent for a page, again and again, and keeps the connections.
async fn leak(agents: &Agents) -> Result<Vec<TcpStream>> {
    let mut held = Vec::new();
    for replica in &agents.0 {
        let address = replica.metrics_address()?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(&address).await?;
            stream.write_all(request.as_bytes()).await?;
            let answer = timeout(PATIENCE, stream.read_u8()).await;
            answer.context("no answer")??;
            held.push(stream);
        }
    }
    Ok(held)
}

/// Holds the probers up, also those that start meanwhile, until an outage has been missed.
async fn hold_up(world: &SoakWorld, agents: &Agents) {
    let signal = |signal| {
        agents
            .of(AgentKind::Prober)
            .for_each(|replica| replica.signal(signal))
    };
    let missed = async {
        let violations = &world.oracle.violations;
        while violations.totals().total(ViolationKind::MissedOutages) == 0 {
            signal(Signal::SIGSTOP);
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(PATIENCE, missed).await.ok();
    signal(Signal::SIGCONT);
}

/// Writes or deletes what it must not, as soon as that is wrong and the seed takes it.
async fn act_wrongly(world: &SoakWorld, agents: &Agents, wanted: Sabotage) -> Result<()> {
    let shoot = &world.shoots[0];
    let place = |resource: &str| format!("/{resource}/namespaces/{}", shoot.namespace);
    let agent = if wanted == Sabotage::Deletion {
        AgentKind::Weeder
    } else {
        AgentKind::Prober
    };
    eventually("the sabotage", async || {
        // One that will not lose the lead before it has written.
        let leads = |name: &&str| {
            let (fences, now) = (world.oracle.fences.lock(), Instant::now());
            fences.leaderless(name, ELECTION[1] / 2, now).is_none()
        };
        let names = agents.of(agent).map(|replica| replica.name);
        let (leaders, others): (Vec<_>, Vec<_>) = names.partition(leads);
        let leader = leaders.first().context("nobody leads")?;
        let other = others.first().filter(|_| wanted == Sabotage::Leaderless);
        let token = format!("soak-{}-token", other.unwrap_or(leader));
        let mut patch = wrong_patch(world, wanted).context("no fit moment")?;
        shoot.note(format!("SABOTAGE: {wanted:?}"));
        if wanted == Sabotage::Deletion {
            let path = format!("{}/pods/bare", place("api/v1"));
            return request(world, Method::DELETE, &path, &token, String::new()).await;
        }
        let others_scale = match wanted {
            Sabotage::Leaderless => Some(0),
            Sabotage::Record => Some(1),
            _ => None,
        };
        if let Some(replicas) = others_scale {
            // If the leader writes it before the sabotage does, there is nothing wrong to find.
            let scale = |object: &mut Value| object["spec"]["replicas"] = json!(replicas);
            let scaled = shoot.change_dependent(KCM, scale);
            patch["metadata"]["resourceVersion"] =
                scaled.context("no such Deployment")?["metadata"]["resourceVersion"].clone();
        }
        let path = format!("{}/deployments/{KCM}", place("apis/apps/v1"));
        request(world, Method::PATCH, &path, &token, patch.to_string()).await
    })
    .await
}

/// Sends a request to the seed, in the name of whoever has this token.
async fn request(
    world: &SoakWorld,
    method: Method,
    path: &str,
    token: &str,
    body: String,
) -> Result<()> {
    let content = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(CONTENT_TYPE, content)
        .body(body)?;
    // One that the seed's faults keep is sent again.
    let answer = timeout(MARGIN, world.seed.answer(request)).await??;
    let status = answer.status();
    ensure!(status.is_success(), "{status}");
    Ok(())
}

/// How long it must have been so, that nothing can rest on its having been otherwise.
fn beyond_doubt(world: &SoakWorld) -> Duration {
    world.oracle.snapshot(Instant::now()).probe_age() + MARGIN
}

/// What is written, once that is wrong beyond doubt.
fn wrong_patch(world: &SoakWorld, wanted: Sabotage) -> Option<Value> {
    let beyond_doubt = beyond_doubt(world);
    let record = world.shoots[0].record();
    let kcm = record.dependents.get(KCM)?;
    let is_up = kcm.replicas > 0;
    let healthy = record.judged_for(beyond_doubt, |judgement| !judgement.may_down);
    let outage = record.judged_for(beyond_doubt, |judgement| !judgement.may_up);
    let fit = match wanted {
        Sabotage::Leaderless | Sabotage::ScaleDown => is_up && healthy,
        Sabotage::Restore | Sabotage::Record => !is_up && outage && kcm.remembered().is_some(),
        _ => is_up,
    };
    let up = (kcm.remembered().unwrap_or(1), Value::Null, Value::Null);
    let (replicas, memory, marker) = match wanted {
        Sabotage::Leaderless | Sabotage::Restore => up,
        Sabotage::Memory => (0, json!("0"), json!("")),
        Sabotage::Record => (0, json!(kcm.memory), json!("")),
        _ => (0, json!(kcm.replicas.to_string()), json!("")),
    };
    let annotations = json!({REPLICAS: memory, PROTECTED: marker});
    fit.then(|| json!({"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}))
}

/// All nodes lose their way to the API server, or find it again.
fn cut_all(shoot: &SoakShoot, cut: bool) {
    for node in shoot.record().nodes.values_mut() {
        node.cut = cut;
    }
}
