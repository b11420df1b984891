//! Rendered Kubernetes objects.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kube::Resource;
use kube::core::{ApiResource, DynamicObject, GroupVersion};
use serde_json::Value;

/// Objects by kind, namespace and name, such as `Role
/// garden/gardener.cloud:dependency-watchdog-prober`.
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
        ensure!(
            objects.insert(key.clone(), object).is_none(),
            "{key} is there twice"
        );
    }
    Ok(objects)
}

/// An object's kind, namespace and name.
///
/// # Errors
/// When it has no kind or name.
pub fn key(object: &Value) -> Result<String> {
    let kind = object["kind"]
        .as_str()
        .with_context(|| format!("no kind: {object}"))?;
    let name = object["metadata"]["name"]
        .as_str()
        .with_context(|| format!("no name: {object}"))?;
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .map(|namespace| format!("{namespace}/"))
        .unwrap_or_default();
    Ok(format!("{kind} {namespace}{name}"))
}

/// One of them.
///
/// # Errors
/// When it is not among them.
pub fn get<'a>(objects: &'a Objects, key: &str) -> Result<&'a Value> {
    objects
        .get(key)
        .with_context(|| format!("no {key} among {:#?}", objects.keys()))
}

/// The collection that an object belongs into; kube knows the plurals of kinds.
///
/// # Errors
/// When it says no apiVersion or kind.
pub fn collection(object: &Value) -> Result<String> {
    let text = |key: &str| {
        object[key]
            .as_str()
            .with_context(|| format!("no {key}: {object}"))
    };
    let version: GroupVersion = text("apiVersion")?.parse()?;
    let resource = ApiResource::from_gvk(&version.with_kind(text("kind")?));
    Ok(DynamicObject::url_path(
        &resource,
        object["metadata"]["namespace"].as_str(),
    ))
}

/// Where an object is.
///
/// # Errors
/// When it says no apiVersion, kind or name.
pub fn path(object: &Value) -> Result<String> {
    let name = object["metadata"]["name"]
        .as_str()
        .with_context(|| format!("no name: {object}"))?;
    Ok(format!("{}/{name}", collection(object)?))
}
