//! What rendered objects meet in a seed: resource definitions, the class that Gardener brings, and a strict API server.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use testbed::objects::collection;
use testbed::{KubeApi, eventually};

/// Brings in what the objects refer to: the namespace garden, in which pods must meet the restricted standard; Gardener's
/// priority class; stand-ins for the resource definitions of Prometheus' operator and the vertical pod autoscaler, which know
/// the fields that we use and no others.
///
/// # Errors
/// When the API server refuses.
pub async fn furnish(api: &KubeApi) -> Result<()> {
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
    });
    api.create("/api/v1/namespaces", &json!({"metadata": {"name": "garden"}})).await?;
    api.merge("/api/v1/namespaces/garden", &json!({"metadata": {"labels": labels}})).await?;
    let class = json!({"metadata": {"name": "gardener-system-800"}, "value": 999_998_800});
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    for definition in [service_monitors(), prometheus_rules(), vertical_pod_autoscalers()] {
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
    }
    for served in ["monitoring.coreos.com/v1/servicemonitors", "monitoring.coreos.com/v1/prometheusrules"] {
        serves(api, served).await?;
    }
    serves(api, "autoscaling.k8s.io/v1/verticalpodautoscalers").await
}

async fn serves(api: &KubeApi, collection: &str) -> Result<()> {
    eventually("the stand-ins are served", Duration::from_secs(30), async || {
        api.get(&format!("/apis/{collection}")).await.map(drop)
    })
    .await
}

/// Lets the API server do all that a creation takes but the storing; unknown and doubled fields are errors.
///
/// # Errors
/// When the API server would refuse the object.
pub async fn dry_run(api: &KubeApi, object: &Value) -> Result<Value> {
    let path = collection(object)?;
    api.post(&format!("{path}?dryRun=All&fieldValidation=Strict"), object).await
}

/// The pod that a Deployment makes.
pub fn pod(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    let mut metadata = template["metadata"].clone();
    metadata["name"] = format!("{}-0", deployment["metadata"]["name"].as_str().unwrap_or_default()).into();
    metadata["namespace"] = deployment["metadata"]["namespace"].clone();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

fn definition(group: &str, plural: &str, kind: &str, spec: Value) -> Value {
    json!({
        "metadata": {
            "name": format!("{plural}.{group}"),
            // The group is protected; whoever tests says so.
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"},
        },
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "required": ["spec"], "properties": {"spec": spec},
            }}}],
        },
    })
}

fn object(properties: Value, required: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn service_monitors() -> Value {
    let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let duration = json!({"type": "string", "pattern": "^(0|([0-9]+(ms|s|m|h))+)$"});
    let endpoint = object(json!({"port": {"type": "string"}, "interval": duration}), json!(["port"]));
    let spec = json!({
        "selector": object(json!({"matchLabels": labels}), json!([])),
        "endpoints": {"type": "array", "items": endpoint},
    });
    definition("monitoring.coreos.com", "servicemonitors", "ServiceMonitor", object(spec, json!(["endpoints", "selector"])))
}

fn prometheus_rules() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let duration = json!({"type": "string", "pattern": "^(0|([0-9]+(ms|s|m|h))+)$"});
    let rule = object(
        json!({
            "alert": {"type": "string"}, "expr": {"type": "string"}, "for": duration, "labels": texts, "annotations": texts,
        }),
        json!(["expr"]),
    );
    let group =
        object(json!({"name": {"type": "string", "minLength": 1}, "rules": {"type": "array", "items": rule}}), json!(["name"]));
    let spec = object(json!({"groups": {"type": "array", "items": group}}), json!([]));
    definition("monitoring.coreos.com", "prometheusrules", "PrometheusRule", spec)
}

fn vertical_pod_autoscalers() -> Value {
    let text = json!({"type": "string"});
    let target = object(json!({"apiVersion": text, "kind": text, "name": text}), json!(["kind", "name"]));
    let mode = json!({"type": "string", "enum": ["Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto"]});
    let quantities = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let scaling = json!({"type": "string", "enum": ["Auto", "Off"]});
    let policy = object(json!({"containerName": text, "minAllowed": quantities, "mode": scaling}), json!([]));
    let spec = json!({
        "targetRef": target,
        "updatePolicy": object(json!({"updateMode": mode}), json!([])),
        "resourcePolicy": object(json!({"containerPolicies": {"type": "array", "items": policy}}), json!([])),
    });
    definition("autoscaling.k8s.io", "verticalpodautoscalers", "VerticalPodAutoscaler", object(spec, json!(["targetRef"])))
}
