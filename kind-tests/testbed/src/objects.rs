//! Kubernetes objects as YAML and JSON.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kube::Resource;
use kube::core::{ApiResource, DynamicObject, GroupVersion, TypeMeta};
use serde::Deserialize;
use serde_json::Value;

/// Objects by kind, namespace and name, such as `Role
/// garden/gardener.cloud:dependency-watchdog-prober`.
pub type Manifests = BTreeMap<String, Value>;

/// The object that this YAML of a test describes.
pub fn object(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).expect("a test writes YAML")
}

/// The objects that these YAML documents of a test describe.
pub fn all(documents: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(documents).expect("a test writes YAML")
}

/// Reads a stream of YAML documents.
///
/// # Errors
/// When it is none, or an object is there twice.
pub fn read(text: &str) -> Result<Manifests> {
    let mut objects = Manifests::new();
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    documents.retain(|object| !object.is_null());
    for object in documents {
        let key = key(&object)?;
        let twice = objects.insert(key.clone(), object);
        ensure!(twice.is_none(), "{key} is there twice");
    }
    Ok(objects)
}

/// The name of an object; empty where it has none.
pub fn name(object: &Value) -> &str {
    metadata(object, "name")
}

/// A text of an object's metadata; empty where there is none.
pub fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The items of an array; none of anything else.
pub fn items(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

/// An object's kind, namespace and name.
///
/// # Errors
/// When it has no kind or name.
pub fn key(object: &Value) -> Result<String> {
    let (kind, name) = (object["kind"].as_str().unwrap_or_default(), name(object));
    ensure!(
        !kind.is_empty() && !name.is_empty(),
        "no kind or name: {object}"
    );
    Ok(match metadata(object, "namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    })
}

/// One of them.
///
/// # Errors
/// When it is not among them.
pub fn get<'a>(objects: &'a Manifests, key: &str) -> Result<&'a Value> {
    let object = objects.get(key);
    object.with_context(|| format!("no {key} among {:#?}", objects.keys()))
}

/// The collection that an object belongs into; kube knows the plurals of kinds.
///
/// # Errors
/// When it says no apiVersion or kind.
pub fn collection(object: &Value) -> Result<String> {
    let TypeMeta { api_version, kind } =
        TypeMeta::deserialize(object).with_context(|| object.to_string())?;
    let version: GroupVersion = api_version.parse()?;
    let resource = ApiResource::from_gvk(&version.with_kind(&kind));
    let namespace = object["metadata"]["namespace"].as_str();
    Ok(DynamicObject::url_path(&resource, namespace))
}

/// Where an object is.
///
/// # Errors
/// When it says no apiVersion, kind or name.
pub fn path(object: &Value) -> Result<String> {
    ensure!(!name(object).is_empty(), "no name: {object}");
    Ok(format!("{}/{}", collection(object)?, name(object)))
}
