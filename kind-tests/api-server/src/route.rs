//! What a request asks for, by its method, path and query.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, Method, request::Parts};
use hyper::upgrade::OnUpgrade;
use tokio::time::Instant;

use crate::{
    access::User,
    requests::Record,
    resource::{Resource, full_name},
    selector::{Filter, parse_fields, parse_labels},
    status::{ApiError, bad_request},
    store::{ListQuery, Store},
};

/// Everything about a request but its body.
pub(crate) struct IncomingRequest {
    pub user: Option<Arc<User>>,
    pub route: Route,
    pub query: Query,
    pub headers: HeaderMap,
    /// Lets the connection be used for another protocol.
    pub upgrade: Option<OnUpgrade>,
    pub record: Record,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    Version,
    /// Group and version; the group is empty for the core.
    Resources(String, String),
    SelfReview,
    /// A path in the manner of resources.
    Resource(ApiTarget),
    Nowhere,
}

/// A resource, a collection in it, or one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiTarget {
    pub resource: Arc<Resource>,
    /// Whether there is such a resource.
    pub is_served: bool,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

impl IncomingRequest {
    /// Reads the head of a request.
    pub fn read(store: &Store, connection: u64, user: Option<Arc<User>>, head: Parts) -> Self {
        let route = route(store, head.uri.path());
        let query = head.uri.query().unwrap_or_default();
        let mut record = Record {
            at: Some(Instant::now()),
            connection,
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: query.to_owned(),
            user: user
                .as_ref()
                .map(|user| user.name.clone())
                .unwrap_or_default(),
            resource: route.full_name(),
            ..Record::default()
        };
        let query = Query::parse(query);
        record.verb = verb(&head.method, &route, &query);
        if let Route::Resource(target) = &route {
            (record.namespace, record.name) = (target.namespace.clone(), target.name.clone());
        }
        Self {
            user,
            route,
            query,
            upgrade: head.extensions.get().cloned(),
            headers: head.headers,
            record,
        }
    }
}

impl Route {
    /// The full name of a resource, with a subresource behind a slash; empty for what is none.
    fn full_name(&self) -> String {
        match self {
            Self::Resource(target) => {
                let Resource { group, plural, .. } = &*target.resource;
                full_name(group, plural, &target.subresource)
            }
            Self::SelfReview => "selfsubjectaccessreviews.authorization.k8s.io".to_owned(),
            Self::Version | Self::Resources(..) | Self::Nowhere => String::new(),
        }
    }
}

/// Reads a path.
fn route(store: &Store, path: &str) -> Route {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
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
        // Everything below a namespace lies inside it.
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        // Whatever follows is for the pod.
        [plural, name, "proxy", ..] => (*plural, *name, "proxy"),
        _ => return Route::Nowhere,
    };
    let [namespace, name, subresource] = [namespace, name, subresource].map(str::to_owned);
    let known = store.resource(group, version, plural);
    let unknown = || Resource::new(&format!("{group}/{version}"), plural, "").into();
    Route::Resource(ApiTarget {
        is_served: known.is_some(),
        resource: known.unwrap_or_else(unknown),
        namespace,
        name,
        subresource,
    })
}

fn verb(method: &Method, route: &Route, query: &Query) -> String {
    if *route == Route::SelfReview {
        return "create".to_owned();
    }
    let Route::Resource(ApiTarget { name, .. }) = route else {
        return method.as_str().to_lowercase();
    };
    let verb = match (method, name.as_str()) {
        (&Method::GET, "") if query.flag("watch") => "watch",
        (&Method::GET, "") => "list",
        (&Method::GET, _) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::DELETE, "") => "deletecollection",
        _ => return method.as_str().to_lowercase(),
    };
    verb.to_owned()
}

/// The parameters of a query, decoded.
pub(crate) struct Query(HashMap<String, String>);

impl Query {
    fn parse(text: &str) -> Self {
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
    pub fn list(&self, target: &ApiTarget) -> Result<ListQuery, ApiError> {
        let limit = match self.get("limit") {
            "" => 0,
            limit => limit
                .parse()
                .map_err(|_| bad_request(format!("limit {limit:?} is no number")))?,
        };
        let namespace = (!target.namespace.is_empty()).then(|| target.namespace.clone());
        Ok(ListQuery {
            filter: Filter {
                namespace,
                labels: parse_labels(self.get("labelSelector"))?,
                fields: parse_fields(self.get("fieldSelector"))?,
            },
            limit,
            token: self.get("continue").to_owned(),
            resource_version: self.get("resourceVersion").to_owned(),
        })
    }
}
