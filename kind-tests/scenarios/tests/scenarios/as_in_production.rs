//! Gardener's real values, with a real kube-controller-manager that gives nodes up, and stops when
//! its Deployment is at 0.
//!
//! These are the longest scenarios. Tests begin in the order of their names, and with this name
//! they begin first.

mod gateway;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::control_plane::ControllerManager;
use testbed::shoot::{Body, CA, KCM, MCM};
use testbed::{
    DeploymentPod, Prober, ProberConfig, SeedCluster, ShootCluster, ShootPlan, Testbed, WebService,
    scenario,
};

use crate::end_alone;

const GRACE: Duration = Duration::from_secs(40);

/// kube-controller-manager, which gives nodes up.
async fn manager(bed: &Testbed, shoot: &ShootCluster) -> Result<DeploymentPod> {
    let manager = ControllerManager::new(
        &bed.programs().await?,
        shoot.plane.admin_kubeconfig(),
        GRACE,
    )?;
    Ok(DeploymentPod::start(shoot, KCM, manager))
}

/// Waits until this is so: a pod follows its Deployment a moment later.
async fn runs(shoot: &ShootCluster, manager: &DeploymentPod, wanted: bool) -> Result<()> {
    shoot
        .eventually(
            "kube-controller-manager follows its Deployment",
            async || {
                let is_running = manager.program().await.is_running();
                ensure!(is_running == wanted, "it is running: {is_running}");
                Ok(())
            },
        )
        .await
}

/// What all nodes say of being Ready.
async fn all_are(shoot: &ShootCluster, wanted: &str) -> Result<()> {
    let ready = shoot.nodes.readiness().await?;
    ensure!(
        ready.iter().all(|ready| ready == wanted),
        "{ready:?}\n{}",
        shoot.story()
    );
    Ok(())
}

async fn shoot(
    bed: &'static Testbed,
    seed: &Arc<SeedCluster>,
    name: &str,
    nodes: usize,
    body: Body,
) -> Result<ShootCluster> {
    let plan = ShootPlan {
        nodes,
        grace: GRACE,
        deployments: vec![(KCM, 1), (MCM, 1), (CA, 1)],
        body,
        ..ShootPlan::default()
    };
    ShootCluster::create(bed, seed, name, plan).await
}

/// A Service over all nodes, whose endpoints are ready.
async fn service(shoot: &ShootCluster) -> Result<WebService> {
    WebService::over(shoot.plane.api(), shoot.nodes.names()).await
}

#[test]
fn gardeners_values_keep_all_nodes() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let protected = shoot(bed, &seed, "protected", 5, Body::default()).await?;
        // The prober leaves a shoot alone that is being migrated.
        let alone = shoot(
            bed,
            &seed,
            "unprotected",
            5,
            Body {
                operation: ("Migrate", "Processing"),
                ..Body::default()
            },
        )
        .await?;
        let (manager, other) = (manager(bed, &protected).await?, manager(bed, &alone).await?);
        let (serving, other_service) = tokio::try_join!(service(&protected), service(&alone))?;
        let begin = alone.history().len();
        let prober = Prober::start(&seed, ProberConfig::gardener()).await?;
        // The second look is the first one after the initial delay.
        protected.after_probes(1).await?;
        for shoot in [&protected, &alone] {
            all_are(shoot, "True").await?;
            shoot.nodes.cut_all();
        }
        runs(&protected, &manager, true).await?;
        runs(&alone, &other, true).await?;

        alone
            .eventually("all nodes are marked Unknown", async || {
                all_are(&protected, "True")
                    .await
                    .context("marked Unknown in spite of all")?;
                all_are(&alone, "Unknown").await?;
                let seen = other_service.endpoints();
                let (ready, lost) = (seen.ready(), seen.lost.len());
                ensure!((ready, lost) == (0, 5), "{ready} ready, {lost} lost");
                Ok(())
            })
            .await?;
        protected
            .held_down(&[(KCM, "1"), (MCM, "1"), (CA, "1")])
            .await?;
        runs(&protected, &manager, false).await?;
        protected
            .leases_older_than(GRACE + Duration::from_secs(10))
            .await?;
        all_are(&protected, "True").await?;

        protected.nodes.heal_all();
        // The others wait for another 30 s, as they do where Gardener's own objects are at
        // work.
        protected.free_at(&[(KCM, 1)]).await?;
        runs(&protected, &manager, true).await?;
        protected.after_probes(1).await?;
        all_are(&protected, "True").await?;
        let lost = serving.endpoints().lost.clone();
        ensure!(lost.is_empty(), "endpoints that were not ready: {lost:?}");
        alone.untouched_since(begin)?;
        drop((manager, other, serving, other_service));
        alone.end().await?;
        end_alone(protected, prober).await
    })
}
