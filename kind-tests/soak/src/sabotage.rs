//! Shows that the oracle bites: something wrong is done in the watchdog's name, and must be found.

use std::time::Duration;

use anyhow::Result;
use kind_tests::KubeApi;
use memory_api::gardener::{PROTECTED, REPLICAS};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::options::Sabotage;
use crate::shoot::{KCM, Shoot};
use crate::world::World;
use crate::writes::Dependent;

/// How long a fit moment is waited for.
const PATIENCE: Duration = Duration::from_secs(40);

/// Does it, if it is wanted, at the first fit moment.
pub async fn act(world: &World, sabotage: Option<Sabotage>) -> Result<()> {
    let Some(sabotage) = sabotage else { return Ok(()) };
    let prober = KubeApi::connect(&world.seed.kubeconfig("soak-prober-a-token")).await?;
    let annotated = |replicas: i64, memory: Value, marker: Value| json!({"metadata": {"annotations": {REPLICAS: memory, PROTECTED: marker}}, "spec": {"replicas": replicas}});
    let fit: fn(&Dependent, &Shoot) -> bool = match sabotage {
        Sabotage::ScaleDown => |kcm, shoot| kcm.replicas > 0 && shoot.record().healthy_for(Duration::from_secs(12)),
        Sabotage::Memory => |kcm, _| kcm.replicas > 0,
        Sabotage::Restore => |kcm, shoot| kcm.remembered().is_some() && shoot.record().ill_for(Duration::from_secs(3)),
        Sabotage::Deletion => {
            let weeder = KubeApi::connect(&world.seed.kubeconfig("soak-weeder-token")).await?;
            let namespace = &world.shoots[0].namespace;
            return weeder.delete(&format!("/api/v1/namespaces/{namespace}/pods/bare")).await;
        }
    };
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        for shoot in &world.shoots {
            let Some(kcm) = shoot.record().dependents.get(KCM).cloned().filter(|kcm| !kcm.ignored) else { continue };
            if !fit(&kcm, shoot) {
                continue;
            }
            let patch = match sabotage {
                Sabotage::Restore => annotated(kcm.remembered().unwrap_or(1), Value::Null, Value::Null),
                Sabotage::Memory => annotated(0, json!("0"), json!("")),
                _ => annotated(0, json!(kcm.replicas.to_string()), json!("")),
            };
            shoot.note(format!("SABOTAGE: {sabotage:?}"));
            let path = format!("/apis/apps/v1/namespaces/{}/deployments/{KCM}", shoot.namespace);
            return prober.merge(&path, &patch).await.map(drop);
        }
        sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("no fit moment for the sabotage")
}
