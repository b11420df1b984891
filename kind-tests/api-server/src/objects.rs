//! Requests for objects and collections.

use http::{HeaderMap, header};
use kube_core::Status;
use serde_json::Value;

use crate::{
    object::{merge, metadata},
    reply::{self, JSON, Reply, accepts_protobuf},
    route::{ApiTarget, IncomingRequest},
    shared::ServerState,
    status::{self, ApiError, bad_request, conflict, nowhere, of_code, other_uid},
    watching,
};

pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

pub(crate) fn serve(
    shared: &ServerState,
    request: &IncomingRequest,
    target: &ApiTarget,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let ApiTarget {
        resource,
        namespace,
        name,
        subresource,
        ..
    } = target;
    let (store, verb) = (&shared.store, request.record.verb.as_str());
    let is_everywhere = namespace.is_empty() && matches!(verb, "list" | "watch");
    if !subresource.is_empty() || !is_everywhere && resource.namespaced == namespace.is_empty() {
        return Err(nowhere());
    }
    let read = |media_type| read_json(&request.headers, media_type, body);
    let client = Some(&request.record);
    let (code, object) = match verb {
        "list" => {
            let query = request.query.list(target)?;
            let in_protobuf = accepts_protobuf(&request.headers);
            return Ok(match shared.computed.page(resource, &query) {
                Some(page) => reply::messages(resource, &page),
                None => reply::list(resource, store.page(resource, &query)?, in_protobuf),
            });
        }
        "watch" => {
            let list = request.query.list(target)?;
            let lines = watching::watch(shared, resource, &request.query, list);
            return Ok(reply::pieces(JSON, lines));
        }
        "get" => (200, store.get_object(resource, namespace, name)?),
        "create" => {
            let created = store.create_in(resource, namespace, read(JSON)?, client)?;
            (201, created)
        }
        "update" if resource.kind == "Lease" => {
            let sent = read(JSON)?;
            if store.get_object(resource, namespace, name).is_ok() {
                let replace = |object: &mut Value| *object = sent;
                (
                    200,
                    store.update_in(resource, namespace, name, client, replace)?,
                )
            } else {
                // It is created, whatever version it names, but for another UID.
                let uid = metadata(&sent, "uid");
                if !uid.is_empty() {
                    return Err(conflict(resource, name, &other_uid(uid, "")));
                }
                (201, store.create_in(resource, namespace, sent, client)?)
            }
        }
        "patch" => {
            let patch = read(MERGE_PATCH)?;
            let merge = |object: &mut Value| merge(object, &patch);
            (
                200,
                store.update_in(resource, namespace, name, client, merge)?,
            )
        }
        "delete" => {
            let mut options = read(JSON)?;
            let preconditions = options["preconditions"].take();
            let preconditions = serde_json::from_value(preconditions).unwrap_or_default();
            let object = store.delete_in(resource, namespace, name, &preconditions, client)?;
            // Of a pod the answer is the pod.
            if resource.kind != "Pod" {
                let details = status::details(&resource.group, &resource.plural, name);
                let success = Status::success().with_details(details);
                return Ok(reply::json(200, &status::body(&success)));
            }
            (200, object)
        }
        _ => {
            let why = "the server does not allow this method on the requested resource";
            return Err(of_code(405, why));
        }
    };
    Ok(reply::object(code, &object))
}

/// A body of this media type as JSON; an empty one is null.
pub(crate) fn read_json(headers: &HeaderMap, wanted: &str, body: &[u8]) -> Result<Value, ApiError> {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.and_then(|value| value.to_str().ok()).unwrap_or(JSON);
    let given = given.split(';').next().unwrap_or_default().trim();
    if given != wanted {
        let why = format!(
            "the body of the request was in an unknown format ({given}) - accepted media types include: {wanted}"
        );
        return Err(of_code(415, why));
    }
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let read = serde_json::from_slice(body);
    read.map_err(|error| bad_request(format!("the body of the request is no JSON: {error}")))
}
