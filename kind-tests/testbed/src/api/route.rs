//! What a request asks for, by its method, path and query.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, Method};

use crate::api::{
    access::User,
    requests::Record,
    resource::{Resource, full_name},
    selector::{Filter, parse_fields, parse_labels},
    status::{ApiError, bad_request},
    store::{ListQuery, Store},
};

/// Everything about a request but its body.
pub(crate) struct Asked {
    pub user: Option<Arc<User>>,
    pub route: Route,
    pub query: Query,
    pub headers: HeaderMap,
    pub record: Record,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    Version,
    /// Group and version; the group is empty for the core.
    Resources(String, String),
    SelfReview,
    Resource(Target),
    /// A path in the manner of resources, of a resource nobody registered: its full name.
    UnknownResource(String),
    Nowhere,
}

/// A resource, a collection in it, or one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub resource: Arc<Resource>,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

impl Target {
    /// Full name, with the subresource behind a slash.
    pub fn full_name(&self) -> String {
        full_name(
            &self.resource.group,
            &self.resource.plural,
            &self.subresource,
        )
    }
}

/// Reads a path.
pub(crate) fn route(store: &Store, path: &str) -> Route {
    let parts: Vec<&str> = path
        .split('/')
        .skip(1)
        .filter(|part| !part.is_empty())
        .collect();
    let (group, version, rest) = match parts.as_slice() {
        ["version"] => return Route::Version,
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Route::Nowhere,
    };
    if group == "authorization.k8s.io" && rest == ["selfsubjectaccessreviews"] {
        return Route::SelfReview;
    }
    let (namespace, rest) = match rest {
        [] => return Route::Resources(group.to_owned(), version.to_owned()),
        // A namespace itself; everything deeper lies inside it.
        ["namespaces"] | ["namespaces", _] => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Route::Nowhere,
    };
    match store.resource(group, version, plural) {
        Some(resource) => {
            let [namespace, name, subresource] = [namespace, name, subresource].map(str::to_owned);
            Route::Resource(Target {
                resource,
                namespace,
                name,
                subresource,
            })
        }
        None => Route::UnknownResource(full_name(group, plural, "")),
    }
}

/// Fills in what the request is about.
pub(crate) fn describe(record: &mut Record, method: &Method, route: &Route, query: &Query) {
    let method_name = method.as_str().to_lowercase();
    record.verb = match (method, route) {
        (_, Route::SelfReview) => "create",
        (&Method::GET, Route::Resource(target)) if !target.name.is_empty() => "get",
        (&Method::GET, Route::Resource(_)) if query.flag("watch") => "watch",
        (&Method::GET, Route::Resource(_)) => "list",
        (&Method::POST, Route::Resource(_)) => "create",
        (&Method::PUT, Route::Resource(_)) => "update",
        (&Method::DELETE, Route::Resource(target)) if target.name.is_empty() => "deletecollection",
        _ => &method_name,
    }
    .to_owned();
    match route {
        Route::Resource(target) => {
            record.resource = target.full_name();
            record.namespace.clone_from(&target.namespace);
            record.name.clone_from(&target.name);
        }
        Route::UnknownResource(name) => record.resource.clone_from(name),
        Route::SelfReview => {
            "selfsubjectaccessreviews.authorization.k8s.io".clone_into(&mut record.resource)
        }
        _ => {}
    }
}

/// The parameters of a query, decoded.
pub(crate) struct Query(HashMap<String, String>);

impl Query {
    pub fn parse(text: &str) -> Self {
        Self(
            form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), "true" | "1")
    }

    /// The list that the parameters ask for.
    pub fn list(&self, target: &Target) -> Result<ListQuery, ApiError> {
        let limit = match self.get("limit") {
            "" => 0,
            limit => limit
                .parse()
                .map_err(|_| bad_request(format!("limit {limit:?} is no number")))?,
        };
        Ok(ListQuery {
            filter: Filter {
                namespace: Some(target.namespace.clone()).filter(|namespace| !namespace.is_empty()),
                labels: parse_labels(self.get("labelSelector"))?,
                fields: parse_fields(self.get("fieldSelector"))?,
            },
            limit,
            token: self.get("continue").to_owned(),
            resource_version: self.get("resourceVersion").to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_resources_namespaces_and_subresources() {
        let store = Store::new(Resource::built_in(), 8);
        for (path, full, namespace, name) in [
            ("/api/v1/nodes", "nodes", "", ""),
            ("/api/v1/namespaces", "namespaces", "", ""),
            ("/api/v1/namespaces/garden", "namespaces", "", "garden"),
            (
                "/api/v1/namespaces/garden/secrets/s",
                "secrets",
                "garden",
                "s",
            ),
            (
                "/apis/apps/v1/namespaces/n/deployments/d/scale",
                "deployments.apps/scale",
                "n",
                "d",
            ),
            ("/apis/apps/v1", "Resources(\"apps\", \"v1\")", "", ""),
            (
                "/apis/apps/v1/daemonsets",
                "UnknownResource(\"daemonsets.apps\")",
                "",
                "",
            ),
            ("/favicon.ico", "Nowhere", "", ""),
        ] {
            let found = match route(&store, path) {
                Route::Resource(target) => [target.full_name(), target.namespace, target.name],
                other => [format!("{other:?}"), String::new(), String::new()],
            };
            assert_eq!(found, [full, namespace, name], "{path}");
        }
    }
}
