//! From the events of a watch to changes.

use std::collections::{HashMap, HashSet};

pub use common_core::change::{Change, Key};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

pub fn key_of(object: &impl Resource) -> Key {
    Key {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) key: Key,
    pub(crate) error: String,
}

pub(crate) struct Changes<V, P> {
    /// Turns an object into what is kept of it; none keeps nothing.
    prune: P,
    /// Of a list that is not complete yet.
    objects: HashMap<Key, V>,
    unreadable: HashSet<Key>,
}

impl<V, P> Changes<V, P> {
    pub(crate) fn new(prune: P) -> Self {
        Self {
            prune,
            objects: HashMap::new(),
            unreadable: HashSet::new(),
        }
    }

    /// What changed with this event, if anything did already.
    pub(crate) fn of<K: Resource>(
        &mut self,
        event: Event<DeserializeGuard<K>>,
    ) -> Result<Option<Change<V>>, Unreadable>
    where
        P: FnMut(K) -> Option<V>,
    {
        Ok(match event {
            Event::Init => {
                self.objects.clear();
                self.unreadable.clear();
                None
            }
            Event::InitApply(object) => {
                let pruned = self.pruned(object);
                if let Err(Unreadable { key, .. }) = &pruned {
                    self.unreadable.insert(key.clone());
                }
                let (key, value) = pruned?;
                self.objects.extend(value.map(|value| (key, value)));
                None
            }
            Event::InitDone => {
                let objects = std::mem::take(&mut self.objects);
                Some(Change::Listed {
                    objects,
                    unreadable: std::mem::take(&mut self.unreadable),
                })
            }
            Event::Apply(object) => Some(match self.pruned(object)? {
                (key, Some(value)) => Change::Applied(key, value),
                (key, None) => Change::Gone(key),
            }),
            Event::Delete(object) => Some(Change::Gone(key_of(&object))),
        })
    }

    fn pruned<K: Resource>(
        &mut self,
        object: DeserializeGuard<K>,
    ) -> Result<(Key, Option<V>), Unreadable>
    where
        P: FnMut(K) -> Option<V>,
    {
        let key = key_of(&object);
        match object.0 {
            Ok(object) => Ok((key, (self.prune)(object))),
            Err(error) => Err(Unreadable {
                key,
                error: error.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
