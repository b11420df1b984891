//! The shoot's nodes lose their network, while this or that happens to the prober.

use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::Utc;
use testbed::eventually;
use testbed::gardener::GARDEN;
use testbed::shoot::renew_times;

use crate::installation::{AGENTS, leader};
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
    /// `kubectl rollout restart`, which does what `helm upgrade` with other values does.
    Restarted,
}

impl ProberChange {
    async fn happen(self, world: &NodeWorld) -> Result<()> {
        let prober = AGENTS[0];
        match self {
            Self::LeaderKilled => kill(world, &leader(world, prober).await?).await,
            Self::Restarted => {
                let restart = format!("--namespace {GARDEN} rollout restart deployment/{prober}");
                world.kubectl(&restart).await.map(drop)
            }
        }
    }
}

/// Cuts the nodes off until kube-controller-manager would have given them up, and lets them in
/// again.
pub async fn outage(world: &NodeWorld, change: ProberChange) -> Result<()> {
    let shoot = &world.shoot;
    leases(shoot, "all nodes renew", |age| age < RENEWED).await?;
    shoot.plug(false).await?;
    let silent_for = async |least| leases(shoot, "leases are old", |age| age >= least).await;
    silent_for(BEFORE_THE_VERDICT).await?;
    change.happen(world).await?;
    replicas(shoot, "all are at 0, their pods gone", (0, 0)).await?;
    silent_for(GIVEN_UP).await?;
    let unknown = shoot.ever_unknown.get().clone();
    let (lost, ready) = {
        let endpoints = shoot.endpoints.get();
        (endpoints.lost.clone(), endpoints.ready())
    };
    ensure!(
        unknown.is_empty() && lost.is_empty() && ready == shoot.machines.len(),
        "{change:?}: Unknown {unknown:?}, endpoints lost {lost:?}, {ready} ready"
    );
    shoot.plug(true).await?;
    replicas(shoot, "all are ready again", (1, 1)).await
}

/// Waits until all that the prober scales has these desired and ready replicas.
async fn replicas(shoot: &NodeShoot, what: &str, wanted: (i64, i64)) -> Result<()> {
    eventually(what, async || {
        let replicas = shoot.replicas().await?;
        let all = replicas.iter().all(|counts| *counts == wanted);
        ensure!(all && !replicas.is_empty(), "{replicas:?}");
        Ok(())
    })
    .await
}

/// Waits until the leases of the shoot's nodes were renewed so long ago.
async fn leases(shoot: &NodeShoot, what: &str, is: impl Fn(Duration) -> bool) -> Result<()> {
    eventually(what, async || {
        for time in renew_times(shoot.plane.api()).await?.into_values() {
            let age = (Utc::now() - time).to_std().unwrap_or_default();
            ensure!(is(age), "one is {age:?} old");
        }
        Ok(())
    })
    .await
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
        let kill = ctr(format!("tasks kill --signal SIGKILL {id}"));
        if kill.await.is_ok() {
            return Ok(());
        }
    }
    anyhow::bail!("no container of {pod} runs")
}
