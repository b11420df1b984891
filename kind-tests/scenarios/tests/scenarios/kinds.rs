//! Dependents that are no Deployments.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::gardener::{SCALERS, more_access};
use testbed::prober::dependent;
use testbed::seed::Dependent;
use testbed::shoot::{KCM, PATIENCE};
use testbed::{Prober, ProberConfig, Shoot, ShootPlan, scenario};

#[test]
fn a_stateful_set_and_a_custom_resource_are_scaled_like_a_deployment() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        seed.apply(more_access()).await?;
        // Time enough between the verdict and the moment from which order no longer counts, on a busy machine too.
        let grace = Duration::from_secs(16);
        let plan = ShootPlan { grace, deployments: vec![(KCM, 2)], ..ShootPlan::default() };
        let shoot = Shoot::create(bed, &seed, "kinds", plan).await?;
        shoot.create_workload("/apis/apps/v1", "statefulsets", "StatefulSet", "machines", 3).await?;
        shoot.create_workload(SCALERS, "scalers", "Scaler", "autoscaler", 4).await?;
        let config = ProberConfig {
            dependents: vec![
                dependent("apps/v1", "Deployment", KCM, 0, 1),
                dependent("apps/v1", "StatefulSet", "machines", 1, 0),
                dependent("bed.example.org/v1", "Scaler", "autoscaler", 2, 0),
            ],
            ..ProberConfig::default()
        };
        let _prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;

        let states = async || -> Result<[Dependent; 3]> {
            let base = |api: &str, plural: &str| format!("{api}/namespaces/{}/{plural}", shoot.namespace);
            let api = seed.api();
            Ok([
                Dependent::of(&api.get(&format!("{}/{KCM}", base("/apis/apps/v1", "deployments"))).await?),
                Dependent::of(&api.get(&format!("{}/machines", base("/apis/apps/v1", "statefulsets"))).await?),
                Dependent::of(&api.get(&format!("{}/autoscaler", base(SCALERS, "scalers"))).await?),
            ])
        };
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        let held_down = async || {
            let [manager, machines, autoscaler] = states().await?;
            ensure!(manager.is_held_down("2"), "{manager}");
            ensure!(machines.is_held_down("3"), "{machines}");
            ensure!(autoscaler.is_held_down("4"), "{autoscaler}");
            Ok(())
        };
        shoot.eventually("all held down", PATIENCE, held_down).await?;
        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(order.last().is_some_and(|last| last == KCM), "{order:?}\n{}", shoot.story());

        // A custom resource takes two writes: a prober that dies between them leaves it like this.
        let path = format!("{SCALERS}/namespaces/{}/scalers/autoscaler", shoot.namespace);
        seed.api().merge(&path, &json!({"spec": {"replicas": 4}})).await?;
        shoot.eventually("all held down again", PATIENCE, held_down).await?;

        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot
            .eventually("all restored", PATIENCE, async || {
                let [manager, machines, autoscaler] = states().await?;
                ensure!(manager.is_free_at(2), "{manager}");
                ensure!(machines.is_free_at(3), "{machines}");
                ensure!(autoscaler.is_free_at(4), "{autoscaler}");
                Ok(())
            })
            .await?;
        let order = shoot.order(begin, |state| state.replicas > 0);
        ensure!(order == [KCM, "machines", "autoscaler"], "{order:?}\n{}", shoot.story());
        shoot.end().await
    })
}

#[test]
fn an_unknown_kind_harms_no_other_on_the_way_down() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let plan = ShootPlan { deployments: vec![(KCM, 2)], ..ShootPlan::default() };
        let shoot = Shoot::create(bed, &seed, "unknown-kind", plan).await?;
        let config = ProberConfig {
            dependents: vec![
                dependent("apps/v1", "Deployment", KCM, 0, 1),
                dependent("apps/v1", "Depoyment", "machine-controller-manager", 1, 0),
            ],
            ..ProberConfig::default()
        };
        let mut prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&[(KCM, "2")]).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 2)]).await?;
        ensure!(prober.ended()?.is_none());
        shoot.end().await
    })
}
