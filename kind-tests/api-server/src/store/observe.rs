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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_observer_sees_every_write_with_what_was_before() {
        let store = Store::new(Resource::built_in(), 4);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        store.observe(move |write| {
            let replicas = |value: &Value| value["data"]["n"].as_str().map(str::to_owned);
            let line = (
                write.before.and_then(replicas),
                replicas(write.after),
                write.deleted,
                write.request.is_some(),
            );
            sink.lock().push(line);
        });
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": {"n": "1"}});
        store.create(object).unwrap();
        store
            .patch("configmaps", "b", "a", &json!({"data": {"n": "2"}}))
            .unwrap();
        store
            .patch("configmaps", "b", "a", &json!({"data": {"n": "2"}}))
            .unwrap();
        store.delete("configmaps", "b", "a").unwrap();
        let word = |text: &str| Some(text.to_owned());
        let expected = [
            (None, word("1"), false, false),
            (word("1"), word("2"), false, false),
            (word("2"), word("2"), true, false),
        ];
        assert_eq!(*seen.lock(), expected);
    }
}
