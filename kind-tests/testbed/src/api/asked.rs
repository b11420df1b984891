//! What is asked for.

use std::sync::Arc;

use http::{HeaderMap, Method};

use crate::api::access::User;
use crate::api::requests::Record;
use crate::api::route::{Query, Route};

/// Everything about a request but its body.
pub(crate) struct Asked {
    pub user: Option<Arc<User>>,
    pub route: Route,
    pub query: Query,
    pub headers: HeaderMap,
    pub method: Method,
    pub record: Record,
}
