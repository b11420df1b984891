//! What rendered objects meet in a seed: the resource definitions and the class that Gardener
//! brings, and a strict API server.

use anyhow::Result;
use serde_json::{Value, json};
use testbed::gardener::namespace;
use testbed::go_programs::built;
use testbed::objects::{collection, name};
use testbed::{KubeApi, eventually};

/// Pods of the namespace must meet the restricted standard.
const RESTRICTED: &str = r#"{"metadata": {"labels":
    {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}}}"#;
/// Gardener's priority class.
const CLASS: &str = r#"{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
    "metadata": {"name": "gardener-system-800"}, "value": 999998800}"#;

/// Brings in what the objects refer to: the namespace garden; Gardener's priority class; the
/// resource definitions of Prometheus' operator and the vertical pod autoscaler, in Gardener's
/// versions.
///
/// # Errors
/// When the API server refuses.
pub async fn furnish(api: &KubeApi) -> Result<()> {
    let garden = "/api/v1/namespaces/garden";
    api.create(&namespace("garden")).await?;
    api.merge(garden, &serde_json::from_str(RESTRICTED)?)
        .await?;
    api.create(&serde_json::from_str(CLASS)?).await?;
    for file in std::fs::read_dir(built("gardenlet")?.join("definitions"))? {
        let text = std::fs::read_to_string(file?.path())?;
        let definition: Value = serde_saphyr::from_str(&text)?;
        api.create(&definition).await?;
        let (plural, group) = name(&definition).split_once('.').unwrap_or_default();
        let collection = format!("/apis/{group}/v1/{plural}");
        let served = async || api.get(&collection).await;
        eventually("the resources are served", served).await?;
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
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
    (pod["metadata"], pod["spec"]) = (template["metadata"].clone(), template["spec"].clone());
    pod["metadata"]["name"] = format!("{}-0", name(deployment)).into();
    pod["metadata"]["namespace"] = deployment["metadata"]["namespace"].clone();
    pod
}
