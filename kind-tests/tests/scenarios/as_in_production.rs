//! Gardener's real values, with a real kube-controller-manager that gives nodes up, and stops when its Deployment is at 0.
//!
//! This is the longest scenario. Tests begin in the order of their names, and with this name it begins first.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use kind_tests::control_plane::ControllerManager;
use kind_tests::shoot::{Body, CA, KCM, MCM};
use kind_tests::{Bed, Prober, ProberConfig, Seed, Shoot, ShootPlan, scenario};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

const GRACE: Duration = Duration::from_secs(40);
/// The longest way of all: initial delay, grace, 30 s for machine-controller-manager.
const PATIENCE: Duration = Duration::from_secs(120);

/// kube-controller-manager as a process that follows its Deployment, as a kubelet would see to it.
struct Manager {
    process: Arc<Mutex<ControllerManager>>,
    _kubelet: JoinSet<()>,
}

impl Manager {
    async fn of(bed: &Bed, shoot: &Shoot) -> Result<Self> {
        let manager = ControllerManager::new(&bed.programs().await?, shoot.plane.admin_kubeconfig(), GRACE)?;
        let process = Arc::new(Mutex::new(manager));
        let mut kubelet = JoinSet::new();
        let (held, seed, namespace) = (process.clone(), shoot.seed.clone(), shoot.namespace.clone());
        kubelet.spawn(async move {
            loop {
                let wanted = seed.journal().of(&namespace).into_iter().rfind(|entry| entry.name == KCM);
                if let Some(state) = wanted.and_then(|entry| entry.state) {
                    // A process that does not start shows in the scenario: nodes are never given up.
                    let _ = held.lock().await.set_running(state.replicas > 0);
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        Ok(Self { process, _kubelet: kubelet })
    }

    async fn is_running(&self) -> bool {
        self.process.lock().await.is_running()
    }
}

async fn shoot(bed: &'static Bed, seed: &Arc<Seed>, name: &str, body: Body) -> Result<Shoot> {
    let plan = ShootPlan { nodes: 5, grace: GRACE, deployments: vec![(KCM, 1), (MCM, 1), (CA, 1)], body, ..ShootPlan::default() };
    Shoot::create(bed, seed, name, plan).await
}

#[test]
fn with_gardeners_values_no_node_is_given_up_where_without_protection_all_are() -> Result<()> {
    scenario(async |bed| {
        if bed.is_given() {
            eprintln!("skipped: needs a kube-controller-manager of the test bed's own");
            return Ok(());
        }
        let seed = bed.own_seed().await?;
        let protected = shoot(bed, &seed, "protected", Body::default()).await?;
        // The prober leaves a shoot alone that is being migrated.
        let alone = shoot(bed, &seed, "unprotected", Body::operation("Migrate", "Processing")).await?;
        let (manager, other) = (Manager::of(bed, &protected).await?, Manager::of(bed, &alone).await?);
        let _prober = Prober::start(&seed, ProberConfig::gardener()).await?;
        // The second look is the first one after the initial delay.
        protected.after_probes(1).await?;
        for shoot in [&protected, &alone] {
            let ready = shoot.nodes.readiness().await?;
            ensure!(ready.iter().all(|ready| ready == "True"), "{ready:?}");
            shoot.nodes.cut_all();
        }
        ensure!(manager.is_running().await && other.is_running().await);

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
        ensure!(!manager.is_running().await, "{}", protected.story());
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
        ensure!(manager.is_running().await);
        let ready = protected.nodes.readiness().await?;
        ensure!(ready.iter().all(|ready| ready == "True"), "{ready:?}\n{}", protected.story());
        let written = alone.history().into_iter().filter_map(|entry| entry.state);
        let written = written.filter(|state| state.memory.is_some() || state.marker.is_some()).count();
        ensure!(written == 0, "{}", alone.story());
        drop((manager, other));
        protected.end().await?;
        alone.end().await
    })
}
