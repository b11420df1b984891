//! A real API server would take every rendered object, and the restricted standard every pod. The
//! chart renders what overlays do.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::objects::{get, items};
use testbed::{KubeApi, eventually, scenario};

use crate::cluster::{dry_run, furnish, pod};
use crate::tools::{chart, customized, overlay, overlays};

/// Fails unless an object is refused in words that hold this one.
async fn refused(api: &KubeApi, object: &Value, word: &str) -> Result<()> {
    let refused = dry_run(api, object).await.err().context("it is taken")?;
    ensure!(format!("{refused:#}").contains(word), "{refused:#}");
    Ok(())
}

#[test]
fn api_server_takes_every_object() -> Result<()> {
    scenario(async |bed| {
        let plane = bed.start_control_plane("deploy").await?;
        let api = plane.api();
        furnish(api).await?;
        let no_ids =
            "{resources: [OURS/overlays/plain], components: [OURS/components/no-user-ids]}";
        let mut installations = vec![("no-user-ids".to_owned(), customized(no_ids)?)];
        for name in overlays()? {
            let objects = overlay(&name)?;
            installations.push((name, objects));
        }
        for (name, objects) in &installations {
            for (key, object) in objects {
                dry_run(api, object)
                    .await
                    .with_context(|| format!("{name}: {key}"))?;
                if key.starts_with("Deployment ") {
                    dry_run(api, &pod(object))
                        .await
                        .with_context(|| format!("{name}: the pod of {key}"))?;
                }
            }
        }

        // It would have said so: what is wrong is refused.
        let objects = overlay("everything")?;
        for (key, parent, field) in [
            (
                "Deployment garden/dependency-watchdog-prober",
                "/spec/template/spec",
                "priorityClass",
            ),
            (
                "ServiceMonitor garden/dependency-watchdog-prober",
                "/spec/endpoints/0",
                "path_",
            ),
            (
                "PrometheusRule garden/dependency-watchdog",
                "/spec/groups/0/rules/0",
                "fore",
            ),
            (
                "VerticalPodAutoscaler garden/dependency-watchdog-prober",
                "/spec",
                "updateMode",
            ),
        ] {
            let mut object = get(&objects, key)?.clone();
            object.pointer_mut(parent).context("no such place")?[field] = "x".into();
            refused(api, &object, "unknown field").await?;
        }
        let mut lax = pod(get(
            &objects,
            "Deployment garden/dependency-watchdog-prober",
        )?);
        lax["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
        refused(api, &lax, "restricted").await
    })
}

/// Path of the definition of autoscalers.
const AUTOSCALERS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/verticalpodautoscalers.autoscaling.k8s.io";

#[test]
fn autoscalers_of_any_version_take_it() -> Result<()> {
    scenario(async |bed| {
        let plane = bed.start_control_plane("autoscaler").await?;
        let api = plane.api();
        furnish(api).await?;
        let key = "VerticalPodAutoscaler garden/dependency-watchdog-weeder";
        let mode = |mode: &str| -> Result<Value> {
            let values = format!("verticalPodAutoscaler: {{enabled: true, updateMode: {mode}}}");
            Ok(get(&chart(&values)?, key)?.clone())
        };
        let (default, newest) = (mode("null")?, mode("InPlaceOrRecreate")?);
        dry_run(api, &newest).await?;
        dry_run(api, &default).await?;
        // As up to 1.3.
        let definition = api.get(AUTOSCALERS).await?;
        let mut versions = items(&definition["spec"]["versions"]);
        let served = versions
            .position(|version| version["name"] == "v1")
            .context("no v1")?;
        let modes = format!(
            "/spec/versions/{served}/schema/openAPIV3Schema/properties/spec/properties/updatePolicy/properties/updateMode/enum"
        );
        let known = ["Off", "Initial", "Recreate", "Auto"];
        api.replace(AUTOSCALERS, &modes, &known[..].into()).await?;
        let is_refused = async || refused(api, &newest, "Unsupported value").await;
        eventually("the newest mode is refused", is_refused).await?;
        dry_run(api, &default).await?;
        dry_run(api, get(&overlay("everything")?, key)?).await?;
        for known in ["'Off'", "Initial", "Auto"] {
            dry_run(api, &mode(known)?).await?;
        }
        Ok(())
    })
}
