//! What happens at a write: checks, server-set fields, a new revision.

use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Preconditions;
use parking_lot::MutexGuard;
use serde_json::{Value, json};

use super::{
    ObservedWrite, Store, StoreState, StoredChange,
    admission::{admit, leave_out_empty_maps, set_type},
    key,
};
use crate::{
    object::{StoredObject, merge, metadata},
    requests::Record,
    resource::Resource,
    status::{ApiError, already_exists, check_precondition},
};

impl Store {
    /// Creates an object for a client, or for the test.
    pub(crate) fn create_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut value: Value,
        client: Option<&Record>,
    ) -> Result<Arc<StoredObject>, ApiError> {
        let state = self.lock();
        set_type(resource, &mut value)?;
        let name = metadata(&value, "name").to_owned();
        let metadata = json!({"name": name, "namespace": resource.namespaced.then_some(namespace),
            "uid": format!("00000000-0000-4000-8000-{:012x}", state.revision + 1), "creationTimestamp": now()});
        merge(&mut value, &json!({"metadata": metadata}));
        leave_out_empty_maps(&mut value);
        if state.tables[resource].contains_key(&key(&value)) {
            return Err(already_exists(resource, &name));
        }
        Ok(self.commit(state, resource, None, value, false, client))
    }

    /// Changes the part of an object that a client's request is about, or for the test all of it.
    pub(crate) fn update_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        client: Option<&Record>,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<StoredObject>, ApiError> {
        let state = self.lock();
        let old = state.found(resource, namespace, name)?;
        let mut value = old.value.clone();
        change(&mut value);
        admit(resource, &old, &mut value, client)?;
        leave_out_empty_maps(&mut value);
        if value == old.value {
            return Ok(old);
        }
        if client.is_some_and(Record::is_dry_run) {
            return Ok(Arc::new(StoredObject::new(
                resource.clone(),
                old.revision,
                value,
            )));
        }
        Ok(self.commit(state, resource, Some(old), value, false, client))
    }

    /// Deletes an object, and returns what it was last.
    pub(crate) fn delete_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        client: Option<&Record>,
    ) -> Result<Arc<StoredObject>, ApiError> {
        let state = self.lock();
        let old = state.found(resource, namespace, name)?;
        let check = |field, wanted: &Option<String>, is: &str| {
            check_precondition(resource, name, field, wanted.as_deref(), is)
        };
        let version = old.revision.to_string();
        check("UID", &preconditions.uid, old.metadata("uid"))?;
        check("ResourceVersion", &preconditions.resource_version, &version)?;
        let value = old.value.clone();
        Ok(self.commit(state, resource, Some(old), value, true, client))
    }

    /// Makes a new version, or of `before` the last one, and notifies those who wait: under the
    /// lock, so that revisions are announced in order.
    fn commit(
        &self,
        mut state: MutexGuard<'_, StoreState>,
        resource: &Arc<Resource>,
        before: Option<Arc<StoredObject>>,
        mut value: Value,
        deleted: bool,
        client: Option<&Record>,
    ) -> Arc<StoredObject> {
        let revision = state.revision + 1;
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let after = Arc::new(StoredObject::new(resource.clone(), revision, value));
        let table = state.tables.entry(resource.clone()).or_default();
        if deleted {
            table.remove(&key(&after.value));
        } else {
            table.insert(key(&after.value), after.clone());
        }
        state.revision = revision;
        if let Some(observer) = self.shared.observer.get() {
            observer(&ObservedWrite {
                resource,
                before: before.as_ref().map(|before| &before.value),
                after: &after.value,
                deleted,
                request: client,
            });
        }
        state.history.push_back(StoredChange {
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

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}
