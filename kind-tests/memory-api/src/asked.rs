//! What is asked for.

use std::sync::Arc;

use http::{HeaderMap, Method};

use crate::access::User;
use crate::requests::Record;
use crate::route::{Query, Route};

/// Everything about a request but its body.
pub(crate) struct Asked {
    pub user: Option<Arc<User>>,
    pub route: Route,
    pub query: Query,
    pub headers: HeaderMap,
    pub method: Method,
    pub record: Record,
}
