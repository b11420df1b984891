//! Lists, whole or page by page; all pages of one list show one moment.

use std::sync::Arc;

use super::{Store, matching, objects_of};
use crate::api::{
    object::Object,
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

/// One page.
#[derive(Debug)]
pub(crate) struct List {
    pub revision: u64,
    pub items: Vec<Arc<Object>>,
    /// Token of the next page and how many objects are left.
    pub rest: Option<(String, usize)>,
}

/// What is left of a begun list.
#[derive(Debug)]
pub(super) struct Snapshot {
    id: u64,
    revision: u64,
    resource: Arc<Resource>,
    objects: Vec<Arc<Object>>,
}

impl Snapshot {
    fn page(&self, start: usize, limit: usize) -> List {
        let end = if limit == 0 {
            self.objects.len()
        } else {
            self.objects.len().min(start.saturating_add(limit))
        };
        let items = self.objects.get(start..end).unwrap_or_default().to_vec();
        let rest = (end < self.objects.len())
            .then(|| (format!("{}.{end}", self.id), self.objects.len() - end));
        List {
            revision: self.revision,
            items,
            rest,
        }
    }
}

impl Store {
    pub(crate) fn page(
        &self,
        resource: &Arc<Resource>,
        query: &ListQuery,
    ) -> Result<List, ApiError> {
        let mut state = self.lock();
        if !query.token.is_empty() {
            let broken = || bad_request("continue key is not valid");
            let (id, start) = query.token.split_once('.').ok_or_else(broken)?;
            let (id, start): (u64, usize) = (
                id.parse().map_err(|_| broken())?,
                start.parse().map_err(|_| broken())?,
            );
            let snapshot = state
                .snapshots
                .iter()
                .find(|one| one.id == id && one.resource == *resource);
            let gone =
                "The provided continue parameter is too old to display a consistent list result.";
            return Ok(snapshot
                .ok_or_else(|| of_code(410, gone))?
                .page(start, query.limit));
        }
        let (revision, tables) = match (&state.lagging, query.resource_version.as_str()) {
            (Some((revision, tables)), "0") => (*revision, tables),
            // Older versions are not kept, and what a list is asked for is no newer than this.
            _ => (state.revision, &state.tables),
        };
        let objects = matching(objects_of(tables, resource), &query.filter);
        let snapshot = Snapshot {
            id: state.snapshots_made + 1,
            revision,
            resource: resource.clone(),
            objects,
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
