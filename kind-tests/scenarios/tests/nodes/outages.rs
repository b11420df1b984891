//! The shoot's nodes lose their network, while this or that happens to the prober.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use testbed::eventually;
use testbed::gardener::GARDEN;
use testbed::shoot::renew_times;
use tokio::time::Instant;

use crate::installation::{AGENTS, Installation, leader};
use crate::shoot::NodeShoot;
use crate::world::NodeWorld;

/// When something happens to the prober: shortly before the verdict, which falls when leases are 30
/// s old (three quarters of 40 s).
const BEFORE_THE_VERDICT: Duration = Duration::from_secs(26);
/// How old leases are when kube-controller-manager has surely given nodes up: 40 s, and it looks
/// every 5 s.
const GIVEN_UP: Duration = Duration::from_secs(48);

/// No lease of a node that renews is older than this: every 10 s, and 2.5 s more on a machine that
/// does much at once.
const RENEWED: Duration = Duration::from_millis(12_500);

/// What happens to the prober meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum ProberChange {
    /// Its leader's container is killed.
    LeaderKilled,
    /// `kubectl rollout restart`.
    Restarted,
    /// `helm upgrade` with other values.
    Upgraded,
}

impl ProberChange {
    async fn happen(self, world: &NodeWorld, installation: &Installation) -> Result<()> {
        let prober = AGENTS[0];
        match self {
            Self::LeaderKilled => kill(world, &leader(world, prober).await?).await,
            Self::Restarted => {
                let restart = format!("--namespace {GARDEN} rollout restart deployment/{prober}");
                world.kubectl(&restart).await.map(drop)
            }
            Self::Upgraded => {
                installation
                    .upgrade(world, &["--set=prober.logLevel=DEBUG"])
                    .await
            }
        }
    }
}

/// Cuts the nodes off until kube-controller-manager would have given them up, and lets them in
/// again; the shoots beside it are cut off as well.
pub async fn outage(
    world: &NodeWorld,
    installation: &Installation,
    change: ProberChange,
    beside: Option<&NodeShoot>,
) -> Result<()> {
    let shoot = &world.shoot;
    let all: Vec<&NodeShoot> = beside.into_iter().chain([shoot]).collect();
    eventually("all nodes renew their leases", async || {
        let ages = ages(shoot).await?;
        ensure!(ages.iter().all(|age| *age < RENEWED), "{ages:?}");
        Ok(())
    })
    .await?;
    for shoot in &all {
        shoot.plug(false).await?;
    }
    let began = Instant::now();
    silent_for(shoot, BEFORE_THE_VERDICT).await?;
    change.happen(world, installation).await?;
    replicas(
        shoot,
        "all are at 0, their pods gone",
        |(desired, ready)| desired == 0 && ready == 0,
    )
    .await?;
    let (at_zero, silence) = (began.elapsed(), silence(shoot).await?);
    silent_for(shoot, GIVEN_UP).await?;
    if let Some(other) = beside {
        eventually(
            "all nodes without the watchdog are marked Unknown, and the Service has no endpoint",
            async || {
                let (unknown, ready) = (other.unknown().await?, other.endpoints.get().ready());
                ensure!(
                    unknown == other.machines.len() && ready == 0,
                    "{unknown} Unknown, {ready} endpoints ready"
                );
                Ok(())
            },
        )
        .await?;
    }
    let unknown = shoot.ever_unknown.get().clone();
    let least = shoot.endpoints.get().least;
    ensure!(
        unknown.is_empty() && least == shoot.machines.len(),
        "{change:?}: Unknown {unknown:?}, {least} endpoints ready"
    );
    for shoot in &all {
        shoot.plug(true).await?;
    }
    let healed = Instant::now();
    replicas(shoot, "all are ready again", |counts| counts == (1, 1)).await?;
    println!(
        "{change:?}: at 0 after {at_zero:.1?}, the newest lease {silence:.1?} old; all ready again {:.1?} after the network",
        healed.elapsed()
    );
    Ok(())
}

async fn replicas(shoot: &NodeShoot, what: &str, is: impl Fn((i64, i64)) -> bool) -> Result<()> {
    eventually(what, async || {
        let replicas = shoot.replicas().await?;
        ensure!(replicas.iter().all(|counts| is(*counts)), "{replicas:?}");
        Ok(())
    })
    .await
}

/// Waits until no lease of the shoot's nodes is younger.
async fn silent_for(shoot: &NodeShoot, age: Duration) -> Result<()> {
    eventually("leases are old", async || {
        let silence = silence(shoot).await?;
        ensure!(silence >= age, "{silence:?}");
        Ok(())
    })
    .await
}

/// The age of the newest lease.
async fn silence(shoot: &NodeShoot) -> Result<Duration> {
    ages(shoot).await?.into_iter().min().context("no lease")
}

/// How long ago the nodes renewed their leases.
async fn ages(shoot: &NodeShoot) -> Result<Vec<Duration>> {
    let renewed = renew_times(shoot.plane.api()).await?;
    let age = |time: DateTime<Utc>| (Utc::now() - time).to_std().unwrap_or_default();
    Ok(renewed.into_values().map(age).collect())
}

/// Kills the container of a pod, as the kernel does for lack of memory.
async fn kill(world: &NodeWorld, pod: &str) -> Result<()> {
    let machine = &world.seed_machine;
    let ctr = async |words: String| {
        let ctr = format!("ctr --namespace k8s.io {words}");
        let words: Vec<&str> = ctr.split(' ').collect();
        machine.run(&words).await
    };
    let of_pod = format!(
        "labels.\"io.kubernetes.pod.name\"=={pod},labels.\"io.cri-containerd.kind\"==container"
    );
    let ids = ctr(format!("containers list --quiet {of_pod}")).await?;
    for id in ids.lines() {
        // One that has ended before is still listed.
        if ctr(format!("tasks kill --signal SIGKILL {id}"))
            .await
            .is_ok()
        {
            return Ok(());
        }
    }
    anyhow::bail!("no container of {pod} runs")
}
