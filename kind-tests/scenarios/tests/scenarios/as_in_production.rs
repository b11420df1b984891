//! Gardener's real values, with a real kube-controller-manager that gives nodes up, and stops when its Deployment is at 0.
//!
//! This is the longest scenario. Tests begin in the order of their names, and with this name it begins first.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::control_plane::ControllerManager;
use testbed::shoot::{Body, CA, KCM, MCM};
use testbed::{Bed, Pod, Prober, ProberConfig, Seed, Shoot, ShootPlan, own_scenario};

use crate::{end_alone, own_seed};

const GRACE: Duration = Duration::from_secs(40);
/// The longest way of all: initial delay, grace, 30 s for machine-controller-manager.
const PATIENCE: Duration = Duration::from_secs(120);

/// kube-controller-manager, which gives nodes up.
async fn manager(bed: &Bed, shoot: &Shoot) -> Result<Pod<ControllerManager>> {
    let manager = ControllerManager::new(&bed.programs().await?, shoot.plane.admin_kubeconfig(), GRACE)?;
    Ok(Pod::start(shoot, KCM, manager, ControllerManager::set_running))
}

async fn is_running(manager: &Pod<ControllerManager>) -> bool {
    manager.program().await.is_running()
}

async fn shoot(bed: &'static Bed, seed: &Arc<Seed>, name: &str, body: Body) -> Result<Shoot> {
    let plan = ShootPlan { nodes: 5, grace: GRACE, deployments: vec![(KCM, 1), (MCM, 1), (CA, 1)], body, ..ShootPlan::default() };
    Shoot::create(bed, seed, name, plan).await
}

#[test]
fn with_gardeners_values_no_node_is_given_up_where_without_protection_all_are() -> Result<()> {
    own_scenario("needs a kube-controller-manager of the test bed's own", async |bed| {
        let seed = own_seed(bed).await?;
        let protected = shoot(bed, &seed, "protected", Body::default()).await?;
        // The prober leaves a shoot alone that is being migrated.
        let alone = shoot(bed, &seed, "unprotected", Body::operation("Migrate", "Processing")).await?;
        let (manager, other) = (manager(bed, &protected).await?, manager(bed, &alone).await?);
        let prober = Prober::start(&seed, ProberConfig::gardener()).await?;
        // The second look is the first one after the initial delay.
        protected.after_probes(1).await?;
        for shoot in [&protected, &alone] {
            let ready = shoot.nodes.readiness().await?;
            ensure!(ready.iter().all(|ready| ready == "True"), "{ready:?}");
            shoot.nodes.cut_all();
        }
        ensure!(is_running(&manager).await && is_running(&other).await);

        alone
            .eventually("all nodes are given up", PATIENCE, async || {
                let given = protected.nodes.readiness().await?;
                ensure!(given.iter().all(|ready| ready == "True"), "given up in spite of all: {given:?}");
                let ready = alone.nodes.readiness().await?;
                ensure!(ready.iter().all(|ready| ready == "Unknown"), "{ready:?}");
                Ok(())
            })
            .await?;
        protected.held_down(&[(KCM, "1"), (MCM, "1"), (CA, "1")]).await?;
        ensure!(!is_running(&manager).await, "{}", protected.story());
        protected.leases_older_than(GRACE + Duration::from_secs(10)).await?;
        let ready = protected.nodes.readiness().await?;
        ensure!(ready.iter().all(|ready| ready == "True"), "{ready:?}\n{}", protected.story());

        protected.nodes.heal_all();
        protected
            .eventually("all restored", PATIENCE, async || {
                let states = protected.dependents().await?;
                for (name, state) in &states {
                    ensure!(state.is_free_at(1), "{name}: {state}");
                }
                Ok(())
            })
            .await?;
        ensure!(is_running(&manager).await);
        let ready = protected.nodes.readiness().await?;
        ensure!(ready.iter().all(|ready| ready == "True"), "{ready:?}\n{}", protected.story());
        let written = alone.history().into_iter().filter_map(|entry| entry.state);
        let written = written.filter(|state| state.memory.is_some() || state.marker.is_some()).count();
        ensure!(written == 0, "{}", alone.story());
        drop((manager, other));
        alone.end().await?;
        end_alone(bed, protected, prober).await
    })
}
