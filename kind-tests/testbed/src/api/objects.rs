//! Requests for objects and collections.

use serde_json::{Value, json};

use crate::api::{
    asked::Asked,
    content::{Sent, json_content, patch_content, read_json},
    object::merge,
    reply::{Accepted, Reply},
    route::Target,
    scale,
    shared::Shared,
    status::ApiError,
    store::{Part, Preconditions, Source},
    watching::{self, WatchQuery},
};

pub(crate) async fn serve(
    shared: &Shared,
    asked: &Asked,
    target: &Target,
    accepted: Accepted,
    body: Sent,
) -> Result<Reply, ApiError> {
    let Target { resource, namespace, name, subresource } = target;
    let store = &shared.store;
    let scoped = resource.namespaced && namespace.is_empty() && !matches!(asked.record.verb.as_str(), "list" | "watch");
    let served = match subresource.as_str() {
        "" => true,
        "status" => resource.status && !name.is_empty(),
        "scale" => resource.scale.is_some() && !name.is_empty(),
        _ => false,
    };
    if !served || scoped || (!resource.namespaced && !namespace.is_empty()) {
        return Err(ApiError::nowhere());
    }
    if !asked.query.get("dryRun").is_empty() {
        return Err(ApiError::bad_request("dry runs are not offered here"));
    }
    match (asked.record.verb.as_str(), subresource.as_str()) {
        ("list", _) => {
            let query = asked.query.list(target)?;
            let computed = shared.computed.page(resource, &query, accepted);
            computed.unwrap_or_else(|| Ok(Reply::list(resource, &store.page(resource, &query)?, accepted)))
        }
        ("watch", "") => watch(shared, asked, target, accepted),
        ("get", "scale") => Ok(Reply::json(200, &scale::read(&*store.get_object(resource, namespace, name)?)?)),
        ("get", _) => Ok(Reply::object(200, &*store.get_object(resource, namespace, name)?, accepted)),
        ("create", "") if name.is_empty() => {
            json_content(&asked.headers)?;
            let object = store.create_in(resource, namespace, read_json(body).await?, Source::Client)?;
            Ok(Reply::object(201, &object, accepted))
        }
        ("update", "scale") => {
            json_content(&asked.headers)?;
            let change = scale::Change::Replace(read_json(body).await?);
            Ok(Reply::json(200, &scale::write(store, resource, namespace, name, change)?))
        }
        ("update", _) if !name.is_empty() => {
            json_content(&asked.headers)?;
            let new = read_json(body).await?;
            let part = if subresource == "status" { Part::Status } else { Part::Replace };
            Ok(Reply::object(200, &*store.update_in(resource, namespace, name, part, |_| Ok(new))?, accepted))
        }
        ("patch", _) if !name.is_empty() => {
            patch_content(&asked.headers)?;
            let patch = read_json(body).await?;
            if subresource == "scale" {
                return Ok(Reply::json(200, &scale::write(store, resource, namespace, name, scale::Change::Merge(patch))?));
            }
            let part = if subresource == "status" { Part::Status } else { Part::Patch };
            let merged = |old: &Value| {
                let mut new = old.clone();
                merge(&mut new, &patch);
                Ok(new)
            };
            Ok(Reply::object(200, &*store.update_in(resource, namespace, name, part, merged)?, accepted))
        }
        ("delete", "") => {
            let options = read_json(body).await?;
            let text = |key: &str| options["preconditions"][key].as_str().map(str::to_owned);
            let preconditions = Preconditions { uid: text("uid"), resource_version: text("resourceVersion") };
            let (object, gone) = store.delete_in(resource, namespace, name, &preconditions, Source::Client)?;
            if !gone {
                return Ok(Reply::object(200, &object, accepted));
            }
            let details = json!({"name": name, "group": resource.group, "kind": resource.plural, "uid": object.uid()});
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            Ok(Reply::json(200, &status))
        }
        ("deletecollection", "") => {
            let (_, objects) = store.matching(resource, &asked.query.list(target)?.filter)?;
            for object in objects {
                // One that is gone by now is what was asked for.
                store.delete_in(resource, object.namespace(), object.name(), &Preconditions::default(), Source::Client).ok();
            }
            Ok(Reply::json(200, &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})))
        }
        _ => Err(ApiError::of_code(405, "the server does not allow this method on the requested resource")),
    }
}

fn watch(shared: &Shared, asked: &Asked, target: &Target, accepted: Accepted) -> Result<Reply, ApiError> {
    let query = asked.query.list(target)?;
    let mut filter = query.filter;
    if !target.name.is_empty() {
        filter.fields.extend(crate::api::selector::parse_fields(&format!("metadata.name={}", target.name))?);
    }
    let initial = asked.query.flag("sendInitialEvents");
    let after = match query.resource_version.as_str() {
        "" | "0" => None,
        _ if initial => None,
        version => Some(version.parse().map_err(|_| ApiError::bad_request(format!("resourceVersion {version:?} is no number")))?),
    };
    let bookmarks = asked.query.flag("allowWatchBookmarks");
    let life = asked.query.get("timeoutSeconds").parse().map_or(watching::DEFAULT_LIFE, std::time::Duration::from_secs);
    let query = WatchQuery {
        filter,
        after,
        mark_initial_end: initial && bookmarks,
        bookmarks: bookmarks.then_some(shared.bookmark_interval),
        life,
        form: accepted.form,
    };
    Ok(Reply::pieces(watching::watch(&shared.store, &target.resource, query)?))
}
