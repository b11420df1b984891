//! What a request's path and query ask for.

use std::sync::Arc;

use crate::api::{
    resource::Resource,
    selector::{Filter, parse_fields, parse_labels},
    status::ApiError,
    store::{ListQuery, Store},
};

/// Where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    Version,
    Health,
    CoreVersions,
    Groups,
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
        match self.subresource.as_str() {
            "" => self.resource.full_name(),
            subresource => format!("{}/{subresource}", self.resource.full_name()),
        }
    }
}

/// Reads a path.
pub(crate) fn route(store: &Store, path: &str) -> Route {
    let parts: Vec<&str> = path.split('/').skip(1).filter(|part| !part.is_empty()).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["version"] => return Route::Version,
        ["readyz" | "livez" | "healthz", ..] => return Route::Health,
        ["api"] => return Route::CoreVersions,
        ["apis"] => return Route::Groups,
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Route::Nowhere,
    };
    if group == "authorization.k8s.io" && rest == ["selfsubjectaccessreviews"] {
        return Route::SelfReview;
    }
    let (namespace, rest) = match rest {
        [] => return Route::Resources(group.to_owned(), version.to_owned()),
        // A namespace itself, or its status; everything deeper lies inside it.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status"] => ("", rest),
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
            Route::Resource(Target { resource, namespace, name, subresource })
        }
        None if group.is_empty() => Route::UnknownResource(plural.to_owned()),
        None => Route::UnknownResource(format!("{plural}.{group}")),
    }
}

/// The parameters of a query, decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (decode(key), decode(value)))
                .collect(),
        )
    }

    pub fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    pub fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), "true" | "1")
    }

    /// The list that the parameters ask for.
    pub fn list(&self, target: &Target) -> Result<ListQuery, ApiError> {
        let limit = match self.get("limit") {
            "" => 0,
            limit => limit.parse().map_err(|_| ApiError::bad_request(format!("limit {limit:?} is no number")))?,
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
            exact: self.get("resourceVersionMatch") == "Exact",
        })
    }
}

/// Undoes percent encoding; broken escapes stay as they are.
fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let escaped = || {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        out.push(match byte {
            b'+' => b' ',
            b'%' => match escaped() {
                Some(decoded) => {
                    rest = &tail[2..];
                    decoded
                }
                None => b'%',
            },
            byte => *byte,
        });
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_resources_namespaces_and_subresources() {
        let store = Store::new(Resource::built_in(), 8);
        let at = |path: &str| match route(&store, path) {
            Route::Resource(target) => (target.full_name(), target.namespace, target.name),
            other => (format!("{other:?}"), String::new(), String::new()),
        };
        let expect = |full: &str, namespace: &str, name: &str| (full.to_owned(), namespace.to_owned(), name.to_owned());
        assert_eq!(at("/api/v1/nodes"), expect("nodes", "", ""));
        assert_eq!(at("/api/v1/namespaces"), expect("namespaces", "", ""));
        assert_eq!(at("/api/v1/namespaces/garden"), expect("namespaces", "", "garden"));
        assert_eq!(at("/api/v1/namespaces/garden/secrets/s"), expect("secrets", "garden", "s"));
        assert_eq!(at("/apis/apps/v1/namespaces/n/deployments/d/scale"), expect("deployments.apps/scale", "n", "d"));
        assert_eq!(at("/apis/apps/v1"), expect("Resources(\"apps\", \"v1\")", "", ""));
        assert_eq!(at("/apis/apps/v1/daemonsets"), expect("UnknownResource(\"daemonsets.apps\")", "", ""));
        assert_eq!(at("/favicon.ico"), expect("Nowhere", "", ""));
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%20in+(b%2Cc)&watch=true&bad=%zz&flag");
        assert_eq!(query.get("labelSelector"), "a in (b,c)");
        assert_eq!((query.flag("watch"), query.get("bad"), query.get("flag")), (true, "%zz", ""));
    }
}
