//! What rendered objects meet in a seed: the resource definitions and the class that Gardener
//! brings, and a strict API server.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::gardener::namespace;
use testbed::objects::collection;
use testbed::{KubeApi, eventually};

use crate::tools::definitions;

/// Brings in what the objects refer to: the namespace garden, in which pods must meet the
/// restricted standard; Gardener's priority class; the resource definitions of Prometheus' operator
/// and the vertical pod autoscaler, in Gardener's versions.
///
/// # Errors
/// When the API server refuses.
pub async fn furnish(api: &KubeApi) -> Result<()> {
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
    });
    api.create(&namespace("garden")).await?;
    api.merge(
        "/api/v1/namespaces/garden",
        &json!({"metadata": {"labels": labels}}),
    )
    .await?;
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gardener-system-800"}, "value": 999_998_800});
    api.create(&class).await?;
    for definition in definitions()? {
        api.create(&definition).await?;
        let text = |pointer: &str| {
            definition
                .pointer(pointer)
                .and_then(Value::as_str)
                .with_context(|| pointer.to_owned())
        };
        let collection = format!(
            "/apis/{}/v1/{}",
            text("/spec/group")?,
            text("/spec/names/plural")?
        );
        eventually("the resources are served", async || {
            api.get(&collection).await
        })
        .await?;
    }
    Ok(())
}

/// Lets the API server do all that a creation takes but the storing; unknown and doubled fields are
/// errors.
///
/// # Errors
/// When the API server would refuse the object.
pub async fn dry_run(api: &KubeApi, object: &Value) -> Result<Value> {
    let path = collection(object)?;
    api.post(&format!("{path}?dryRun=All&fieldValidation=Strict"), object)
        .await
}

/// The pod that a Deployment makes.
pub fn pod(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    let mut metadata = template["metadata"].clone();
    metadata["name"] = format!(
        "{}-0",
        deployment["metadata"]["name"].as_str().unwrap_or_default()
    )
    .into();
    metadata["namespace"] = deployment["metadata"]["namespace"].clone();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}
