use serde_json::{Value, json};

use crate::client::ApiBed;

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

fn node(name: &str, pool: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": pool}}})
}

async fn bed() -> ApiBed {
    let bed = ApiBed::start().await;
    for (at, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        bed.server
            .store()
            .create(node(name, if at % 2 == 0 { "even" } else { "odd" }))
            .unwrap();
    }
    bed
}

#[tokio::test]
async fn all_pages_of_a_list_show_one_moment() {
    let bed = bed().await;
    let first = bed.get("/api/v1/nodes?limit=2").await.json();
    assert_eq!(
        (names(&first), &first["metadata"]["remainingItemCount"]),
        (vec!["a", "b"], &json!(3))
    );
    bed.server.store().delete("nodes", "", "d").unwrap();
    bed.server.store().create(node("cc", "new")).unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = bed
        .get(&format!("/api/v1/nodes?limit=2&continue={token}"))
        .await
        .json();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = bed
        .get(&format!("/api/v1/nodes?limit=2&continue={token}"))
        .await
        .json();
    assert_eq!(
        (names(&third), &third["metadata"]["continue"]),
        (vec!["e"], &Value::Null)
    );
}

#[tokio::test]
async fn a_token_from_before_a_compaction_has_expired() {
    let bed = bed().await;
    let first = bed.get("/api/v1/nodes?limit=2").await.json();
    bed.server.store().compact();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let answer = bed
        .get(&format!("/api/v1/nodes?limit=2&continue={token}"))
        .await;
    assert_eq!(
        (answer.code, answer.json()["reason"].as_str()),
        (410, Some("Expired"))
    );
    assert_eq!(bed.get("/api/v1/nodes?continue=nonsense").await.code, 400);
}

#[tokio::test]
async fn selectors_narrow_a_list() {
    let bed = bed().await;
    assert_eq!(
        names(
            &bed.get("/api/v1/nodes?labelSelector=pool%20notin%20(odd)")
                .await
                .json()
        ),
        ["a", "c", "e"]
    );
    assert_eq!(
        names(
            &bed.get("/api/v1/nodes?fieldSelector=metadata.name%3Db")
                .await
                .json()
        ),
        ["b"]
    );
    assert_eq!(bed.get("/api/v1/nodes?labelSelector=a%20b").await.code, 400);
}

#[tokio::test]
async fn a_lagging_cache_answers_only_those_who_allow_it() {
    let bed = bed().await;
    bed.server.store().freeze_cache();
    bed.server.store().delete("nodes", "", "a").unwrap();
    assert_eq!(
        names(&bed.get("/api/v1/nodes?resourceVersion=0").await.json()).len(),
        5
    );
    assert_eq!(names(&bed.get("/api/v1/nodes").await.json()).len(), 4);
}
