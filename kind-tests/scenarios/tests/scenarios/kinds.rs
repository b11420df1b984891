//! Dependents that are no Deployments.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testbed::gardener::{SCALERS, more_access};
use testbed::prober::dependent;
use testbed::seed::ReplicaState;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{Prober, ProberConfig, ShootCluster, ShootPlan, objects, scenario};

use crate::{DOWN, ORDERLY, UP, logs};

#[test]
fn a_stateful_set_and_a_custom_resource_are_scaled_like_a_deployment() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let mut access = more_access();
        let role = access[0].clone();
        let rules = access[0]["rules"].as_array_mut().context("no rules")?;
        rules[1]["resources"] = json!(["scalers"]);
        rules.push(json!({"apiGroups": ["bed.example.org"], "resources": ["scalers/scale"], "verbs": ["get"]}));
        seed.api().create_all(&access).await?;
        let plan = ShootPlan {
            grace: ORDERLY,
            deployments: vec![(KCM, 2)],
            forbidden: true,
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "kinds", plan).await?;
        shoot
            .create_workload("apps/v1", "StatefulSet", "machines", 3)
            .await?;
        shoot
            .create_workload("bed.example.org/v1", "Scaler", "autoscaler", 4)
            .await?;
        let config = ProberConfig {
            dependents: vec![
                dependent("apps/v1", "Deployment", KCM, 0, 1),
                dependent("apps/v1", "StatefulSet", "machines", 1, 0),
                dependent("bed.example.org/v1", "Scaler", "autoscaler", 2, 0),
                // There is no such kind, which harms no other on the way down, and none before it
                // on the way up.
                dependent("apps/v1", "Depoyment", "nobody", 3, 0),
            ],
            ..ProberConfig::default()
        };
        let mut prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;

        let path = |api: &str, rest: &str| format!("{api}/namespaces/{}/{rest}", shoot.namespace);
        let paths = [
            path("/apis/apps/v1", &format!("deployments/{KCM}")),
            path("/apis/apps/v1", "statefulsets/machines"),
            path(SCALERS, "scalers/autoscaler"),
        ];
        let state = async |index: usize| {
            anyhow::Ok(ReplicaState::of(&seed.api().get(&paths[index]).await?))
        };
        let held_down = async |count: usize| {
            for (index, memory) in ["2", "3", "4"].into_iter().enumerate().take(count) {
                let state = state(index).await?;
                ensure!(state.is_held_down(memory), "{}: {state}", paths[index]);
            }
            anyhow::Ok(())
        };
        let restored = async || {
            for (index, replicas) in [2, 3, 4].into_iter().enumerate() {
                let state = state(index).await?;
                ensure!(state.is_free_at(replicas), "{}: {state}", paths[index]);
            }
            anyhow::Ok(())
        };

        // While the custom resource may be annotated but not scaled, it stops no other, and keeps
        // no trace of the outage.
        shoot.nodes.cut_all();
        shoot
            .eventually("the others are held down", async || held_down(2).await)
            .await?;
        logs(
            &prober,
            "resource cannot be scaled",
            "\"category\":\"forbidden\"",
        )
        .await?;
        ensure!(state(2).await?.replicas == 4);
        shoot.nodes.heal_all();
        shoot.eventually("no trace is left", restored).await?;
        seed.api()
            .replace(&objects::path(&role)?, "/rules", &role["rules"])
            .await?;
        let forbidden = || {
            shoot
                .asked_of_seed()
                .iter()
                .filter(|asked| asked.code == 403)
                .count()
        };
        let before = forbidden();

        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        shoot
            .eventually("all held down", async || held_down(3).await)
            .await?;
        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(
            order.last().is_some_and(|last| last == KCM),
            "{order:?}\n{}",
            shoot.story()
        );

        // A custom resource takes two writes: a prober that dies between them leaves it like this.
        seed.api()
            .merge(&paths[2], &json!({"spec": {"replicas": 4}}))
            .await?;
        shoot
            .eventually("all held down again", async || held_down(3).await)
            .await?;

        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.eventually("all restored", restored).await?;
        let order = shoot.order(begin, |state| state.replicas > 0);
        ensure!(
            order == [KCM, "machines", "autoscaler"],
            "{order:?}\n{}",
            shoot.story()
        );
        ensure!(
            prober.ended()?.is_none() && forbidden() == before,
            "{} of {before}",
            forbidden()
        );
        shoot.end().await
    })
}

#[test]
fn what_can_never_be_scaled_keeps_nothing_else_down() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        seed.api().create_all(&more_access()).await?;
        let plan = ShootPlan {
            grace: ORDERLY,
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "unscalable", plan).await?;
        // GET scale of a custom resource whose spec.replicas is unset answers 500, and a DaemonSet
        // has no scale.
        let never = |api_version: &str, kind: &str, optional: bool| {
            let name = if optional { "optional" } else { "mandatory" };
            let mut never = dependent(api_version, kind, name, 0, 0);
            never["optional"] = optional.into();
            never["scaleUp"]["timeout"] = "3s".into();
            never
        };
        let mut dependents = vec![
            dependent("apps/v1", "Deployment", KCM, 0, 1),
            dependent("apps/v1", "Deployment", MCM, 1, 0),
            dependent("apps/v1", "Deployment", CA, 2, 0),
        ];
        for optional in [false, true] {
            let unset = never("bed.example.org/v1", "Scaler", optional);
            let scaler = json!({"apiVersion": "bed.example.org/v1", "kind": "Scaler",
                "metadata": {"name": unset["ref"]["name"], "namespace": shoot.namespace}, "spec": {}});
            seed.api().create(&scaler).await?;
            dependents.extend([unset, never("apps/v1", "DaemonSet", optional)]);
        }
        let config = ProberConfig {
            dependents,
            ..ProberConfig::default()
        };
        let mut prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;

        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        for kind in ["Scaler", "DaemonSet"] {
            for name in ["mandatory", "optional"] {
                let resource = format!("{kind}/{name}");
                logs(&prober, "going on without it", &resource).await?;
            }
        }
        ensure!(prober.ended()?.is_none());
        shoot.end().await
    })
}
