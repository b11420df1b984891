//! Lists, whole or page by page; all pages of one list show one moment.

use std::sync::Arc;

use super::{Store, matching};
use crate::{
    list_page::ListPage,
    object::StoredObject,
    resource::Resource,
    selector::Filter,
    status::{ApiError, bad_request, of_code},
};

/// How many begun lists are kept; the oldest gives way and its next page answers 410, as after a
/// compaction.
const KEPT: usize = 64;

/// What a list asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    pub filter: Filter,
    /// Page size; 0 means everything.
    pub limit: usize,
    /// The token of the page before.
    pub token: String,
}

/// What is left of a begun list.
#[derive(Debug)]
pub(super) struct ListSnapshot {
    id: u64,
    revision: u64,
    resource: Arc<Resource>,
    objects: Vec<Arc<StoredObject>>,
}

impl ListSnapshot {
    fn page(&self, start: usize, limit: usize) -> ListPage<Arc<StoredObject>> {
        let token = |end| format!("{}.{end}", self.id);
        ListPage::of(&self.objects, start, limit, self.revision, token)
    }
}

impl Store {
    pub(crate) fn page(
        &self,
        resource: &Arc<Resource>,
        query: &ListQuery,
    ) -> Result<ListPage<Arc<StoredObject>>, ApiError> {
        let mut state = self.lock();
        if !query.token.is_empty() {
            let (id, start) =
                read_token(&query.token).ok_or_else(|| bad_request("continue key is not valid"))?;
            let mut begun = state.snapshots.iter();
            let snapshot = begun.find(|one| one.id == id && one.resource == *resource);
            let gone =
                "The provided continue parameter is too old to display a consistent list result.";
            let snapshot = snapshot.ok_or_else(|| of_code(410, gone))?;
            return Ok(snapshot.page(start, query.limit));
        }
        // Older versions are not kept, and what a list is asked for is no newer than this.
        let snapshot = ListSnapshot {
            id: state.snapshots_made + 1,
            revision: state.revision,
            resource: resource.clone(),
            objects: matching(&state.tables[resource], &query.filter),
        };
        let page = snapshot.page(0, query.limit);
        if page.rest.is_some() {
            state.snapshots_made += 1;
            if state.snapshots.len() == KEPT {
                state.snapshots.pop_front();
            }
            state.snapshots.push_back(snapshot);
        }
        Ok(page)
    }
}

/// The list, and where the page begins.
fn read_token(token: &str) -> Option<(u64, usize)> {
    let (id, start) = token.split_once('.')?;
    Some((id.parse().ok()?, start.parse().ok()?))
}
