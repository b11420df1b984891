//! The scenarios: the real binary against real control planes.
//!
//! They mostly wait, so more of them run side by side than there are cores (RUST_TEST_THREADS).
//! Ordinary ones share a seed and its prober, with a namespace and a shoot of their own; those that
//! need their own configuration, or kill the prober, have a seed to themselves. Each ends by
//! checking that nothing it asked for was forbidden.

mod as_in_production;
mod candidates;
mod commands;
mod conformance;
mod election;
mod faults;
mod gardeners_objects;
mod kinds;
mod metrics;
mod rbac;
mod throttling;
mod weeder;

use std::ops::RangeBounds;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::page::{metrics, page};
use testbed::proxy::TcpProxy;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{Prober, ProberConfig, SeedCluster, ShootCluster, ShootPlan, Testbed, eventually};

/// What an outage leaves of the usual three, at their usual replicas.
const DOWN: [(&str, &str); 3] = [(KCM, "2"), (MCM, "1"), (CA, "1")];
/// The usual three with nothing held down.
const UP: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];
/// A grace that leaves time between the verdict and the moment from which order no longer counts,
/// also on a machine that does much at once.
const ORDERLY: Duration = Duration::from_secs(24);
/// The Leases of the agents' elections.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/garden/leases";
/// The lead of a process that was killed ends soon.
const QUICK: [&str; 3] = [
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];
/// The lead outlasts every stop: an agent that loses it ends, and what is shown is what it does
/// otherwise.
const PATIENT: [&str; 2] = [
    "--leader-elect-lease-duration=120s",
    "--leader-elect-renew-deadline=100s",
];

/// A shoot on the shared seed that has been seen healthy.
async fn healthy(bed: &'static Testbed, name: &str, plan: ShootPlan) -> Result<ShootCluster> {
    let shoot = ShootCluster::create(bed, &bed.seed().await?, name, plan).await?;
    shoot.after_probes(2).await?;
    Ok(shoot)
}

/// A shoot on a seed of its own, and the prober there, which has seen it healthy.
async fn alone(
    bed: &'static Testbed,
    name: &str,
    plan: ShootPlan,
    config: ProberConfig,
) -> Result<(ShootCluster, Prober)> {
    let shoot = ShootCluster::create(bed, &bed.own_seed().await?, name, plan).await?;
    let prober = Prober::start(&shoot.seed, config).await?;
    shoot.after_probes(2).await?;
    Ok((shoot, prober))
}

/// Ends a scenario on a seed of its own, on which these agents are still at work: before another
/// scenario has the seed.
async fn end_alone(shoot: ShootCluster, agents: impl Sized) -> Result<()> {
    drop(agents);
    shoot.end().await
}

/// The default config, and these arguments.
fn with_args(args: &[&str]) -> ProberConfig {
    ProberConfig {
        args: args.iter().map(ToString::to_string).collect(),
        ..ProberConfig::default()
    }
}

/// Starts a prober that reaches its seed through a proxy.
async fn prober_behind(seed: &SeedCluster, proxy: &TcpProxy, args: &[&str]) -> Result<Prober> {
    let direct = seed.prober_kubeconfig().await?;
    let file = seed
        .folder()
        .join(format!("kubeconfig-through-{}", proxy.address()));
    std::fs::write(
        &file,
        direct.replace(&seed.plane().url(), &format!("https://{}", proxy.address())),
    )?;
    let kubeconfig = format!("--kubeconfig={}", file.display());
    Prober::start(seed, with_args(&[args, &[kubeconfig.as_str()]].concat())).await
}

/// An outage begins, or ends.
fn turn(shoot: &ShootCluster, cut: bool) {
    if cut {
        shoot.nodes.cut_all()
    } else {
        shoot.nodes.heal_all()
    }
}

/// The usual three are held down after its beginning, or come back after its end, and since this
/// entry of the history none went the other way.
async fn has_turned(shoot: &ShootCluster, cut: bool, begin: usize) -> Result<()> {
    let what = if cut { "all held down" } else { "all restored" };
    // The journal is asked, which learns of it later where the seed was away.
    let turned = async || {
        let states = shoot.states();
        for ((name, memory), (_, replicas)) in DOWN.into_iter().zip(UP) {
            let state = states.get(name).with_context(|| format!("no {name}"))?;
            let (down, up) = (state.is_held_down(memory), state.is_free_at(replicas));
            ensure!(if cut { down } else { up }, "{name}: {state}");
        }
        Ok(())
    };
    shoot.eventually(what, turned).await?;
    let mut strays = shoot.writes_since(begin);
    strays.retain(|entry| entry.state.as_ref().is_some_and(|it| it.replicas == 0) != cut);
    ensure!(strays.is_empty(), "{strays:?}\n{}", shoot.story());
    Ok(())
}

/// An outage begins, and the usual three are held down.
async fn goes_down(shoot: &ShootCluster) -> Result<()> {
    shoot.nodes.cut_all();
    shoot.held_down(&DOWN).await
}

/// The outage ends, and the usual three come back.
async fn comes_back(shoot: &ShootCluster) -> Result<()> {
    shoot.nodes.heal_all();
    shoot.free_at(&UP).await
}

/// Waits for a write to a dependent since this entry of the shoot's history.
async fn written(shoot: &ShootCluster, begin: usize) -> Result<()> {
    let written = async || {
        ensure!(!shoot.writes_since(begin).is_empty(), "none");
        Ok(())
    };
    shoot.eventually("a write", written).await
}

/// Waits until an agent's log has a line of this message with this word.
async fn logs(agent: &Prober, message: &str, word: &str) -> Result<()> {
    eventually(&format!("{message}: {word}"), async || {
        let lines = agent.log(message);
        ensure!(
            lines.iter().any(|line| line.to_string().contains(word)),
            "{lines:?}\n{}",
            agent.tail(5)
        );
        Ok(())
    })
    .await
}

/// Waits until the agent that writes this log shows such a value of a series.
async fn shows(log: &Path, series: &str, values: impl RangeBounds<f64>) -> Result<()> {
    eventually(series, async || {
        let value = metrics(log).await?.value(series)?;
        ensure!(values.contains(&value), "{value}");
        Ok(())
    })
    .await
}

/// Waits until the agent that writes this log answers a request for a page with this status and
/// this word.
async fn answers(log: &Path, path: &str, status: u16, word: &str) -> Result<()> {
    eventually(&format!("{path} says {status} {word}"), async || {
        let (answer, body) = page(log, path).await?;
        ensure!(answer == status && body.contains(word), "{answer}: {body}");
        Ok(())
    })
    .await
}
