//! A real API server would take every rendered object, and the restricted standard every pod. The
//! chart renders what overlays do.

use crate::cluster::{dry_run, furnish, pod};
use crate::tools::{chart, overlay, overlays};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::objects::{get, items};
use testbed::{eventually, scenario};

#[test]
fn api_server_takes_every_object() -> Result<()> {
    scenario(async |bed| {
        let plane = bed.start_control_plane("deploy").await?;
        let api = plane.api();
        furnish(api).await?;
        let mut pods = 0;
        for name in overlays()? {
            for (key, object) in &overlay(&name)? {
                dry_run(api, object)
                    .await
                    .with_context(|| format!("{name}: {key}"))?;
                if key.starts_with("Deployment ") {
                    dry_run(api, &pod(object))
                        .await
                        .with_context(|| format!("{name}: the pod of {key}"))?;
                    pods += 1;
                }
            }
        }
        ensure!(pods >= 8, "only {pods} pods");

        // It would have said so: what is wrong is refused.
        let objects = overlay("everything")?;
        let prober = "Deployment garden/dependency-watchdog-prober";
        let wrong = |object: Value, place: &str, value: Value| {
            let mut wrong = object;
            let (parent, field) = place.rsplit_once('/').context("no field")?;
            wrong.pointer_mut(parent).context("no such place")?[field] = value;
            anyhow::Ok(wrong)
        };
        let lax = "/spec/containers/0/securityContext/allowPrivilegeEscalation";
        let mut bad = vec![(
            wrong(pod(get(&objects, prober)?), lax, json!(true))?,
            "restricted",
        )];
        for (key, place) in [
            (prober, "/spec/template/spec/priorityClass"),
            (
                "ServiceMonitor garden/dependency-watchdog-prober",
                "/spec/endpoints/0/path_",
            ),
            (
                "PrometheusRule garden/dependency-watchdog",
                "/spec/groups/0/rules/0/fore",
            ),
            (
                "VerticalPodAutoscaler garden/dependency-watchdog-prober",
                "/spec/updateMode",
            ),
        ] {
            let object = get(&objects, key)?.clone();
            bad.push((wrong(object, place, json!("x"))?, "unknown field"));
        }
        for (object, word) in bad {
            let refused = dry_run(api, &object).await.err().context("it is taken")?;
            ensure!(format!("{refused:#}").contains(word), "{refused:#}");
        }
        Ok(())
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
        let rendered = |autoscaler: Value| -> Result<Value> {
            Ok(get(&chart(&json!({"verticalPodAutoscaler": autoscaler}))?, key)?.clone())
        };
        let default = rendered(json!({"enabled": true}))?;
        let mode = |mode: &str| rendered(json!({"enabled": true, "updateMode": mode}));
        let newest = mode("InPlaceOrRecreate")?;
        dry_run(api, &newest).await?;
        dry_run(api, &default).await?;
        // As up to 1.3.
        let definition = api.get(AUTOSCALERS).await?;
        let mut versions = items(&definition["spec"]["versions"]);
        let served = versions.position(|version| version["name"] == "v1");
        let modes = format!(
            "/spec/versions/{}/schema/openAPIV3Schema/properties/spec/properties/updatePolicy/properties/updateMode/enum",
            served.context("no v1")?
        );
        let known = json!(["Off", "Initial", "Recreate", "Auto"]);
        api.replace(AUTOSCALERS, &modes, &known).await?;
        eventually("the newest mode is refused", async || {
            let refused = dry_run(api, &newest).await.err().context("it is taken")?;
            ensure!(
                format!("{refused:#}").contains("Unsupported value"),
                "{refused:#}"
            );
            Ok(())
        })
        .await?;
        dry_run(api, &default).await?;
        dry_run(api, get(&overlay("everything")?, key)?).await?;
        for known in ["Off", "Initial", "Auto"] {
            dry_run(api, &mode(known)?).await?;
        }
        Ok(())
    })
}
