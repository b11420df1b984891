//! What a request asks for, by its method, path and query.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Method, Request, header};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    access::User,
    list_page::{ListQuery, read_token},
    protobuf,
    reply::JSON,
    requests::Record,
    resource::{Resource, full_name, group},
    selector::{Filter, parse},
    shared::ServerState,
    status::{ApiError, bad_request, of_code},
};

/// A request, read.
pub(crate) struct IncomingRequest {
    pub user: Option<Arc<User>>,
    /// Group and version that its path names; empty outside of resources.
    pub api_version: String,
    /// `None` if there is no such resource.
    pub resource: Option<Arc<Resource>>,
    pub subresource: String,
    parameters: HashMap<String, String>,
    pub http: Request<Bytes>,
    pub record: Record,
}

impl IncomingRequest {
    pub fn read(shared: &ServerState, connection: u64, http: Request<Bytes>) -> Self {
        let user = shared.tokens.user(http.headers());
        let (path, query) = (http.uri().path(), http.uri().query().unwrap_or_default());
        let parameters = form_urlencoded::parse(query.as_bytes()).into_owned();
        let mut request = Self {
            parameters: parameters.collect(),
            api_version: String::new(),
            resource: None,
            subresource: String::new(),
            record: Record {
                at: Some(Instant::now()),
                connection,
                method: http.method().to_string(),
                path: path.to_owned(),
                query: query.to_owned(),
                user: user
                    .as_ref()
                    .map_or_else(String::new, |user| user.name.clone()),
                verb: http.method().as_str().to_lowercase(),
                ..Record::default()
            },
            user,
            http,
        };
        request.read_target(shared);
        request
    }

    /// Reads the path, if it is in the manner of resources.
    fn read_target(&mut self, shared: &ServerState) {
        let parts: Vec<&str> = self.http.uri().path().split('/').collect();
        let (api_version, rest) = match parts.as_slice() {
            ["", "api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["", "apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return,
        };
        let (namespace, rest) = match rest {
            // Everything below a namespace lies inside it.
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name, subresource) = match *rest {
            [plural] => (plural, "", ""),
            [plural, name] => (plural, name, ""),
            [plural, name, subresource] => (plural, name, subresource),
            _ => return,
        };
        let verb = match (self.http.method(), name) {
            (&Method::GET, "") if self.flag("watch") => "watch",
            (&Method::GET, "") => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            _ => &self.record.verb.clone(),
        };
        let is_it = |one: &Resource| one.plural == plural && one.api_version == api_version;
        self.record.verb = verb.to_owned();
        self.record.resource = full_name(group(&api_version), plural, subresource);
        self.record.namespace = namespace.to_owned();
        self.record.name = name.to_owned();
        self.resource = shared.store.find(is_it);
        self.subresource = subresource.to_owned();
        self.api_version = api_version;
    }

    /// A parameter of the query, decoded; empty where there is none.
    pub fn parameter(&self, key: &str) -> &str {
        self.parameters.get(key).map_or("", String::as_str)
    }

    pub fn flag(&self, key: &str) -> bool {
        self.parameter(key) == "true"
    }

    /// The list that is asked for.
    pub fn list(&self) -> Result<ListQuery, ApiError> {
        let filter = Filter {
            labels: parse(self.parameter("labelSelector"))?,
            fields: parse(self.parameter("fieldSelector"))?,
        };
        let filter = match self.record.namespace.as_str() {
            "" => filter,
            namespace => filter.in_namespace(namespace),
        };
        Ok(ListQuery {
            filter,
            limit: self.parameter("limit").parse().unwrap_or_default(),
            begun: read_token(self.parameter("continue"))?,
        })
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.http.headers().get(name)?.to_str().ok()
    }

    /// Whether the client takes protobuf, in which it is then answered a list of a kind that has that
    /// form.
    pub fn accepts_protobuf(&self) -> bool {
        let accept = self.header(header::ACCEPT).unwrap_or_default();
        accept.contains(protobuf::MEDIA_TYPE)
    }

    /// The body, which is to be of this media type, as JSON; an empty one is null.
    pub fn json(&self, wanted: &str) -> Result<Value, ApiError> {
        let given = self.header(header::CONTENT_TYPE).unwrap_or(JSON);
        let given = given.split(';').next().unwrap_or_default().trim();
        if given != wanted {
            let why = format!(
                "the body of the request was in an unknown format ({given}) - accepted media types include: {wanted}"
            );
            return Err(of_code(415, why));
        }
        if self.http.body().is_empty() {
            return Ok(Value::Null);
        }
        let read = serde_json::from_slice(self.http.body());
        read.map_err(|error| bad_request(format!("the body of the request is no JSON: {error}")))
    }
}
