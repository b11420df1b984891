//! A real API server would take every rendered object, and the restricted standard every pod. The
//! chart renders what overlays do.

use crate::cluster::{dry_run, furnish, pod};
use crate::tools::{chart, overlay, overlays};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::objects::get;
use testbed::{eventually, scenario};

#[test]
fn the_api_server_takes_every_object_and_every_pod_and_no_bad_one() -> Result<()> {
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
        let deployment = get(&objects, "Deployment garden/dependency-watchdog-prober")?;
        let mut lax = pod(deployment);
        lax["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
        let refused = dry_run(api, &lax)
            .await
            .err()
            .context("a pod against the standard is admitted")?;
        ensure!(format!("{refused:#}").contains("restricted"), "{refused:#}");
        let misspelt = [
            (
                "Deployment garden/dependency-watchdog-prober",
                "/spec/template/spec/priorityClass",
            ),
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
        ];
        for (key, pointer) in misspelt {
            let mut wrong = get(&objects, key)?.clone();
            let (parent, field) = pointer.rsplit_once('/').context("no field")?;
            wrong.pointer_mut(parent).context("no such place")?[field] = json!("x");
            let refused = dry_run(api, &wrong)
                .await
                .err()
                .with_context(|| format!("{key}: {pointer} is taken"))?;
            ensure!(
                format!("{refused:#}").contains("unknown field"),
                "{refused:#}"
            );
        }
        Ok(())
    })
}

/// Path of the definition of autoscalers.
const AUTOSCALERS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/verticalpodautoscalers.autoscaling.k8s.io";

#[test]
fn an_autoscaler_of_any_version_takes_the_default() -> Result<()> {
    scenario(async |bed| {
        let plane = bed.start_control_plane("autoscaler").await?;
        let api = plane.api();
        furnish(api).await?;
        let key = "VerticalPodAutoscaler garden/dependency-watchdog-weeder";
        let rendered = |set: &[&str]| -> Result<Value> {
            let on = ["--set=verticalPodAutoscaler.enabled=true"];
            Ok(get(&chart(&[&on, set].concat())?, key)?.clone())
        };
        let default = rendered(&[])?;
        let newest = rendered(&["--set=verticalPodAutoscaler.updateMode=InPlaceOrRecreate"])?;
        dry_run(api, &newest).await?;
        dry_run(api, &default).await?;
        // As up to 1.3.
        let versions = api.get(AUTOSCALERS).await?["spec"]["versions"].clone();
        let served = versions
            .as_array()
            .into_iter()
            .flatten()
            .position(|version| version["name"] == "v1");
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
        for mode in ["Off", "Initial", "Auto"] {
            dry_run(
                api,
                &rendered(&[&format!("--set=verticalPodAutoscaler.updateMode={mode}")])?,
            )
            .await?;
        }
        Ok(())
    })
}
