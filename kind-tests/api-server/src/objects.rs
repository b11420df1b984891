//! Requests for objects and collections.

use kube_core::Status;
use serde_json::{Value, json};

use crate::{
    content::{JSON, MERGE_PATCH, Received, read_json},
    object::{merge, metadata},
    reply::ApiAnswer,
    route::{ApiTarget, IncomingRequest},
    scale,
    shared::ServerState,
    status::{self, ApiError, bad_request, nowhere, of_code, other_uid},
    store::Store,
    watching,
};

pub(crate) fn serve(
    shared: &ServerState,
    request: &IncomingRequest,
    target: &ApiTarget,
    body: Received,
) -> Result<ApiAnswer, ApiError> {
    let ApiTarget {
        resource,
        namespace,
        name,
        subresource,
        ..
    } = target;
    let (store, verb) = (&shared.store, request.record.verb.as_str());
    let is_everywhere = namespace.is_empty() && matches!(verb, "list" | "watch");
    let is_served = match subresource.as_str() {
        "" => true,
        "scale" => resource.scale && !name.is_empty(),
        _ => false,
    };
    if !is_served || !is_everywhere && resource.namespaced == namespace.is_empty() {
        return Err(nowhere());
    }
    if !request.query.get("dryRun").is_empty() {
        return Err(bad_request("dry runs are not offered here"));
    }
    let read = |media_type| read_json(&request.headers, media_type, body);
    Ok(match (verb, subresource.as_str()) {
        ("list", _) => {
            let query = request.query.list(target)?;
            match shared.computed.page(resource, &query) {
                Some(page) => ApiAnswer::Messages(resource.clone(), page),
                None => ApiAnswer::List(resource.clone(), store.page(resource, &query)?),
            }
        }
        ("watch", "") => {
            let list = request.query.list(target)?;
            ApiAnswer::Watch(watching::watch(shared, resource, &request.query, list)?)
        }
        ("get", "scale") => {
            let object = store.get_object(resource, namespace, name)?;
            ApiAnswer::Json(200, scale::read(&object)?)
        }
        ("get", _) => ApiAnswer::Object(200, store.get_object(resource, namespace, name)?),
        ("create", "") if name.is_empty() => {
            let client = Some(&request.record);
            let created = store.create_in(resource, namespace, read(JSON)?, client)?;
            ApiAnswer::Object(201, created)
        }
        ("update", _) if !name.is_empty() => {
            let sent = read(JSON)?;
            let is_new = resource.creates_on_update()
                && store.get_object(resource, namespace, name).is_err();
            if is_new {
                return create_by_update(store, request, target, sent);
            }
            change(store, request, target, |object| *object = sent)?
        }
        ("patch", _) if !name.is_empty() => {
            let patch = read(MERGE_PATCH)?;
            change(store, request, target, |object| merge(object, &patch))?
        }
        ("delete", "") => delete(store, request, target, read(JSON)?)?,
        _ => {
            let why = "the server does not allow this method on the requested resource";
            return Err(of_code(405, why));
        }
    })
}

/// Creates what an update is of and isn't there, whatever version that names, but for another UID.
fn create_by_update(
    store: &Store,
    request: &IncomingRequest,
    target: &ApiTarget,
    mut sent: Value,
) -> Result<ApiAnswer, ApiError> {
    let (resource, record) = (&target.resource, &request.record);
    let uid = metadata(&sent, "uid");
    if !uid.is_empty() {
        return Err(other_uid(resource, &target.name, uid, ""));
    }
    merge(&mut sent, &json!({"metadata": {"resourceVersion": null}}));
    let created = store.create_in(resource, &target.namespace, sent, Some(record))?;
    Ok(ApiAnswer::Object(201, created))
}

/// Changes an object or its scale.
fn change(
    store: &Store,
    request: &IncomingRequest,
    target: &ApiTarget,
    change: impl FnOnce(&mut Value),
) -> Result<ApiAnswer, ApiError> {
    let (resource, record) = (&target.resource, &request.record);
    let (namespace, name) = (&target.namespace, &target.name);
    if target.subresource == "scale" {
        let scale = scale::write(store, resource, namespace, name, record, change)?;
        return Ok(ApiAnswer::Json(200, scale));
    }
    let changed = store.update_in(resource, namespace, name, Some(record), change)?;
    Ok(ApiAnswer::Object(200, changed))
}

fn delete(
    store: &Store,
    request: &IncomingRequest,
    target: &ApiTarget,
    mut options: Value,
) -> Result<ApiAnswer, ApiError> {
    let (resource, name) = (&target.resource, &target.name);
    let preconditions = options["preconditions"].take();
    let preconditions = serde_json::from_value(preconditions).unwrap_or_default();
    let client = Some(&request.record);
    let object = store.delete_in(resource, &target.namespace, name, &preconditions, client)?;
    // Of a pod the answer is the pod.
    if resource.kind == "Pod" {
        return Ok(ApiAnswer::Object(200, object));
    }
    let mut details = status::details(&resource.group, &resource.plural, name);
    object.metadata("uid").clone_into(&mut details.uid);
    let success = Status::success().with_details(details);
    Ok(ApiAnswer::Json(200, status::body(&success)))
}
