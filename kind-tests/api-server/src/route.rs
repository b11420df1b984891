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
    selector::{Filter, parse},
    status::ApiError,
    store::{ListQuery, Store},
};

/// Everything about a request but its body.
pub(crate) struct IncomingRequest {
    pub user: Option<Arc<User>>,
    /// Where its path leads, if that is in the manner of resources.
    pub target: Option<ApiTarget>,
    pub query: Query,
    pub headers: HeaderMap,
    /// Lets the connection be used for another protocol.
    pub upgrade: Option<OnUpgrade>,
    pub record: Record,
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
        let target = target(store, head.uri.path());
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
            verb: head.method.as_str().to_lowercase(),
            ..Record::default()
        };
        let query = Query::parse(query);
        if let Some(target) = &target {
            let Resource { group, plural, .. } = &*target.resource;
            record.resource = full_name(group, plural, &target.subresource);
            (record.namespace, record.name) = (target.namespace.clone(), target.name.clone());
            record.verb = match (&head.method, record.name.as_str()) {
                (&Method::GET, "") if query.flag("watch") => "watch".to_owned(),
                (&Method::GET, "") => "list".to_owned(),
                (&Method::POST, _) => "create".to_owned(),
                (&Method::PUT, _) => "update".to_owned(),
                _ => record.verb,
            };
        }
        Self {
            user,
            target,
            query,
            upgrade: head.extensions.get().cloned(),
            headers: head.headers,
            record,
        }
    }
}

fn target(store: &Store, path: &str) -> Option<ApiTarget> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        // Everything below a namespace lies inside it.
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return None,
    };
    let [namespace, name, subresource] = [namespace, name, subresource].map(str::to_owned);
    let known = store.resource(group, version, plural);
    let unknown = || Resource::new(&format!("{group}/{version}"), plural, "").into();
    Some(ApiTarget {
        is_served: known.is_some(),
        resource: known.unwrap_or_else(unknown),
        namespace,
        name,
        subresource,
    })
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
        let namespace = (!target.namespace.is_empty()).then(|| target.namespace.clone());
        Ok(ListQuery {
            filter: Filter {
                namespace,
                labels: parse(self.get("labelSelector"))?,
                fields: parse(self.get("fieldSelector"))?,
            },
            limit: self.get("limit").parse().unwrap_or_default(),
            token: self.get("continue").to_owned(),
        })
    }
}
