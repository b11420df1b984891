//! Lists, whole or page by page; all pages of one list show one moment.

use std::sync::Arc;

use super::{Store, matching};
use crate::api::{
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
    pub resource_version: String,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct ListPage<T> {
    pub revision: u64,
    pub items: Vec<T>,
    /// Token of the next page and how many objects are left.
    pub rest: Option<(String, usize)>,
}

impl<T: Clone> ListPage<T> {
    /// The page that begins at `start`; `token` names the one that begins behind it.
    pub fn of(
        all: &[T],
        start: usize,
        limit: usize,
        revision: u64,
        token: impl Fn(usize) -> String,
    ) -> Self {
        let behind = all.get(start..).unwrap_or_default();
        let count = if limit == 0 {
            behind.len()
        } else {
            behind.len().min(limit)
        };
        let left = behind.len() - count;
        Self {
            revision,
            items: behind[..count].to_vec(),
            rest: (left > 0).then(|| (token(start + count), left)),
        }
    }

    pub fn map<U>(self, form: impl FnMut(T) -> U) -> ListPage<U> {
        ListPage {
            revision: self.revision,
            items: self.items.into_iter().map(form).collect(),
            rest: self.rest,
        }
    }
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
        let (revision, tables) = match (&state.lagging, query.resource_version.as_str()) {
            (Some((revision, tables)), "0") => (*revision, tables),
            // Older versions are not kept, and what a list is asked for is no newer than this.
            _ => (state.revision, &state.tables),
        };
        let snapshot = ListSnapshot {
            id: state.snapshots_made + 1,
            revision,
            resource: resource.clone(),
            objects: matching(&tables[resource], &query.filter),
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
