//! Lists that are computed at the moment of the answer, where objects change with the time alone:
//! many servers full of nodes cost one process no writes then.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use chrono::Utc;
use parking_lot::Mutex;

use crate::api::{
    protobuf,
    reply::Reply,
    resource::Resource,
    status::{ApiError, of_code},
    store::ListQuery,
};

type List = dyn Fn() -> Vec<Bytes> + Send + Sync;

/// The computed lists of one server; can be changed while it runs.
#[derive(Default)]
pub struct Computed {
    lists: Mutex<HashMap<String, Arc<List>>>,
}

impl Computed {
    /// From now on a list of this resource (its full name) has these items, as messages of
    /// [`protobuf`], whatever the store holds and a selector says. Watches and single objects stay
    /// the store's.
    pub fn set(&self, resource: &str, list: impl Fn() -> Vec<Bytes> + Send + Sync + 'static) {
        self.lists
            .lock()
            .insert(resource.to_owned(), Arc::new(list));
    }

    /// A page of a computed list; `None` where the list is the store's. Later pages show a later
    /// moment.
    pub(crate) fn page(
        &self,
        resource: &Resource,
        query: &ListQuery,
        in_protobuf: bool,
    ) -> Option<Result<Reply, ApiError>> {
        let list = self.lists.lock().get(&resource.full_name())?.clone();
        if !in_protobuf {
            return Some(Err(of_code(
                406,
                "a computed list is offered in protobuf only",
            )));
        }
        let items = list();
        let begin = query.token.parse().unwrap_or(0).min(items.len());
        let end = if query.limit == 0 {
            items.len()
        } else {
            items.len().min(begin + query.limit)
        };
        let next = end.to_string();
        let rest = (end < items.len()).then(|| (next.as_str(), items.len() - end));
        // The version grows with the time, as the content does.
        let revision = Utc::now().timestamp().unsigned_abs();
        Some(Ok(Reply::whole(
            200,
            protobuf::MEDIA_TYPE,
            protobuf::list_body(resource, revision, rest, &items[begin..end]),
        )))
    }
}
