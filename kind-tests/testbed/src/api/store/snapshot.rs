//! Lists, whole or page by page; all pages of one list show one moment.

use std::sync::Arc;

use super::{Store, matching};
use crate::api::{object::Object, resource::Resource, selector::Filter, status::ApiError};

/// How many begun lists are kept; the oldest gives way and its next page answers 410, as after a compaction.
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
    pub exact: bool,
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
    objects: Arc<[Arc<Object>]>,
}

impl Store {
    pub(crate) fn page(&self, resource: &Arc<Resource>, query: &ListQuery) -> Result<List, ApiError> {
        let mut state = self.lock();
        if !query.token.is_empty() {
            let broken = || ApiError::bad_request("continue key is not valid");
            let (id, start) = query.token.split_once('.').ok_or_else(broken)?;
            let (id, start): (u64, usize) = (id.parse().map_err(|_| broken())?, start.parse().map_err(|_| broken())?);
            let snapshot = state.snapshots.iter().find(|one| one.id == id && one.resource == *resource);
            let gone = "The provided continue parameter is too old to display a consistent list result.";
            let snapshot = snapshot.ok_or_else(|| ApiError::expired(gone))?;
            return Ok(page_of(snapshot.id, snapshot.revision, &snapshot.objects, start, query.limit));
        }
        let (revision, objects) = match (&state.lagging, query.resource_version.as_str()) {
            (Some((revision, tables)), "0") => {
                let at = state.tables.iter().position(|table| table.resource == *resource);
                let objects = at.and_then(|at| tables.get(at));
                (*revision, objects.map(|objects| matching(objects, &query.filter)).unwrap_or_default())
            }
            (_, wanted) => {
                state.check_version(wanted, query.exact)?;
                (state.revision, state.table(resource)?.matching(&query.filter))
            }
        };
        if query.limit == 0 || objects.len() <= query.limit {
            return Ok(List { revision, items: objects, rest: None });
        }
        state.snapshots_made += 1;
        let (id, objects): (u64, Arc<[Arc<Object>]>) = (state.snapshots_made, objects.into());
        if state.snapshots.len() == KEPT {
            state.snapshots.pop_front();
        }
        let snapshot = super::snapshot::Snapshot { id, revision, resource: resource.clone(), objects: objects.clone() };
        state.snapshots.push_back(snapshot);
        Ok(page_of(id, revision, &objects, 0, query.limit))
    }
}

impl super::State {
    /// Whether the present state is what a list for a resourceVersion may see. Older exact versions are not kept.
    fn check_version(&self, wanted: &str, exact: bool) -> Result<(), ApiError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let refuse = || ApiError::bad_request(format!("resourceVersion: Invalid value: {wanted:?}: must be an unsigned integer"));
        let wanted: u64 = wanted.parse().map_err(|_| refuse())?;
        if wanted > self.revision {
            let why = format!("Too large resource version: {wanted}, current: {}", self.revision);
            return Err(ApiError::of_code(504, why).retry_after(1));
        }
        if exact && wanted < self.revision {
            return Err(ApiError::expired("The provided resource version is too old to display a list"));
        }
        Ok(())
    }
}

fn page_of(id: u64, revision: u64, objects: &[Arc<Object>], start: usize, limit: usize) -> List {
    let end = if limit == 0 { objects.len() } else { objects.len().min(start.saturating_add(limit)) };
    let items = objects.get(start..end).unwrap_or_default().to_vec();
    let rest = (end < objects.len()).then(|| (format!("{id}.{end}"), objects.len() - end));
    List { revision, items, rest }
}
