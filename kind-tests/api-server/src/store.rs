//! All objects of one server, with one revision counter over them.
//!
//! ```text
//!  writes ──► tables (newest version of each object) ──► lists, gets
//!        └──► history (bounded) ──► watches, later pages of a list
//! ```
//! A [`Store`] is a handle; clones share the content. Everything is synchronous: the lock is held
//! for the length of one read or write, never across an await.

mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use kube_core::TypeMeta;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    counter::Counter,
    list_page::{ListPage, ListQuery},
    object::{merge, metadata},
    resource::Resource,
    status::{ApiError, Named, of_code},
};

pub use write::ObservedWrite;

/// Namespace and name; the namespace of cluster-scoped objects is empty.
type ObjectKey = (String, String);
/// The newest version of each object, with its type. Versions are immutable; a write makes a new one.
type Table = BTreeMap<ObjectKey, Arc<Value>>;

/// The objects of one API server.
#[derive(Clone)]
pub struct Store {
    shared: Arc<StoreShared>,
}

struct StoreShared {
    state: Mutex<StoreState>,
    /// The newest revision, which changes under the lock.
    revision: Counter,
    /// Counts how often all watches were broken.
    broken: Counter,
    /// How many changes the history keeps.
    history: usize,
    observer: OnceLock<Box<write::Observer>>,
}

#[derive(Default)]
struct StoreState {
    tables: BTreeMap<Arc<Resource>, Table>,
    history: VecDeque<StoredChange>,
    /// Changes up to this revision are forgotten.
    compacted: u64,
}

/// One write, as watches see it.
#[derive(Clone, Debug)]
pub(crate) struct StoredChange {
    pub resource: Arc<Resource>,
    pub revision: u64,
    pub before: Option<Arc<Value>>,
    /// The version written; of a deletion, the last one under the deletion's revision.
    pub after: Arc<Value>,
    pub deleted: bool,
}

impl Store {
    /// An empty store that remembers the last `history` changes for watches.
    pub(crate) fn new(resources: Vec<Resource>, history: usize) -> Self {
        let tables = resources.into_iter().map(Arc::new);
        let state = StoreState {
            tables: tables.map(|one| (one, Table::new())).collect(),
            ..StoreState::default()
        };
        let revision = Counter::default();
        // A new cluster does not begin at 0: a resourceVersion of 0 has a meaning of its own.
        revision.set(1);
        let shared = StoreShared {
            state: Mutex::new(state),
            revision,
            broken: Counter::default(),
            history,
            observer: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The newest version of an object. `resource` is its full name, like `deployments.apps`;
    /// `namespace` is empty at cluster scope.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let object = self.get_object(&self.named(resource), namespace, name);
        object.ok().map(Arc::unwrap_or_clone)
    }

    /// All objects of a resource, of one namespace or of all, ordered by namespace and name.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Value> {
        let resource = self.named(resource);
        let state = self.lock();
        let objects = state.tables[&resource].iter();
        let objects = objects.filter(|((place, _), _)| namespace.is_none_or(|one| one == place));
        objects.map(|(_, object)| Value::clone(object)).collect()
    }

    /// Creates an object; resource, namespace and name are taken from the object itself.
    ///
    /// # Errors
    /// As the API: `NotFound` for an unknown kind, `AlreadyExists`, `Invalid`.
    pub fn create(&self, object: Value) -> Result<Value, ApiError> {
        let (resource, (namespace, _)) = self.place_of(&object)?;
        let created = self.create_in(&resource, &namespace, object, None)?;
        Ok(Arc::unwrap_or_clone(created))
    }

    /// Creates an object or replaces it, status included, whatever its version is.
    ///
    /// # Errors
    /// `NotFound` for an unknown kind, `Invalid`.
    pub fn apply(&self, object: Value) -> Result<Value, ApiError> {
        let (resource, (namespace, name)) = self.place_of(&object)?;
        if self.get_object(&resource, &namespace, &name).is_err() {
            return self.create(object);
        }
        let replace = |old: &mut Value| *old = object;
        self.update(&resource.full_name(), &namespace, &name, replace)
    }

    /// Changes an object in place, status included; the lock is held meanwhile, so nothing comes in
    /// between.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`.
    ///
    /// # Panics
    /// Without such a resource.
    pub fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, ApiError> {
        let resource = self.named(resource);
        let updated = self.update_in(&resource, namespace, name, None, change)?;
        Ok(Arc::unwrap_or_clone(updated))
    }

    /// Merges a JSON merge patch into an object, status included, whatever its version is.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        self.update(resource, namespace, name, |value| merge(value, patch))
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
        let resource = self.named(resource);
        let deleted = self.delete_in(&resource, namespace, name, &Value::Null, None)?;
        Ok(Arc::unwrap_or_clone(deleted))
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.shared.revision.get()
    }

    /// Waits until the newest revision is another one than this.
    pub async fn changed(&self, seen: u64) {
        self.shared.revision.changed(seen).await;
    }

    /// Forgets all history: watches and begun paged lists from before now answer 410.
    pub fn compact(&self) {
        let mut state = self.lock();
        state.compacted = self.revision();
        state.history.clear();
    }

    /// Ends every open watch.
    pub fn break_watches(&self) {
        self.shared.broken.increase();
    }

    pub(crate) fn get_object(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Value>, ApiError> {
        self.lock().found(resource, namespace, name)
    }

    /// A page of a list; all pages of one list show the moment of its beginning.
    pub(crate) fn page(
        &self,
        resource: &Resource,
        query: &ListQuery,
    ) -> Result<ListPage<Arc<Value>>, ApiError> {
        let state = self.lock();
        let revision = query
            .begun
            .map_or(self.revision(), |(revision, _)| revision);
        let later = state.changes(resource, revision).ok_or_else(|| {
            let why =
                "The provided continue parameter is too old to display a consistent list result.";
            of_code(410, why)
        })?;
        let mut table = state.tables[resource].clone();
        for StoredChange { before, after, .. } in later.into_iter().rev() {
            match before {
                Some(before) => table.insert(key(&before), before),
                None => table.remove(&key(&after)),
            };
        }
        table.retain(|_, object| query.filter.matches(object));
        Ok(ListPage::of(revision, table.into_values(), query))
    }

    /// The changes of a resource after a revision, and the revision up to which that is all.
    pub(crate) fn changes(
        &self,
        resource: &Resource,
        after: u64,
    ) -> Result<(u64, Vec<StoredChange>), ApiError> {
        let state = self.lock();
        let changes = state.changes(resource, after).ok_or_else(|| {
            let oldest = state.compacted + 1;
            of_code(410, format!("too old resource version: {after} ({oldest})"))
        })?;
        Ok((self.revision().max(after), changes))
    }

    /// How often all watches were broken.
    pub(crate) fn breaks(&self) -> &Counter {
        &self.shared.broken
    }

    fn named(&self, name: &str) -> Arc<Resource> {
        let resource = self.find(|resource| resource.full_name() == name);
        resource.expect("the full name of a resource of the server")
    }

    /// Resource, namespace and name of an object.
    fn place_of(&self, object: &Value) -> Result<(Arc<Resource>, ObjectKey), ApiError> {
        let TypeMeta { api_version, kind } = TypeMeta::deserialize(object).unwrap_or_default();
        let resource = self.find(|one| one.kind == kind && one.api_version == api_version);
        let unknown = || of_code(404, format!("no resource holds {kind} of {api_version}"));
        Ok((resource.ok_or_else(unknown)?, key(object)))
    }

    pub(crate) fn find(&self, is: impl Fn(&Resource) -> bool) -> Option<Arc<Resource>> {
        let state = self.lock();
        let mut resources = state.tables.keys();
        resources.find(|resource| is(resource)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.shared.state.lock()
    }
}

impl StoreState {
    fn found(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Value>, ApiError> {
        let found = self.tables[resource].get(&(namespace.to_owned(), name.to_owned()));
        let unknown = || Named::by_plural(resource, name).not_found();
        found.cloned().ok_or_else(unknown)
    }

    /// The changes of a resource after a revision; `None` where some are forgotten.
    fn changes(&self, resource: &Resource, after: u64) -> Option<Vec<StoredChange>> {
        if after < self.compacted {
            return None;
        }
        let history = &self.history;
        let start = history.partition_point(|change| change.revision <= after);
        let news = history.range(start..);
        let news = news.filter(|change| *change.resource == *resource);
        Some(news.cloned().collect())
    }
}

fn key(object: &Value) -> ObjectKey {
    (
        metadata(object, "namespace").to_owned(),
        metadata(object, "name").to_owned(),
    )
}
