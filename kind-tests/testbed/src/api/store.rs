//! All objects of one server, with one revision counter over them.
//!
//! ```text
//!  writes ──► tables (newest version of each object) ──► lists, gets
//!        └──► history (bounded) ──► watches
//! ```
//! A [`Store`] is a handle; clones share the content. Everything is synchronous: the lock is held for the length of one read or
//! write, never across an await.

mod admission;
mod observe;
mod read;
mod snapshot;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use serde_json::Value;
use tokio::sync::watch;

use crate::api::{object::Object, resource::Resource, selector::Filter, status::ApiError};

pub(crate) use admission::{find, slot};
use observe::Observer;
pub(in crate::api) use observe::REQUEST;
pub use observe::{Seen, Source};
pub(crate) use snapshot::{List, ListQuery};
pub(crate) use write::{Part, Preconditions};

/// Namespace and name; the namespace of cluster-scoped objects is empty.
type Key = (String, String);
type Objects = BTreeMap<Key, Arc<Object>>;

/// The objects of one API server.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The newest revision, for those who wait for changes.
    revision: watch::Sender<u64>,
    /// Counts how often all watches were broken.
    broken: watch::Sender<u64>,
    /// How many changes the history keeps.
    history: usize,
    observer: OnceLock<Observer>,
}

#[derive(Debug, Default)]
struct State {
    tables: Vec<Table>,
    revision: u64,
    history: VecDeque<Change>,
    /// Changes up to this revision are forgotten.
    compacted: u64,
    snapshots: VecDeque<snapshot::Snapshot>,
    snapshots_made: u64,
    /// What a cache that lags behind answers to reads that allow it.
    lagging: Option<(u64, Vec<Objects>)>,
}

#[derive(Debug)]
struct Table {
    resource: Arc<Resource>,
    objects: Objects,
}

/// One write, as watches see it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub revision: u64,
    pub before: Option<Arc<Object>>,
    /// The version written; of a deletion, the last one under the deletion's revision.
    pub after: Arc<Object>,
    pub deleted: bool,
}

impl Store {
    /// An empty store that remembers the last `history` changes for watches.
    pub fn new(resources: Vec<Resource>, history: usize) -> Self {
        // A new cluster does not begin at 0: a resourceVersion of 0 has a meaning of its own.
        let state = State { revision: 1, ..State::default() };
        let (revision, broken) = (watch::Sender::new(1), watch::Sender::new(0));
        let shared = Shared { state: Mutex::new(state), revision, broken, history, observer: OnceLock::new() };
        let store = Self { shared: Arc::new(shared) };
        for resource in resources {
            store.register(resource);
        }
        store
    }

    /// Adds a resource; one of the same group, version and plural stays as it is.
    pub fn register(&self, resource: Resource) {
        let mut state = self.lock();
        let known = |table: &Table| {
            let old = &table.resource;
            old.group == resource.group && old.version == resource.version && old.plural == resource.plural
        };
        if !state.tables.iter().any(known) {
            state.tables.push(Table { resource: Arc::new(resource), objects: BTreeMap::new() });
        }
    }

    /// All resources, in the order of their registration.
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.lock().tables.iter().map(|table| table.resource.clone()).collect()
    }

    /// The newest version of an object. `resource` is its full name, like `deployments.apps`; `namespace` is empty at cluster scope.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let state = self.lock();
        let table = state.tables.iter().find(|table| table.resource.is_named(resource))?;
        table.objects.get(&(namespace.to_owned(), name.to_owned())).map(|object| object.value.clone())
    }

    /// All objects of a resource, of one namespace or of all, ordered by namespace and name.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Value> {
        let state = self.lock();
        let Some(table) = state.tables.iter().find(|table| table.resource.is_named(resource)) else {
            return Vec::new();
        };
        let wanted = table.objects.iter().filter(|((place, _), _)| namespace.is_none_or(|namespace| namespace == place));
        wanted.map(|(_, object)| object.value.clone()).collect()
    }

    /// Creates an object; resource, namespace and name are taken from the object itself.
    ///
    /// # Errors
    /// As the API: `NotFound` for an unknown kind, `AlreadyExists`, `Invalid`.
    pub fn create(&self, object: Value) -> Result<Value, ApiError> {
        let resource = self.resource_of(&object)?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        Ok(self.create_in(&resource, &namespace, object, Source::Test)?.value.clone())
    }

    /// Creates an object or replaces it, status included, whatever its version is.
    ///
    /// # Errors
    /// `NotFound` for an unknown kind, `Invalid`.
    pub fn apply(&self, object: Value) -> Result<Value, ApiError> {
        let resource = self.resource_of(&object)?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if self.get_object(&resource, &namespace, &name).is_err() {
            return Ok(self.create_in(&resource, &namespace, object, Source::Test)?.value.clone());
        }
        let written = self.update_in(&resource, &namespace, &name, Part::Everything, |_| Ok(object))?;
        Ok(written.value.clone())
    }

    /// Changes an object in place, status included; the lock is held meanwhile, so nothing comes in between.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`.
    pub fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, ApiError> {
        let resource = self.named(resource)?;
        let changed = |old: &Value| {
            let mut value = old.clone();
            change(&mut value);
            Ok(value)
        };
        Ok(self.update_in(&resource, namespace, name, Part::Everything, changed)?.value.clone())
    }

    /// Merges a JSON merge patch into an object, status included, whatever its version is.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`.
    pub fn patch(&self, resource: &str, namespace: &str, name: &str, patch: &Value) -> Result<Value, ApiError> {
        self.update(resource, namespace, name, |value| crate::api::object::merge(value, patch))
    }

    /// Deletes an object; with finalizers it stays, marked as being deleted.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
        let resource = self.named(resource)?;
        let (object, _) = self.delete_in(&resource, namespace, name, &Preconditions::default(), Source::Test)?;
        Ok(object.value.clone())
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Waits until `condition` finds something; it is asked now and after every write. It has no deadline of its own.
    pub async fn wait_for<T>(&self, mut condition: impl FnMut(&Self) -> Option<T>) -> T {
        let mut revision = self.shared.revision.subscribe();
        loop {
            revision.mark_unchanged();
            if let Some(found) = condition(self) {
                return found;
            }
            if revision.changed().await.is_err() {
                // Unreachable while `self` holds the sender; waiting for ever is what the caller asked for then.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Forgets all history and all begun paged lists: watches and pages from before now answer 410.
    pub fn compact(&self) {
        let mut state = self.lock();
        state.compacted = state.revision;
        state.history.clear();
        state.snapshots.clear();
    }

    /// Ends every open watch.
    pub fn break_watches(&self) {
        self.shared.broken.send_modify(|count| *count += 1);
    }

    /// From now on lists and gets with `resourceVersion=0` answer the state of this moment, as a lagging cache does.
    pub fn freeze_cache(&self) {
        let mut state = self.lock();
        state.lagging = Some((state.revision, state.tables.iter().map(|table| table.objects.clone()).collect()));
    }

    /// Ends [`Store::freeze_cache`].
    pub fn thaw_cache(&self) {
        self.lock().lagging = None;
    }

    fn named(&self, name: &str) -> Result<Arc<Resource>, ApiError> {
        let resource = self.resources().into_iter().find(|resource| resource.is_named(name));
        resource.ok_or_else(|| ApiError::of_code(404, format!("no resource is called {name}")))
    }

    fn resource_of(&self, object: &Value) -> Result<Arc<Resource>, ApiError> {
        let (version, kind) = (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
        let resource = self.resources().into_iter().find(|one| one.kind == kind && one.api_version() == version);
        resource.ok_or_else(|| ApiError::of_code(404, format!("no resource holds {kind} of {version}")))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("no panic while the store is locked")
    }
}

impl State {
    fn table(&self, resource: &Resource) -> Result<&Table, ApiError> {
        let table = self.tables.iter().find(|table| *table.resource == *resource);
        table.ok_or_else(|| ApiError::of_code(404, "the server could not find the requested resource"))
    }

    fn table_mut(&mut self, resource: &Resource) -> Result<&mut Table, ApiError> {
        let table = self.tables.iter_mut().find(|table| *table.resource == *resource);
        table.ok_or_else(|| ApiError::of_code(404, "the server could not find the requested resource"))
    }
}

impl Table {
    fn matching(&self, filter: &Filter) -> Vec<Arc<Object>> {
        matching(&self.objects, filter)
    }
}

fn matching(objects: &Objects, filter: &Filter) -> Vec<Arc<Object>> {
    match &filter.namespace {
        Some(namespace) => {
            let from = (namespace.clone(), String::new());
            let inside = objects.range(from..).take_while(|((place, _), _)| place == namespace);
            inside.map(|(_, object)| object).filter(|object| filter.matches(&object.value)).cloned().collect()
        }
        None => objects.values().filter(|object| filter.matches(&object.value)).cloned().collect(),
    }
}
