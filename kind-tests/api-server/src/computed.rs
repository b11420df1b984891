//! Lists that are computed at the moment of the answer, where objects change with the time alone:
//! many servers full of nodes cost one process no writes then.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use chrono::Utc;
use parking_lot::Mutex;

use crate::list_page::{ListPage, ListQuery};
use crate::resource::Resource;

type Compute = dyn Fn() -> Vec<Bytes> + Send + Sync;

/// The computed lists of one server; can be changed while it runs.
#[derive(Default)]
pub struct ComputedLists {
    lists: Mutex<HashMap<String, Arc<Compute>>>,
}

impl ComputedLists {
    /// From now on a list of this resource (its full name) has these items, as messages of
    /// [`crate::protobuf`], whatever the store holds and a selector says. Watches and single
    /// objects stay the store's.
    pub fn set(&self, resource: &str, list: impl Fn() -> Vec<Bytes> + Send + Sync + 'static) {
        self.lists
            .lock()
            .insert(resource.to_owned(), Arc::new(list));
    }

    /// A page of a computed list; `None` where the list is the store's. Later pages show a later
    /// moment.
    pub(crate) fn page(&self, resource: &Resource, query: &ListQuery) -> Option<ListPage<Bytes>> {
        let list = self.lists.lock().get(&resource.full_name())?.clone();
        // The version grows with the time, as the content does.
        let revision = Utc::now().timestamp().unsigned_abs();
        Some(ListPage::of(revision, list(), query))
    }
}
