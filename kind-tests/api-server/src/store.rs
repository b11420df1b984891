//! All objects of one server, with one revision counter over them.
//!
//! ```text
//!  writes ──► tables (newest version of each object) ──► lists, gets
//!        └──► history (bounded) ──► watches
//! ```
//! A [`Store`] is a handle; clones share the content. Everything is synchronous: the lock is held
//! for the length of one read or write, never across an await.

mod admission;
mod list;
mod observe;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Preconditions;
use kube_core::TypeMeta;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    counter::Counter,
    object::{StoredObject, merge, metadata},
    resource::Resource,
    selector::Filter,
    status::{ApiError, not_found, of_code},
};

pub(crate) use list::ListQuery;
pub use observe::ObservedWrite;
use observe::Observer;

/// Namespace and name; the namespace of cluster-scoped objects is empty.
type ObjectKey = (String, String);
type Table = BTreeMap<ObjectKey, Arc<StoredObject>>;
type Tables = BTreeMap<Arc<Resource>, Table>;

/// The objects of one API server.
#[derive(Clone)]
pub struct Store {
    shared: Arc<StoreShared>,
}

struct StoreShared {
    state: Mutex<StoreState>,
    /// The newest revision, for those who wait for changes.
    revision: Counter,
    /// Counts how often all watches were broken.
    broken: Counter,
    /// How many changes the history keeps.
    history: usize,
    observer: OnceLock<Box<Observer>>,
}

#[derive(Default)]
struct StoreState {
    tables: Tables,
    revision: u64,
    history: VecDeque<StoredChange>,
    /// Changes up to this revision are forgotten.
    compacted: u64,
    snapshots: VecDeque<list::ListSnapshot>,
    snapshots_made: u64,
}

/// One write, as watches see it.
#[derive(Clone, Debug)]
pub(crate) struct StoredChange {
    pub revision: u64,
    pub before: Option<Arc<StoredObject>>,
    /// The version written; of a deletion, the last one under the deletion's revision.
    pub after: Arc<StoredObject>,
    pub deleted: bool,
}

impl Store {
    /// An empty store that remembers the last `history` changes for watches.
    pub fn new(resources: Vec<Resource>, history: usize) -> Self {
        // A new cluster does not begin at 0: a resourceVersion of 0 has a meaning of its own.
        let state = StoreState {
            revision: 1,
            tables: resources
                .into_iter()
                .map(|one| (Arc::new(one), Table::new()))
                .collect(),
            ..StoreState::default()
        };
        let shared = StoreShared {
            state: Mutex::new(state),
            revision: Counter::default(),
            broken: Counter::default(),
            history,
            observer: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// All resources.
    pub(crate) fn resources(&self) -> Vec<Arc<Resource>> {
        self.lock().tables.keys().cloned().collect()
    }

    /// The newest version of an object. `resource` is its full name, like `deployments.apps`;
    /// `namespace` is empty at cluster scope.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.named(resource).ok()?;
        let object = self.get_object(&resource, namespace, name).ok()?;
        Some(object.value.clone())
    }

    /// All objects of a resource, of one namespace or of all, ordered by namespace and name.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Value> {
        let Ok(resource) = self.named(resource) else {
            return Vec::new();
        };
        let filter = Filter {
            namespace: namespace.map(str::to_owned),
            ..Filter::default()
        };
        let objects = matching(&self.lock().tables[&resource], &filter);
        objects.iter().map(|object| object.value.clone()).collect()
    }

    /// Creates an object; resource, namespace and name are taken from the object itself.
    ///
    /// # Errors
    /// As the API: `NotFound` for an unknown kind, `AlreadyExists`, `Invalid`.
    pub fn create(&self, object: Value) -> Result<Value, ApiError> {
        let (resource, (namespace, _)) = self.place_of(&object)?;
        let created = self.create_in(&resource, &namespace, object, None)?;
        Ok(created.value.clone())
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
    pub fn update(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, ApiError> {
        let resource = self.named(resource)?;
        let updated = self.update_in(&resource, namespace, name, None, change)?;
        Ok(updated.value.clone())
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
        let resource = self.named(resource)?;
        let any = Preconditions::default();
        let object = self.delete_in(&resource, namespace, name, &any, None)?;
        Ok(object.value.clone())
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Waits until `condition` finds something; it is checked now and after every write. It has no
    /// deadline of its own.
    pub async fn wait_for<T>(&self, mut condition: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            let seen = self.revisions().get();
            if let Some(found) = condition(self) {
                return found;
            }
            self.revisions().changed(seen).await;
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
        self.shared.broken.increase();
    }

    pub(crate) fn get_object(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<StoredObject>, ApiError> {
        self.lock().found(resource, namespace, name)
    }

    /// The changes of a resource after a revision, and the revision up to which that is all.
    pub(crate) fn changes(
        &self,
        resource: &Resource,
        after: u64,
    ) -> Result<(u64, Vec<StoredChange>), ApiError> {
        let state = self.lock();
        if after < state.compacted {
            let oldest = state.compacted + 1;
            return Err(of_code(
                410,
                format!("too old resource version: {after} ({oldest})"),
            ));
        }
        let start = state
            .history
            .partition_point(|change| change.revision <= after);
        let mut news: Vec<_> = state.history.range(start..).cloned().collect();
        news.retain(|change| *change.after.resource == *resource);
        Ok((state.revision.max(after), news))
    }

    /// The newest revision, to compare with before the objects are read.
    pub(crate) fn revisions(&self) -> &Counter {
        &self.shared.revision
    }

    /// How often all watches were broken.
    pub(crate) fn breaks(&self) -> &Counter {
        &self.shared.broken
    }

    pub(crate) fn resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<Arc<Resource>> {
        self.find(|one| one.plural == plural && one.group == group && one.version == version)
    }

    fn named(&self, name: &str) -> Result<Arc<Resource>, ApiError> {
        let resource = self.find(|resource| resource.full_name() == name);
        resource.ok_or_else(|| of_code(404, format!("no resource is called {name}")))
    }

    /// Resource, namespace and name of an object.
    fn place_of(&self, object: &Value) -> Result<(Arc<Resource>, ObjectKey), ApiError> {
        let TypeMeta { api_version, kind } = TypeMeta::deserialize(object).unwrap_or_default();
        let resource = self.find(|one| one.kind == kind && one.api_version() == api_version);
        let unknown = || of_code(404, format!("no resource holds {kind} of {api_version}"));
        Ok((resource.ok_or_else(unknown)?, key(object)))
    }

    fn find(&self, is: impl Fn(&Resource) -> bool) -> Option<Arc<Resource>> {
        self.lock()
            .tables
            .keys()
            .find(|resource| is(resource))
            .cloned()
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
    ) -> Result<Arc<StoredObject>, ApiError> {
        let found = self.tables[resource].get(&(namespace.to_owned(), name.to_owned()));
        found.cloned().ok_or_else(|| not_found(resource, name))
    }
}

fn key(object: &Value) -> ObjectKey {
    (
        metadata(object, "namespace").to_owned(),
        metadata(object, "name").to_owned(),
    )
}

fn matching(table: &Table, filter: &Filter) -> Vec<Arc<StoredObject>> {
    let from = (filter.namespace.clone().unwrap_or_default(), String::new());
    let inside = |place: &String| filter.namespace.as_ref().is_none_or(|one| one == place);
    let objects = table
        .range(from..)
        .take_while(|((place, _), _)| inside(place));
    let objects = objects.map(|(_, object)| object);
    objects
        .filter(|object| filter.matches(&object.value))
        .cloned()
        .collect()
}
