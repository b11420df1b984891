//! Every state that a dependent resource went through, in the order in which the API server took
//! the writes.

use std::collections::BTreeMap;

use parking_lot::Mutex;

pub use crate::gardener::{IGNORE, PROTECTED as MARKER, REPLICAS as MEMORY};
use serde_json::Value;
use tokio::time::Instant;

use crate::kube_api::ObjectChange;
use crate::objects::metadata;

/// A resource that the prober scales, as far as scenarios read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaState {
    /// spec.replicas.
    pub replicas: i64,
    /// status.readyReplicas.
    pub ready: i64,
    /// The annotation [`MEMORY`].
    pub memory: Option<String>,
    /// The annotation [`MARKER`].
    pub marker: Option<String>,
}

impl ReplicaState {
    /// Reads an object.
    pub fn of(object: &Value) -> Self {
        let annotations = &object["metadata"]["annotations"];
        let annotation = |key: &str| annotations[key].as_str().map(Into::into);
        let count = |part: &str, key: &str| object[part][key].as_i64().unwrap_or_default();
        Self {
            replicas: count("spec", "replicas"),
            ready: count("status", "readyReplicas"),
            memory: annotation(MEMORY),
            marker: annotation(MARKER),
        }
    }

    /// At 0, marked, with this memory.
    pub fn is_held_down(&self, memory: &str) -> bool {
        self.replicas == 0
            && self.memory.as_deref() == Some(memory)
            && self.marker.as_deref() == Some("")
    }

    /// At this many replicas, with no trace of the prober.
    pub fn is_free_at(&self, replicas: i64) -> bool {
        self.replicas == replicas && self.memory.is_none() && self.marker.is_none()
    }
}

/// One state of one resource.
#[derive(Clone, Debug)]
pub struct JournalEntry {
    /// When the watch showed it.
    pub at: Instant,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its state, or none when it was deleted.
    pub state: Option<ReplicaState>,
}

/// All entries of a seed.
#[derive(Default)]
pub struct Journal(Mutex<Vec<JournalEntry>>);

impl Journal {
    pub(super) fn write(&self, change: &ObjectChange) {
        let (object, state) = match change {
            ObjectChange::Set(object) => (object, Some(ReplicaState::of(object))),
            ObjectChange::Gone(object) => (object, None),
        };
        let [namespace, name] = ["namespace", "name"].map(|it| metadata(object, it).to_owned());
        let mut entries = self.0.lock();
        let is_it = |entry: &&JournalEntry| (&entry.namespace, &entry.name) == (&namespace, &name);
        let last = entries.iter().rfind(is_it);
        // A watch that is restarted tells what is known, and a write that changes none of what is
        // read is no entry.
        if last.and_then(|entry| entry.state.as_ref()) != state.as_ref() {
            entries.push(JournalEntry {
                at: Instant::now(),
                namespace,
                name,
                state,
            });
        }
    }

    /// The entries of one namespace.
    pub fn of(&self, namespace: &str) -> Vec<JournalEntry> {
        let entries = self.0.lock();
        let inside = entries.iter().filter(|it| it.namespace == namespace);
        inside.cloned().collect()
    }

    /// The last states of what there is in one namespace, by name.
    pub fn states(&self, namespace: &str) -> BTreeMap<String, ReplicaState> {
        let mut states = BTreeMap::new();
        for entry in self.of(namespace) {
            match entry.state {
                Some(state) => states.insert(entry.name, state),
                None => states.remove(&entry.name),
            };
        }
        states
    }
}
