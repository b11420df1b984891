//! Requests for objects and collections.

use kube::core::Status;
use serde_json::Value;

use crate::api::{
    content::{JSON, MERGE_PATCH, Sent, read_json},
    object::merge,
    reply::Reply,
    route::{Asked, Target},
    scale,
    shared::Shared,
    status::{self, ApiError, bad_request, nowhere, of_code},
    store::{Part, Source},
    watching,
};

pub(crate) async fn serve(
    shared: &Shared,
    asked: &Asked,
    target: &Target,
    in_protobuf: bool,
    body: Sent,
) -> Result<Reply, ApiError> {
    let Target {
        resource,
        namespace,
        name,
        subresource,
    } = target;
    let (store, verb) = (&shared.store, asked.record.verb.as_str());
    let scoped = resource.namespaced && namespace.is_empty() && !matches!(verb, "list" | "watch");
    let served = match subresource.as_str() {
        "" => true,
        "scale" => resource.scale && !name.is_empty(),
        _ => false,
    };
    if !served || scoped || (!resource.namespaced && !namespace.is_empty()) {
        return Err(nowhere());
    }
    if !asked.query.get("dryRun").is_empty() {
        return Err(bad_request("dry runs are not offered here"));
    }
    match (verb, subresource.as_str()) {
        ("list", _) => {
            let query = asked.query.list(target)?;
            let computed = shared.computed.page(resource, &query, in_protobuf);
            computed.unwrap_or_else(|| {
                Ok(Reply::list(
                    resource,
                    &store.page(resource, &query)?,
                    in_protobuf,
                ))
            })
        }
        ("watch", "") => Ok(Reply::pieces(watching::watch(
            shared,
            resource,
            &asked.query,
            asked.query.list(target)?,
        )?)),
        ("get", "scale") => Ok(Reply::json(
            200,
            &scale::read(&*store.get_object(resource, namespace, name)?)?,
        )),
        ("get", _) => Ok(Reply::object(
            200,
            &*store.get_object(resource, namespace, name)?,
            in_protobuf,
        )),
        ("create", "") if name.is_empty() => {
            let sent = read_json(&asked.headers, JSON, body).await?;
            Ok(Reply::object(
                201,
                &*store.create_in(resource, namespace, sent, Source::Client)?,
                in_protobuf,
            ))
        }
        ("update" | "patch", _) if !name.is_empty() => {
            let is_patch = verb == "patch";
            let sent = read_json(
                &asked.headers,
                if is_patch { MERGE_PATCH } else { JSON },
                body,
            )
            .await?;
            let change = |object: &mut Value| {
                if is_patch {
                    merge(object, &sent)
                } else {
                    *object = sent
                }
            };
            let part = match subresource.as_str() {
                "scale" => {
                    return Ok(Reply::json(
                        200,
                        &scale::write(store, resource, namespace, name, change)?,
                    ));
                }
                _ if is_patch => Part::Patch,
                _ => Part::Replace,
            };
            Ok(Reply::object(
                200,
                &*store.update_in(resource, namespace, name, part, change)?,
                in_protobuf,
            ))
        }
        ("delete", "") => {
            let mut options = read_json(&asked.headers, JSON, body).await?;
            let preconditions =
                serde_json::from_value(options["preconditions"].take()).unwrap_or_default();
            let (object, gone) =
                store.delete_in(resource, namespace, name, &preconditions, Source::Client)?;
            if !gone {
                return Ok(Reply::object(200, &object, in_protobuf));
            }
            let mut details = status::details(&resource.group, &resource.plural, name);
            object.metadata("uid").clone_into(&mut details.uid);
            Ok(Reply::json(
                200,
                &status::body(&Status::success().with_details(details)),
            ))
        }
        _ => Err(of_code(
            405,
            "the server does not allow this method on the requested resource",
        )),
    }
}
