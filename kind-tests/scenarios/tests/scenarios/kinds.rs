//! Dependents that are no Deployments.

use anyhow::{Context, Result, ensure};
use testbed::gardener::more_access;
use testbed::prober::dependent;
use testbed::seed::ReplicaState;
use testbed::shoot::KCM;
use testbed::{ProberConfig, ShootCluster, ShootPlan, scenario, start_prober};

use crate::{ORDERLY, logs};

const SCALER: &str = "bed.example.org/v1";

#[test]
fn all_kinds_are_scaled() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        seed.api().create_all(&more_access()).await?;
        let plan = ShootPlan {
            grace: ORDERLY,
            deployments: vec![],
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "kinds", plan).await?;
        let scaled = [
            (KCM, "apps/v1", "Deployment", 2),
            ("machines", "apps/v1", "StatefulSet", 3),
            ("autoscaler", SCALER, "Scaler", 4),
        ];
        for (name, api_version, kind, replicas) in scaled {
            let created = shoot.create_workload(api_version, kind, name, replicas);
            created.await?;
        }
        let namespace = &shoot.namespace;
        seed.api()
            .create_yaml(&format!(
                "
apiVersion: {SCALER}
kind: Scaler
metadata: {{name: unset, namespace: {namespace}}}
spec: {{}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: daemons, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: daemons}}}}
  template: {{metadata: {{labels: {{app: daemons}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}
"
            ))
            .await?;
        let mut dependents = vec![
            dependent("apps/v1", "Deployment", KCM, 0, 1),
            dependent("apps/v1", "StatefulSet", "machines", 1, 0),
            dependent(SCALER, "Scaler", "autoscaler", 2, 0),
            // There is no such kind, which harms no other on the way down, and none before it on
            // the way up.
            dependent("apps/v1", "Depoyment", "nobody", 3, 0),
            // A custom resource whose spec.replicas is unset, and a DaemonSet, which has none.
            dependent(SCALER, "Scaler", "unset", 0, 0),
            dependent("apps/v1", "DaemonSet", "daemons", 0, 0),
        ];
        for never in &mut dependents[4..] {
            never["scaleUp"]["timeout"] = "3s".into();
        }
        let config = ProberConfig {
            dependents,
            ..ProberConfig::default()
        };
        let prober = start_prober(&seed, config).await?;
        shoot.after_probes(2).await?;

        let all = async |is: &dyn Fn(&ReplicaState, i64) -> bool| {
            let states = shoot.states();
            for (name, _, _, replicas) in scaled {
                let state = states.get(name).context("none")?;
                ensure!(is(state, replicas), "{name}: {state:?}");
            }
            anyhow::Ok(())
        };
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        let down = |state: &ReplicaState, replicas: i64| state.is_held_down(&replicas.to_string());
        let is_down = async || all(&down).await;
        shoot.eventually("all held down", is_down).await?;
        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(order[2] == KCM, "{order:?}\n{}", shoot.story());

        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        let is_up = async || all(&ReplicaState::is_free_at).await;
        shoot.eventually("all restored", is_up).await?;
        let order = shoot.order(begin, |state| state.replicas > 0);
        let as_configured = order == [KCM, "machines", "autoscaler"];
        ensure!(as_configured, "{order:?}\n{}", shoot.story());
        for resource in ["Scaler/unset", "DaemonSet/daemons"] {
            logs(&prober, "going on without it", resource).await?;
        }
        shoot.end().await
    })
}
