//! Rendered Kubernetes objects.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::kube_api::KubeApi;

/// Objects by kind, namespace and name, such as `Role garden/gardener.cloud:dependency-watchdog-prober`.
pub type Objects = BTreeMap<String, Value>;

/// Reads a stream of YAML documents.
///
/// # Errors
/// When it is none, or an object is there twice.
pub fn read(text: &str) -> Result<Objects> {
    let mut objects = Objects::new();
    for object in serde_saphyr::from_multiple::<Value>(text)? {
        if object.is_null() {
            continue;
        }
        let key = key(&object)?;
        ensure!(objects.insert(key.clone(), object).is_none(), "{key} is there twice");
    }
    Ok(objects)
}

/// An object's kind, namespace and name.
///
/// # Errors
/// When it has no kind or name.
pub fn key(object: &Value) -> Result<String> {
    let kind = object["kind"].as_str().with_context(|| format!("no kind: {object}"))?;
    let name = object["metadata"]["name"].as_str().with_context(|| format!("no name: {object}"))?;
    let namespace = object["metadata"]["namespace"].as_str().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    Ok(format!("{kind} {namespace}{name}"))
}

/// One of them.
///
/// # Errors
/// When it is not among them.
pub fn get<'a>(objects: &'a Objects, key: &str) -> Result<&'a Value> {
    objects.get(key).with_context(|| format!("no {key} among {:#?}", objects.keys()))
}

/// The collection that an object belongs into, found by discovery.
///
/// # Errors
/// When the API server does not serve its kind.
pub async fn collection(api: &KubeApi, object: &Value) -> Result<String> {
    let version = object["apiVersion"].as_str().context("no apiVersion")?;
    let base = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let served = api.get(&base).await?;
    let resources = served["resources"].as_array().context("no resources")?;
    let found = resources
        .iter()
        .find(|resource| resource["kind"] == object["kind"] && !resource["name"].as_str().unwrap_or_default().contains('/'));
    let plural = found.and_then(|resource| resource["name"].as_str());
    let plural = plural.with_context(|| format!("{base} does not serve {}", object["kind"]))?;
    Ok(match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
        None => format!("{base}/{plural}"),
    })
}
