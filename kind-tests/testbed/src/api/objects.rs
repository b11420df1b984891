//! Requests for objects and collections.

use kube::core::Status;
use serde_json::Value;

use crate::api::{
    content::{JSON, MERGE_PATCH, Received, read_json},
    object::merge,
    reply::Answer,
    route::{ApiRequest, Target},
    scale,
    shared::Shared,
    status::{self, ApiError, bad_request, nowhere, of_code},
    watching,
};

pub(crate) fn serve(
    shared: &Shared,
    request: &ApiRequest,
    target: &Target,
    body: Received,
) -> Result<Answer, ApiError> {
    let Target {
        resource,
        namespace,
        name,
        subresource,
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
    let client = Some(&request.record);
    Ok(match (verb, subresource.as_str()) {
        ("list", _) => {
            let query = request.query.list(target)?;
            match shared.computed.page(resource, &query) {
                Some(page) => Answer::Messages(resource.clone(), page),
                None => Answer::List(resource.clone(), store.page(resource, &query)?),
            }
        }
        ("watch", "") => {
            let list = request.query.list(target)?;
            Answer::Watch(watching::watch(shared, resource, &request.query, list)?)
        }
        ("get", "scale") => {
            let object = store.get_object(resource, namespace, name)?;
            Answer::Json(200, scale::read(&object)?)
        }
        ("get", _) => Answer::Object(200, store.get_object(resource, namespace, name)?),
        ("create", "") if name.is_empty() => Answer::Object(
            201,
            store.create_in(resource, namespace, read(JSON)?, client)?,
        ),
        ("update" | "patch", _) if !name.is_empty() => {
            let is_patch = verb == "patch";
            let sent = read(if is_patch { MERGE_PATCH } else { JSON })?;
            let change = |object: &mut Value| match is_patch {
                true => merge(object, &sent),
                false => *object = sent,
            };
            if subresource == "scale" {
                let scale =
                    scale::write(store, resource, namespace, name, &request.record, change)?;
                Answer::Json(200, scale)
            } else {
                let written = store.update_in(resource, namespace, name, client, change)?;
                Answer::Object(200, written)
            }
        }
        ("delete", "") => {
            let preconditions = read(JSON)?["preconditions"].take();
            let preconditions = serde_json::from_value(preconditions).unwrap_or_default();
            let (object, is_gone) =
                store.delete_in(resource, namespace, name, &preconditions, client)?;
            if !is_gone {
                return Ok(Answer::Object(200, object));
            }
            let mut details = status::details(&resource.group, &resource.plural, name);
            object.metadata("uid").clone_into(&mut details.uid);
            Answer::Json(200, status::body(&Status::success().with_details(details)))
        }
        _ => {
            return Err(of_code(
                405,
                "the server does not allow this method on the requested resource",
            ));
        }
    })
}
