//! What happens at a write: checks, server-set fields, a new revision.

use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Preconditions;
use parking_lot::MutexGuard;
use serde_json::{Value, json};

use super::{
    Change, REQUEST, Seen, Source, State, Store,
    admission::{admit, finish, has_no_finalizers, set_type, wish},
};
use crate::api::{
    object::{Object, merge},
    requests::Record,
    resource::Resource,
    status::{ApiError, already_exists, bad_request, failed_precondition},
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
    /// The scale path.
    Scale,
}

impl Store {
    pub(crate) fn create_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut value: Value,
        source: Source,
    ) -> Result<Arc<Object>, ApiError> {
        let state = self.lock();
        set_type(resource, &mut value)?;
        let number = state.revision + 1;
        let text = |key: &str| {
            value["metadata"][key]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let name = text("name");
        if !text("resourceVersion").is_empty() {
            return Err(bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let namespace = if resource.namespaced { namespace } else { "" };
        let metadata = json!({"name": name, "namespace": resource.namespaced.then_some(namespace),
            "uid": format!("00000000-0000-4000-8000-{number:012x}"), "creationTimestamp": now(),
            "generation": resource.has_generation().then_some(1)});
        merge(&mut value, &json!({"metadata": metadata}));
        if source == Source::Client && resource.status {
            merge(&mut value, &json!({"status": null}));
        }
        finish(resource, &name, &mut value)?;
        if state.found(resource, namespace, &name).is_ok() {
            return Err(already_exists(resource, &name));
        }
        Ok(self.commit(state, resource, None, value, false, source))
    }

    /// Changes a part of an object.
    pub(crate) fn update_in(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        part: Part,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Object>, ApiError> {
        let state = self.lock();
        let old = state.found(resource, namespace, name)?;
        let mut value = old.value.clone();
        change(&mut value);
        let mut value = admit(resource, &old, value, part)?;
        finish(resource, name, &mut value)?;
        if value == old.value {
            return Ok(old);
        }
        if resource.has_generation() && wish(resource, &value) != wish(resource, &old.value) {
            let generation = old.value["metadata"]["generation"]
                .as_i64()
                .unwrap_or_default()
                + 1;
            value["metadata"]["generation"] = json!(generation);
        }
        // A deletion that waited for finalizers ends with the last of them.
        let waited = !old.value["metadata"]["deletionTimestamp"].is_null()
            && !has_no_finalizers(&old.value["metadata"]);
        let gone = waited && has_no_finalizers(&value["metadata"]);
        let source = if part == Part::Everything {
            Source::Test
        } else {
            Source::Client
        };
        Ok(self.commit(state, resource, Some(old), value, gone, source))
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
        let state = self.lock();
        let old = state.found(resource, namespace, name)?;
        let Preconditions {
            uid,
            resource_version,
        } = preconditions;
        for (what, wanted, is) in [
            ("UID", uid, old.metadata("uid")),
            (
                "ResourceVersion",
                resource_version,
                old.revision.to_string().as_str(),
            ),
        ] {
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
                return Err(failed_precondition(resource, name, what, wanted, is));
            }
        }
        let mut value = old.value.clone();
        let gone = has_no_finalizers(&value["metadata"]);
        if !gone && !value["metadata"]["deletionTimestamp"].is_null() {
            return Ok((old, false));
        }
        if !gone {
            value["metadata"]["deletionTimestamp"] = json!(now());
        }
        Ok((
            self.commit(state, resource, Some(old), value, gone, source),
            gone,
        ))
    }

    /// Makes a new version, or of `before` the last one, and tells those who wait: under the lock,
    /// so that revisions are announced in order.
    fn commit(
        &self,
        mut state: MutexGuard<'_, State>,
        resource: &Arc<Resource>,
        before: Option<Arc<Object>>,
        mut value: Value,
        deleted: bool,
        source: Source,
    ) -> Arc<Object> {
        let revision = state.revision + 1;
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let after = Arc::new(Object::new(resource.clone(), revision, value));
        let key = (
            after.metadata("namespace").to_owned(),
            after.metadata("name").to_owned(),
        );
        let objects = state.objects_mut(resource);
        if deleted {
            objects.remove(&key)
        } else {
            objects.insert(key, after.clone())
        };
        state.revision = revision;
        if let Some(observer) = self.shared.observer.get() {
            let before = before.as_ref().map(|before| &before.value);
            let request = REQUEST.try_with(Record::clone).ok();
            observer(&Seen {
                resource,
                before,
                after: &after.value,
                deleted,
                source,
                request: request.as_ref(),
            });
        }
        state.history.push_back(Change {
            revision,
            before,
            after: after.clone(),
            deleted,
        });
        while state.history.len() > self.shared.history {
            state.compacted = state
                .history
                .pop_front()
                .map_or(state.compacted, |change| change.revision);
        }
        self.shared.revision.send_replace(revision);
        after
    }
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}
