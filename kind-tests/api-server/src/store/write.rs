//! What happens at a write: checks, server-set fields, a new revision, and the observer's notice.

use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use parking_lot::MutexGuard;
use serde_json::{Value, json};

use super::{Store, StoreState, StoredChange, key};
use crate::{
    object::{merge, metadata},
    requests::Record,
    resource::Resource,
    status::{ApiError, Named, bad_request},
};

/// Fields of the metadata that stay as they are.
const FIXED: [&str; 5] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
];

/// One write.
#[derive(Clone, Copy, Debug)]
pub struct ObservedWrite<'a> {
    /// Of what resource.
    pub resource: &'a Resource,
    /// The object before; none when it was created.
    pub before: Option<&'a Value>,
    /// The object as written; of a deletion, as it was last.
    pub after: &'a Value,
    /// Whether it is gone.
    pub deleted: bool,
    /// The client's request; none for the test's own writes.
    pub request: Option<&'a Record>,
}

pub(super) type Observer = dyn Fn(&ObservedWrite<'_>) + Send + Sync;

impl Store {
    /// From now on notifies `observer` of every write, in order; there is one observer at most, the
    /// first. It is called while the store is locked, so it must be quick and must not use the
    /// store.
    pub fn observe(&self, observer: impl Fn(&ObservedWrite<'_>) + Send + Sync + 'static) {
        // An observer that is there already stays.
        self.shared.observer.set(Box::new(observer)).ok();
    }

    /// Creates an object for a client, or for the test.
    pub(crate) fn create_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut value: Value,
        client: Option<&Record>,
    ) -> Result<Arc<Value>, ApiError> {
        let state = self.lock();
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let name = metadata(&value, "name").to_owned();
        let set = json!({"name": name, "namespace": resource.namespaced.then_some(namespace),
            "uid": format!("00000000-0000-4000-8000-{:012x}", self.revision() + 1), "creationTimestamp": now});
        complete(resource, &mut value, set)?;
        if state.tables[resource].contains_key(&key(&value)) {
            let named = Named::by_plural(resource, &name);
            let mut error = named.error(409, |object| format!("{object} already exists"));
            error.reason = "AlreadyExists".to_owned();
            return Err(error);
        }
        Ok(self.commit(state, resource, None, Some(value), client))
    }

    /// Changes an object for a client, which may only change the version that it names, or for the
    /// test, which may change any.
    pub(crate) fn update_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        client: Option<&Record>,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, ApiError> {
        let state = self.lock();
        let old = state.found(resource, namespace, name)?;
        let mut value = Value::clone(&old);
        change(&mut value);
        if let Some(client) = client {
            check(resource, &old, &value, client)?;
        }
        let fixed = FIXED.map(|key| (key.to_owned(), old["metadata"][key].clone()));
        complete(resource, &mut value, Value::from_iter(fixed))?;
        if value == *old {
            return Ok(old);
        }
        if client.is_some_and(Record::is_dry_run) {
            return Ok(Arc::new(value));
        }
        Ok(self.commit(state, resource, Some(old), Some(value), client))
    }

    /// Deletes an object, and returns what it was last.
    pub(crate) fn delete_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        preconditions: &Value,
        client: Option<&Record>,
    ) -> Result<Arc<Value>, ApiError> {
        let state = self.lock();
        let old = state.found(resource, namespace, name)?;
        for (field, key, happened) in [
            ("UID", "uid", "deleted and then recreated"),
            ("ResourceVersion", "resourceVersion", "modified"),
        ] {
            let is = metadata(&old, key);
            let wanted = preconditions[key].as_str().unwrap_or(is);
            if wanted != is {
                return Err(Named::by_kind(resource, name).conflict(&format!(
                    "the {field} in the precondition ({wanted}) does not match the {field} in record ({is}). The object might have been {happened}"
                )));
            }
        }
        Ok(self.commit(state, resource, Some(old), None, client))
    }

    /// Makes a new version, or without a value of `before` the last one, and notifies those who
    /// wait: under the lock, so that revisions are announced in order.
    fn commit(
        &self,
        mut state: MutexGuard<'_, StoreState>,
        resource: &Arc<Resource>,
        before: Option<Arc<Value>>,
        value: Option<Value>,
        client: Option<&Record>,
    ) -> Arc<Value> {
        let (revision, deleted) = (self.revision() + 1, value.is_none());
        let last = || before.as_deref().cloned();
        let mut value = value.or_else(last).unwrap_or_default();
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let after = Arc::new(value);
        let table = state.tables.entry(resource.clone()).or_default();
        if deleted {
            table.remove(&key(&after));
        } else {
            table.insert(key(&after), after.clone());
        }
        if let Some(observer) = self.shared.observer.get() {
            observer(&ObservedWrite {
                resource,
                before: before.as_deref(),
                after: &after,
                deleted,
                request: client,
            });
        }
        state.history.push_back(StoredChange {
            resource: resource.clone(),
            revision,
            before,
            after: after.clone(),
            deleted,
        });
        while state.history.len() > self.shared.history
            && let Some(forgotten) = state.history.pop_front()
        {
            state.compacted = forgotten.revision;
        }
        self.shared.revision.set(revision);
        after
    }
}

/// Checks what a client has sent against the version that it replaces.
fn check(resource: &Resource, old: &Value, new: &Value, client: &Record) -> Result<(), ApiError> {
    let name = &client.name;
    let by_plural = Named::by_plural(resource, name);
    let [uid, version] = ["uid", "resourceVersion"].map(|key| metadata(new, key));
    if version.is_empty() && client.verb == "update" {
        let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
        return Err(by_plural.invalid(why));
    }
    if !version.is_empty() && version != metadata(old, "resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(by_plural.conflict(why));
    }
    if !uid.is_empty() && uid != metadata(old, "uid") {
        let why = format!("metadata.uid: Invalid value: {uid:?}: field is immutable");
        return Err(Named::by_kind(resource, name).invalid(&why));
    }
    Ok(())
}

/// Puts the type into what was sent, and the metadata that only the server sets. Empty maps go.
fn complete(resource: &Resource, value: &mut Value, set: Value) -> Result<(), ApiError> {
    if !value.is_object() {
        let why = "the object provided is unrecognized: it is not a JSON object";
        return Err(bad_request(why));
    }
    let (version, kind) = (&resource.api_version, &resource.kind);
    merge(
        value,
        &json!({"apiVersion": version, "kind": kind, "metadata": set}),
    );
    for key in ["labels", "annotations"] {
        if value["metadata"][key] == json!({}) {
            merge(value, &json!({"metadata": {key: null}}));
        }
    }
    Ok(())
}
