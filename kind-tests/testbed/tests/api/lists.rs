use serde_json::{Value, json};
use testbed::api::{Heart, Nodes};

use crate::client::Bed;

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn node(name: &str, pool: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": pool}}})
}

async fn bed() -> Bed {
    let bed = Bed::start().await;
    for (at, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        bed.server.store().create(node(name, if at % 2 == 0 { "even" } else { "odd" })).unwrap();
    }
    bed
}

#[tokio::test]
async fn all_pages_of_a_list_show_one_moment() {
    let bed = bed().await;
    let first = bed.get("/api/v1/nodes?limit=2").await.json();
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    bed.server.store().delete("nodes", "", "d").unwrap();
    bed.server.store().create(node("cc", "new")).unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = bed.get(&format!("/api/v1/nodes?limit=2&continue={token}")).await.json();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = bed.get(&format!("/api/v1/nodes?limit=2&continue={token}")).await.json();
    assert_eq!((names(&third), &third["metadata"]["continue"]), (vec!["e"], &Value::Null));
}

#[tokio::test]
async fn a_token_from_before_a_compaction_has_expired() {
    let bed = bed().await;
    let first = bed.get("/api/v1/nodes?limit=2").await.json();
    bed.server.store().compact();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let answer = bed.get(&format!("/api/v1/nodes?limit=2&continue={token}")).await;
    assert_eq!((answer.code, answer.json()["reason"].as_str()), (410, Some("Expired")));
    assert_eq!(bed.get("/api/v1/nodes?continue=nonsense").await.code, 400);
}

#[tokio::test]
async fn selectors_narrow_a_list() {
    let bed = bed().await;
    assert_eq!(names(&bed.get("/api/v1/nodes?labelSelector=pool%20notin%20(odd)").await.json()), ["a", "c", "e"]);
    assert_eq!(names(&bed.get("/api/v1/nodes?fieldSelector=metadata.name%3Db").await.json()), ["b"]);
    assert_eq!(bed.get("/api/v1/nodes?labelSelector=a%20b").await.code, 400);
}

#[tokio::test]
async fn a_lagging_cache_answers_only_those_who_allow_it() {
    let bed = bed().await;
    bed.server.store().freeze_cache();
    bed.server.store().delete("nodes", "", "a").unwrap();
    assert_eq!(names(&bed.get("/api/v1/nodes?resourceVersion=0").await.json()).len(), 5);
    assert_eq!(names(&bed.get("/api/v1/nodes").await.json()).len(), 4);
    bed.server.store().thaw_cache();
    assert_eq!(names(&bed.get("/api/v1/nodes?resourceVersion=0").await.json()).len(), 4);
    let ahead = bed.get("/api/v1/nodes?resourceVersion=9999").await;
    assert_eq!((ahead.code, ahead.json()["details"]["retryAfterSeconds"].as_i64()), (504, Some(1)));
}

#[tokio::test]
async fn metadata_alone_is_given_on_request() {
    let bed = bed().await;
    let request =
        bed.request("GET", "/api/v1/nodes").header("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let list = bed.send(request).await.unwrap().json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!((&list["items"][0]["kind"], &list["items"][0]["spec"]), (&json!("PartialObjectMetadata"), &Value::Null));
}

#[tokio::test]
async fn cut_nodes_stop_renewing_and_healed_ones_go_on() {
    let bed = Bed::start().await;
    let store = bed.server.store();
    let heart = Heart { beat: std::time::Duration::from_millis(20), ..Heart::default() };
    let nodes = Nodes::start(store, "n", 2, heart);
    let renewed =
        |name: &str| store.get("leases.coordination.k8s.io", "kube-node-lease", name).unwrap()["spec"]["renewTime"].clone();
    nodes.cut([0]);
    let (cut, alive) = (renewed("n-0"), renewed("n-1"));
    let wait = |name: &'static str, old: Value| {
        let changed = store.wait_for(move |store| {
            let lease = store.get("leases.coordination.k8s.io", "kube-node-lease", name).unwrap();
            (lease["spec"]["renewTime"] != old).then_some(())
        });
        tokio::time::timeout(crate::client::DEADLINE, changed)
    };
    wait("n-1", alive).await.expect("an uncut node renews");
    assert_eq!(renewed("n-0"), cut);
    nodes.skew([0], chrono::TimeDelta::seconds(60));
    nodes.heal_all();
    wait("n-0", cut).await.expect("a healed node renews");
    let stamp = chrono::DateTime::parse_from_rfc3339(renewed("n-0").as_str().unwrap()).unwrap();
    assert!(stamp.signed_duration_since(chrono::Utc::now()) > chrono::TimeDelta::seconds(30), "its clock is ahead");
    drop(nodes);
}
