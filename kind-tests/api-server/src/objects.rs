//! Requests for objects and collections.

use std::sync::Arc;

use kube_core::Status;
use serde_json::Value;

use crate::{
    object::{merge, metadata},
    protobuf,
    reply::{self, JSON, Reply},
    resource::Resource,
    route::IncomingRequest,
    shared::ServerState,
    status::{self, ApiError, Named, nowhere, of_code},
    watching,
};

pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

pub(crate) fn serve(
    shared: &ServerState,
    request: &IncomingRequest,
    resource: &Arc<Resource>,
) -> Result<Reply, ApiError> {
    let (store, record) = (&shared.store, &request.record);
    let (verb, namespace, name) = (record.verb.as_str(), &record.namespace, &record.name);
    let is_everywhere = namespace.is_empty() && matches!(verb, "list" | "watch");
    if !is_everywhere && resource.namespaced == namespace.is_empty() {
        return Err(nowhere());
    }
    let client = Some(record);
    let (code, object) = match verb {
        "list" => {
            let query = request.list()?;
            if let Some(page) = shared.computed.page(resource, &query) {
                return Ok(reply::messages(resource, &page.metadata, page.items));
            }
            let page = store.page(resource, &query)?;
            let items = page.items.iter();
            if request.accepts_protobuf() && protobuf::speaks(resource) {
                let items = items.map(|item| protobuf::encode(&resource.kind, item));
                return Ok(reply::messages(resource, &page.metadata, items));
            }
            return Ok(reply::list(resource, &page.metadata, items));
        }
        "watch" => {
            let lines = watching::watch(shared, resource, request, request.list()?.filter);
            return Ok(reply::pieces(JSON, lines));
        }
        "get" => (200, store.get_object(resource, namespace, name)?),
        "create" => {
            let sent = request.json(JSON)?;
            (201, store.create_in(resource, namespace, sent, client)?)
        }
        "update" if resource.kind == "Lease" => {
            let sent = request.json(JSON)?;
            if store.get_object(resource, namespace, name).is_ok() {
                let replace = |object: &mut Value| *object = sent;
                let updated = store.update_in(resource, namespace, name, client, replace)?;
                (200, updated)
            } else {
                // It is created, whatever version it names, but for another UID.
                let uid = metadata(&sent, "uid");
                if !uid.is_empty() {
                    return Err(Named::by_plural(resource, name).conflict(&format!(
                        "Precondition failed: UID in precondition: {uid}, UID in object meta: "
                    )));
                }
                (201, store.create_in(resource, namespace, sent, client)?)
            }
        }
        "patch" => {
            let patch = request.json(MERGE_PATCH)?;
            let merge = |object: &mut Value| merge(object, &patch);
            let patched = store.update_in(resource, namespace, name, client, merge)?;
            (200, patched)
        }
        "delete" => {
            let preconditions = &request.json(JSON)?["preconditions"];
            let object = store.delete_in(resource, namespace, name, preconditions, client)?;
            // Of a pod the answer is the pod.
            if resource.kind != "Pod" {
                let details = Named::by_plural(resource, name).details();
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
    Ok(reply::json(code, &object))
}
