//! What the server's side reads out of a store.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Change, Store};
use crate::api::{object::Object, resource::Resource, selector::Filter, status::ApiError};

impl Store {
    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let state = self.lock();
        let mut resources = state.tables.iter().map(|table| &table.resource);
        resources.find(|one| one.plural == plural && one.group == group && one.version == version).cloned()
    }

    pub(crate) fn get_object(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Arc<Object>, ApiError> {
        let state = self.lock();
        let found = state.table(resource)?.objects.get(&(namespace.to_owned(), name.to_owned())).cloned();
        found.ok_or_else(|| ApiError::not_found(resource, name))
    }

    /// Objects that match, with the revision they belong to: where a watch begins.
    pub(crate) fn matching(&self, resource: &Resource, filter: &Filter) -> Result<(u64, Vec<Arc<Object>>), ApiError> {
        let state = self.lock();
        Ok((state.revision, state.table(resource)?.matching(filter)))
    }

    /// The changes of a resource after a revision, and the revision up to which that is all.
    pub(crate) fn changes(&self, resource: &Resource, after: u64) -> Result<(u64, Vec<Change>), ApiError> {
        let state = self.lock();
        if after < state.compacted {
            let why = format!("too old resource version: {after} ({})", state.compacted + 1);
            return Err(ApiError::expired(why));
        }
        let start = state.history.partition_point(|change| change.revision <= after);
        let news = state.history.range(start..).filter(|change| *change.after.resource == *resource);
        Ok((state.revision.max(after), news.cloned().collect()))
    }

    pub(crate) fn subscribe(&self) -> (watch::Receiver<u64>, watch::Receiver<u64>) {
        (self.shared.revision.subscribe(), self.shared.broken.subscribe())
    }
}
