//! What happens at a write: checks, server-set fields, a new revision.

use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

use super::{
    Change, Source, State, Store,
    admission::{admit, finish, has_no_finalizers, set_type, wish},
};
use crate::api::{
    object::{Object, child},
    resource::Resource,
    status::ApiError,
};

/// Which part of an object an update may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All: the test's own writes.
    Everything,
    /// A client's PUT to the object itself.
    Replace,
    /// A client's PATCH of the object itself.
    Patch,
    /// The status path.
    Status,
}

/// What must hold for a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

impl Store {
    pub(crate) fn create_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut value: Value,
        source: Source,
    ) -> Result<Arc<Object>, ApiError> {
        let mut state = self.lock();
        set_type(resource, &mut value)?;
        let number = state.revision + 1;
        let metadata = child(&mut value, "metadata");
        if metadata.get("name").and_then(Value::as_str).is_none_or(str::is_empty)
            && let Some(prefix) = metadata.get("generateName").and_then(Value::as_str)
        {
            let made = format!("{prefix}{number:05x}");
            metadata.insert("name".to_owned(), json!(made));
        }
        if metadata.get("resourceVersion").and_then(Value::as_str).is_some_and(|version| !version.is_empty()) {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if resource.namespaced {
            metadata.insert("namespace".to_owned(), json!(namespace));
        } else {
            metadata.remove("namespace");
        }
        metadata.insert("uid".to_owned(), json!(format!("00000000-0000-4000-8000-{number:012x}")));
        metadata.insert("creationTimestamp".to_owned(), json!(now()));
        if resource.generation {
            metadata.insert("generation".to_owned(), json!(1));
        }
        if source == Source::Client && resource.status && !resource.status_on_create {
            value.as_object_mut().map(|fields| fields.remove("status"));
        }
        finish(resource, &name, &mut value)?;
        let key = (if resource.namespaced { namespace.to_owned() } else { String::new() }, name.clone());
        if state.table(resource)?.objects.contains_key(&key) {
            return Err(ApiError::already_exists(resource, &name));
        }
        let written = state.write(resource, None, value, false, self.shared.history)?;
        self.announce(&state, source);
        Ok(written)
    }

    /// Replaces an object by what `change` makes of it.
    pub(crate) fn update_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        part: Part,
        change: impl FnOnce(&Value) -> Result<Value, ApiError>,
    ) -> Result<Arc<Object>, ApiError> {
        let mut state = self.lock();
        let found = state.table(resource)?.objects.get(&(namespace.to_owned(), name.to_owned())).cloned();
        let old = found.ok_or_else(|| ApiError::not_found(resource, name))?;
        let mut value = admit(resource, &old, change(&old.value)?, part)?;
        finish(resource, name, &mut value)?;
        if value == old.value {
            return Ok(old);
        }
        if resource.generation && wish(resource, &value) != wish(resource, &old.value) {
            let generation = old.value["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            value["metadata"]["generation"] = json!(generation);
        }
        // A deletion that waited for finalizers ends with the last of them.
        let waited = !old.value["metadata"]["deletionTimestamp"].is_null() && !has_no_finalizers(&old.value["metadata"]);
        let gone = waited && has_no_finalizers(&value["metadata"]);
        let written = state.write(resource, Some(old), value, gone, self.shared.history)?;
        self.announce(&state, if part == Part::Everything { Source::Test } else { Source::Client });
        Ok(written)
    }

    /// Deletes an object or, if it has finalizers, marks it. Tells whether it is gone.
    pub(crate) fn delete_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        source: Source,
    ) -> Result<(Arc<Object>, bool), ApiError> {
        let mut state = self.lock();
        let found = state.table(resource)?.objects.get(&(namespace.to_owned(), name.to_owned())).cloned();
        let old = found.ok_or_else(|| ApiError::not_found(resource, name))?;
        let unlike = |wanted: &Option<String>, is: &str| wanted.as_deref().is_some_and(|wanted| wanted != is);
        if unlike(&preconditions.uid, old.uid()) {
            let wanted = preconditions.uid.as_deref().unwrap_or_default();
            let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {}", old.uid());
            return Err(ApiError::conflict(resource, name, &why));
        }
        if unlike(&preconditions.resource_version, &old.revision.to_string()) {
            let wanted = preconditions.resource_version.as_deref().unwrap_or_default();
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {}",
                old.revision
            );
            return Err(ApiError::conflict(resource, name, &why));
        }
        let mut value = old.value.clone();
        let gone = has_no_finalizers(&value["metadata"]);
        if !gone && !value["metadata"]["deletionTimestamp"].is_null() {
            return Ok((old, false));
        }
        if !gone {
            value["metadata"]["deletionTimestamp"] = json!(now());
        }
        let written = state.write(resource, Some(old), value, gone, self.shared.history)?;
        self.announce(&state, source);
        Ok((written, gone))
    }

    /// Tells those who wait; called under the lock, so that revisions are announced in order.
    fn announce(&self, state: &State, source: Source) {
        self.shared.revision.send_replace(state.revision);
        if let (Some(observer), Some(change)) = (self.shared.observer.get(), state.history.back()) {
            observer.see(change, source);
        }
    }
}

impl State {
    fn write(
        &mut self,
        resource: &Arc<Resource>,
        before: Option<Arc<Object>>,
        mut value: Value,
        deleted: bool,
        kept: usize,
    ) -> Result<Arc<Object>, ApiError> {
        let revision = self.revision + 1;
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let after = Arc::new(Object::new(resource.clone(), revision, value));
        let table = self.table_mut(resource)?;
        let key = (after.namespace().to_owned(), after.name().to_owned());
        if deleted {
            table.objects.remove(&key);
        } else {
            table.objects.insert(key, after.clone());
        }
        self.revision = revision;
        self.history.push_back(Change { revision, before, after: after.clone(), deleted });
        while self.history.len() > kept {
            self.compacted = self.history.pop_front().map_or(self.compacted, |change| change.revision);
        }
        Ok(after)
    }
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}
