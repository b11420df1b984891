//! Notifies an observer of every write, in order, at the moment at which it is made.

use serde_json::Value;

use super::Store;
use crate::requests::Record;
use crate::resource::Resource;

/// One write.
#[derive(Clone, Copy, Debug)]
pub struct ObservedWrite<'a> {
    /// Of what resource.
    pub resource: &'a Resource,
    /// The object before; none when it was created.
    pub before: Option<&'a Value>,
    /// The object as written; of a deletion, as it was last.
    pub after: &'a Value,
    /// Whether it is gone.
    pub deleted: bool,
    /// The client's request; none for the test's own writes.
    pub request: Option<&'a Record>,
}

pub(super) type Observer = dyn Fn(&ObservedWrite<'_>) + Send + Sync;

impl Store {
    /// From now on notifies `observer` of every write, in order; there is one observer at most, the
    /// first. It is called while the store is locked, so it must be quick and must not use the
    /// store.
    pub fn observe(&self, observer: impl Fn(&ObservedWrite<'_>) + Send + Sync + 'static) {
        // An observer that is there already stays.
        self.shared.observer.set(Box::new(observer)).ok();
    }
}
