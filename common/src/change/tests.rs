use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::*;

/// Keeps a ConfigMap's UID, and nothing of those without one.
struct Watch(Changes<String, fn(ConfigMap) -> Option<String>>);

impl Watch {
    fn new() -> Self {
        Self(Changes::new(|object| object.metadata.uid))
    }

    /// What changes with this event; nothing with an object that cannot be understood.
    fn shows(&mut self, event: Event<DeserializeGuard<ConfigMap>>) -> Option<Change<String>> {
        self.0.of(event).unwrap_or_default()
    }

    /// What changes at the end of a list of these.
    fn lists(&mut self, objects: Vec<DeserializeGuard<ConfigMap>>) -> Option<Change<String>> {
        assert_eq!(self.shows(Event::Init), None);
        for object in objects {
            assert_eq!(self.shows(Event::InitApply(object)), None);
        }
        self.shows(Event::InitDone)
    }
}

fn guarded(value: Value) -> DeserializeGuard<ConfigMap> {
    serde_json::from_value(value).expect("a guard takes anything with metadata")
}

fn object(name: &str, uid: &str) -> DeserializeGuard<ConfigMap> {
    guarded(json!({"metadata": {"namespace": "n", "name": name, "uid": uid}}))
}

fn of_no_interest(name: &str) -> DeserializeGuard<ConfigMap> {
    guarded(json!({"metadata": {"namespace": "n", "name": name}}))
}

fn unreadable(name: &str) -> DeserializeGuard<ConfigMap> {
    guarded(json!({"metadata": {"namespace": "n", "name": name, "uid": "u"}, "data": 8}))
}

fn key(name: &str) -> Key {
    Key {
        namespace: "n".to_owned(),
        name: name.to_owned(),
    }
}

fn listed(objects: &[(&str, &str)], unreadable: &[&str]) -> Option<Change<String>> {
    let objects = objects
        .iter()
        .map(|(name, uid)| (key(name), (*uid).to_owned()))
        .collect();
    Some(Change::Listed {
        objects,
        unreadable: unreadable.iter().map(|name| key(name)).collect(),
    })
}

#[test]
fn a_list_is_forwarded_as_a_whole_at_its_end() {
    let mut watch = Watch::new();
    let objects = vec![object("a", "1"), of_no_interest("b"), object("c", "3")];
    assert_eq!(watch.lists(objects), listed(&[("a", "1"), ("c", "3")], &[]));
}

#[test]
fn a_list_after_a_restart_has_only_what_is_there_now() {
    let mut watch = Watch::new();
    watch.lists(vec![object("a", "1"), object("b", "2")]);
    assert_eq!(
        watch.lists(vec![object("b", "2")]),
        listed(&[("b", "2")], &[])
    );
}

#[test]
fn a_list_that_broke_off_leaves_nothing_behind() {
    let mut watch = Watch::new();
    watch.shows(Event::Init);
    watch.shows(Event::InitApply(object("a", "1")));
    watch.shows(Event::InitApply(unreadable("b")));
    assert_eq!(
        watch.lists(vec![object("c", "3")]),
        listed(&[("c", "3")], &[])
    );
}

#[test]
fn changes_are_forwarded_one_by_one_and_in_order() {
    let mut watch = Watch::new();
    watch.lists(vec![]);
    assert_eq!(
        watch.shows(Event::Apply(object("a", "1"))),
        Some(Change::Applied(key("a"), "1".to_owned()))
    );
    assert_eq!(
        watch.shows(Event::Apply(object("a", "2"))),
        Some(Change::Applied(key("a"), "2".to_owned()))
    );
    assert_eq!(
        watch.shows(Event::Apply(of_no_interest("a"))),
        Some(Change::Gone(key("a")))
    );
    assert_eq!(
        watch.shows(Event::Delete(object("a", "2"))),
        Some(Change::Gone(key("a")))
    );
}

#[test]
fn an_object_that_cannot_be_understood_changes_nothing() {
    let mut watch = Watch::new();
    assert_eq!(
        watch.lists(vec![object("a", "1"), unreadable("b")]),
        listed(&[("a", "1")], &["b"])
    );
    assert_eq!(
        watch.0.of(Event::Apply(unreadable("a"))).unwrap_err().key,
        key("a")
    );
    assert_eq!(
        watch.shows(Event::Delete(unreadable("a"))),
        Some(Change::Gone(key("a"))),
        "gone is gone"
    );
}
