use serde_json::{Value, json};

use super::*;
use crate::pod::Pod;

type Names = fn(Pod) -> Option<String>;

/// A forwarder that keeps a pod's UID, and nothing of pods without one.
struct Watch {
    forwarder: ChangeForwarder<String, Names>,
    changes: mpsc::Receiver<Change<String>>,
}

impl Watch {
    fn new() -> Self {
        let (sender, changes) = mpsc::channel(8);
        Self { forwarder: ChangeForwarder::new("pods", |pod| pod.metadata.uid, sender, Metrics::default()), changes }
    }

    /// What is forwarded at this event.
    async fn forwards(&mut self, event: Event<DeserializeGuard<Pod>>) -> Option<Change<String>> {
        let listed = self.forwarder.take(event).await;
        let change = self.changes.try_recv().ok();
        assert_eq!(listed, matches!(change, Some(Change::Listed { .. })), "complete at the end of a list only");
        change
    }

    /// What is forwarded at the end of a list of these.
    async fn lists(&mut self, pods: Vec<DeserializeGuard<Pod>>) -> Option<Change<String>> {
        assert_eq!(self.forwards(Event::Init).await, None);
        for pod in pods {
            assert_eq!(self.forwards(Event::InitApply(pod)).await, None);
        }
        self.forwards(Event::InitDone).await
    }
}

fn guarded(value: Value) -> DeserializeGuard<Pod> {
    serde_json::from_value(value).expect("a guard takes anything with metadata")
}

fn pod(name: &str, uid: &str) -> DeserializeGuard<Pod> {
    guarded(json!({"metadata": {"namespace": "n", "name": name, "uid": uid}}))
}

fn of_no_interest(name: &str) -> DeserializeGuard<Pod> {
    guarded(json!({"metadata": {"namespace": "n", "name": name}}))
}

fn unreadable(name: &str) -> DeserializeGuard<Pod> {
    guarded(json!({"metadata": {"namespace": "n", "name": name, "uid": "u"}, "status": {"containerStatuses": 8}}))
}

fn key(name: &str) -> Key {
    Key { namespace: "n".to_owned(), name: name.to_owned() }
}

fn listed(objects: &[(&str, &str)], unreadable: &[&str]) -> Option<Change<String>> {
    let objects = objects.iter().map(|(name, uid)| (key(name), (*uid).to_owned())).collect();
    Some(Change::Listed { objects, unreadable: unreadable.iter().map(|name| key(name)).collect() })
}

#[tokio::test]
async fn a_list_is_forwarded_as_a_whole_at_its_end() {
    let mut watch = Watch::new();
    let pods = vec![pod("a", "1"), of_no_interest("b"), pod("c", "3")];
    assert_eq!(watch.lists(pods).await, listed(&[("a", "1"), ("c", "3")], &[]));
}

#[tokio::test]
async fn a_list_after_a_restart_has_only_what_is_there_now() {
    let mut watch = Watch::new();
    watch.lists(vec![pod("a", "1"), pod("b", "2")]).await;
    assert_eq!(watch.lists(vec![pod("b", "2")]).await, listed(&[("b", "2")], &[]));
}

#[tokio::test]
async fn a_list_that_broke_off_leaves_nothing_behind() {
    let mut watch = Watch::new();
    watch.forwards(Event::Init).await;
    watch.forwards(Event::InitApply(pod("a", "1"))).await;
    watch.forwards(Event::InitApply(unreadable("b"))).await;
    Follower::<Pod>::broke(&mut watch.forwarder, "cut");
    assert_eq!(watch.changes.try_recv(), Ok(Change::Lost));
    assert_eq!(watch.lists(vec![pod("c", "3")]).await, listed(&[("c", "3")], &[]));
}

#[tokio::test]
async fn changes_are_forwarded_one_by_one_and_in_order() {
    let mut watch = Watch::new();
    watch.lists(vec![]).await;
    assert_eq!(watch.forwards(Event::Apply(pod("a", "1"))).await, Some(Change::Applied(key("a"), "1".to_owned())));
    assert_eq!(watch.forwards(Event::Apply(pod("a", "2"))).await, Some(Change::Applied(key("a"), "2".to_owned())));
    assert_eq!(watch.forwards(Event::Apply(of_no_interest("a"))).await, Some(Change::Gone(key("a"))));
    assert_eq!(watch.forwards(Event::Delete(pod("a", "2"))).await, Some(Change::Gone(key("a"))));
}

#[tokio::test]
async fn an_object_that_cannot_be_understood_changes_nothing() {
    let mut watch = Watch::new();
    assert_eq!(watch.lists(vec![pod("a", "1"), unreadable("b")]).await, listed(&[("a", "1")], &["b"]));
    assert_eq!(watch.forwards(Event::Apply(unreadable("a"))).await, None);
    assert_eq!(watch.forwards(Event::Delete(unreadable("a"))).await, Some(Change::Gone(key("a"))), "gone is gone");
}

#[tokio::test]
async fn a_loss_is_forwarded_at_once_and_in_order_however_many_changes_wait() {
    let mut watch = Watch::new();
    watch.lists(vec![]).await;
    let waiting = watch.changes.max_capacity() - 1;
    for _ in 0..waiting {
        watch.forwarder.take(Event::Apply(pod("a", "1"))).await;
    }
    Follower::<Pod>::broke(&mut watch.forwarder, "cut");
    for _ in 0..waiting {
        assert_eq!(watch.changes.try_recv(), Ok(Change::Applied(key("a"), "1".to_owned())));
    }
    assert_eq!(watch.changes.try_recv(), Ok(Change::Lost));
    watch.lists(vec![]).await;
    Follower::<Pod>::broke(&mut watch.forwarder, "cut again");
    assert_eq!(watch.changes.try_recv(), Ok(Change::Lost));
}
