//! Dependents that are no Deployments.

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::gardener::{SCALERS, more_access};
use testbed::prober::dependent;
use testbed::seed::ReplicaState;
use testbed::shoot::KCM;
use testbed::{Prober, ProberConfig, ShootCluster, ShootPlan, scenario};

use crate::{ORDERLY, logs};

const SCALER: &str = "bed.example.org/v1";

#[test]
fn all_kinds_are_scaled() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        seed.api().create_all(&more_access()).await?;
        let plan = ShootPlan {
            grace: ORDERLY,
            deployments: vec![(KCM, 2)],
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "kinds", plan).await?;
        for (api_version, kind, name, replicas) in [
            ("apps/v1", "StatefulSet", "machines", 3),
            (SCALER, "Scaler", "autoscaler", 4),
        ] {
            shoot
                .create_workload(api_version, kind, name, replicas)
                .await?;
        }
        let unset = json!({"apiVersion": SCALER, "kind": "Scaler",
            "metadata": {"name": "unset", "namespace": shoot.namespace}, "spec": {}});
        seed.api().create(&unset).await?;
        // A GET of the scale of a custom resource whose spec.replicas is unset answers 500, and a
        // DaemonSet has no scale.
        let never = [
            (SCALER, "Scaler", "unset"),
            ("apps/v1", "DaemonSet", "daemons"),
        ];
        let never = never.map(|(api_version, kind, name)| {
            let mut never = dependent(api_version, kind, name, 0, 0);
            never["scaleUp"]["timeout"] = "3s".into();
            never
        });
        let mut dependents = vec![
            dependent("apps/v1", "Deployment", KCM, 0, 1),
            dependent("apps/v1", "StatefulSet", "machines", 1, 0),
            dependent(SCALER, "Scaler", "autoscaler", 2, 0),
            // There is no such kind, which harms no other on the way down, and none before it on
            // the way up.
            dependent("apps/v1", "Depoyment", "nobody", 3, 0),
        ];
        dependents.extend(never);
        let config = ProberConfig {
            dependents,
            ..ProberConfig::default()
        };
        let mut prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;

        let all = async |is: &dyn Fn(&ReplicaState, i64) -> bool| {
            for (api, path, replicas) in [
                ("/apis/apps/v1", format!("deployments/{KCM}"), 2),
                ("/apis/apps/v1", "statefulsets/machines".into(), 3),
                (SCALERS, "scalers/autoscaler".into(), 4),
            ] {
                let path = format!("{api}/namespaces/{}/{path}", shoot.namespace);
                let state = ReplicaState::of(&seed.api().get(&path).await?);
                ensure!(is(&state, replicas), "{path}: {state}");
            }
            anyhow::Ok(())
        };
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        let down = |state: &ReplicaState, replicas: i64| state.is_held_down(&replicas.to_string());
        shoot
            .eventually("all held down", async || all(&down).await)
            .await?;
        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(
            order.last().is_some_and(|last| last == KCM),
            "{order:?}\n{}",
            shoot.story()
        );

        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot
            .eventually("all restored", async || {
                all(&ReplicaState::is_free_at).await
            })
            .await?;
        let order = shoot.order(begin, |state| state.replicas > 0);
        ensure!(
            order == [KCM, "machines", "autoscaler"],
            "{order:?}\n{}",
            shoot.story()
        );
        for resource in ["Scaler/unset", "DaemonSet/daemons"] {
            logs(&prober, "going on without it", resource).await?;
        }
        ensure!(prober.ended()?.is_none(), "it has ended");
        shoot.end().await
    })
}
