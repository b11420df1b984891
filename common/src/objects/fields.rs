//! Readers of single fields of objects, for serde's `deserialize_with`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::read;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KnownMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

/// Reads what matters of an object's metadata. Left out are above all the `managedFields`, which
/// repeat all fields of the object, as deep as they are.
///
/// # Errors
/// When a field is of a wrong type.
pub fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let known = KnownMetadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: known.name,
        namespace: known.namespace,
        uid: known.uid,
        resource_version: known.resource_version,
        deletion_timestamp: known.deletion_timestamp,
        labels: known.labels,
        annotations: known.annotations,
        owner_references: known.owner_references,
        ..ObjectMeta::default()
    })
}

/// Reads a field apart from its object: one that is wrong is the error of the field alone.
///
/// # Errors
/// When it is no JSON.
pub fn apart<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Result<T, String>, D::Error> {
    let value = <&RawValue>::deserialize(deserializer)?;
    Ok(read(value.get()))
}

/// Reads a field whose value counts for nothing where it is wrong.
///
/// # Errors
/// When it is no JSON.
pub fn if_readable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(apart(deserializer)?.unwrap_or_default())
}
