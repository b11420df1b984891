use api_server::{Options, Resource, Rule, User};
use serde_json::json;

use crate::client::{ApiBed, deployment};

const KCM: &str = "/apis/apps/v1/namespaces/shoot--demo--a/deployments/kube-controller-manager";

async fn bed() -> ApiBed {
    let bed = ApiBed::start().await;
    bed.server
        .store()
        .create(deployment("shoot--demo--a", "kube-controller-manager", 2))
        .unwrap();
    bed
}

#[tokio::test]
async fn one_merge_patch_writes_annotations_and_replicas_together() {
    let bed = bed().await;
    let before = bed.get(KCM).await.json();
    let version = &before["metadata"]["resourceVersion"];
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": {"a": "1"}}, "spec": {"replicas": 0}});
    let after = bed.patch(KCM, &patch).await;
    assert_eq!(after.code, 200);
    let after = after.json();
    assert_eq!(
        (
            after["spec"]["replicas"].as_i64(),
            after["metadata"]["annotations"]["a"].as_str()
        ),
        (Some(0), Some("1"))
    );
    assert_eq!(after["metadata"]["generation"], 2);
    assert_ne!(&after["metadata"]["resourceVersion"], version);

    let again = bed.patch(KCM, &patch).await;
    assert_eq!(
        (again.code, again.json()["reason"].as_str()),
        (409, Some("Conflict"))
    );
    let removal = bed
        .patch(KCM, &json!({"metadata": {"annotations": {"a": null}}}))
        .await
        .json();
    assert_eq!(
        (
            &removal["metadata"]["annotations"],
            &removal["metadata"]["generation"]
        ),
        (&json!({}), &json!(2))
    );
}

#[tokio::test]
async fn a_write_that_changes_nothing_makes_no_new_version() {
    let bed = bed().await;
    let revision = bed.server.store().revision();
    assert_eq!(
        bed.patch(KCM, &json!({"spec": {"replicas": 2}})).await.code,
        200
    );
    assert_eq!(bed.server.store().revision(), revision);
}

#[tokio::test]
async fn a_foreign_uid_is_refused() {
    let bed = bed().await;
    let patch = bed.patch(KCM, &json!({"metadata": {"uid": "other"}})).await;
    assert_eq!(
        (patch.code, patch.json()["reason"].as_str()),
        (422, Some("Invalid"))
    );
    let mut object = bed.get(KCM).await.json();
    object["metadata"]["uid"] = json!("other");
    assert_eq!(bed.put(KCM, &object).await.code, 409);
    let delete = bed
        .delete(KCM, &json!({"preconditions": {"uid": "other"}}))
        .await;
    let said = delete.json();
    assert_eq!(
        (delete.code, said["details"]["kind"].as_str()),
        (409, Some("Deployment"))
    );
    let message = said["message"].as_str().unwrap();
    let expected = "on Deployment.apps \"kube-controller-manager\": the UID in the precondition (other) does not match the UID in record (";
    assert!(message.contains(expected), "{message}");
}

#[tokio::test]
async fn clients_write_no_status() {
    let bed = bed().await;
    let main = bed
        .patch(
            KCM,
            &json!({"status": {"readyReplicas": 9}, "spec": {"paused": true}}),
        )
        .await
        .json();
    assert_eq!(
        (&main["status"]["readyReplicas"], &main["spec"]["paused"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(
        bed.patch(
            &format!("{KCM}/status"),
            &json!({"status": {"readyReplicas": 1}})
        )
        .await
        .code,
        404
    );
}

#[tokio::test]
async fn a_put_needs_the_newest_version_and_leases_need_one_at_all() {
    let bed = bed().await;
    let old = bed.get(KCM).await.json();
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(1);
    assert_eq!(bed.put(KCM, &new).await.code, 200);
    assert_eq!(bed.put(KCM, &old).await.code, 409);
    new["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    new["spec"]["replicas"] = json!(3);
    assert_eq!(bed.put(KCM, &new).await.json()["spec"]["replicas"], 3);

    let leases = "/apis/coordination.k8s.io/v1/namespaces/garden/leases";
    let lease = json!({"metadata": {"name": "lock"}, "spec": {"holderIdentity": "me"}});
    assert_eq!(bed.post(leases, &lease).await.code, 201);
    let again = bed.post(leases, &lease).await;
    assert_eq!(
        (again.code, again.json()["reason"].as_str()),
        (409, Some("AlreadyExists"))
    );
    assert_eq!(bed.put(&format!("{leases}/lock"), &lease).await.code, 422);
}

#[tokio::test]
async fn replicas_are_read_and_written_through_scale() {
    let widget = Resource::custom("example.org/v1", "widgets", "Widget").with_scale();
    let bed = ApiBed::with(Options {
        resources: vec![widget],
        ..Options::default()
    })
    .await;
    let store = bed.server.store();
    store.create(json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "spec": {"replicas": 3}})).unwrap();
    store
        .create(json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "bare", "namespace": "n"}}))
        .unwrap();
    let path = "/apis/example.org/v1/namespaces/n/widgets/w/scale";
    let mut scale = bed.get(path).await.json();
    assert_eq!(
        (scale["kind"].as_str(), scale["spec"]["replicas"].as_i64()),
        (Some("Scale"), Some(3))
    );
    scale["spec"]["replicas"] = json!(0);
    let written = bed.put(path, &scale).await.json();
    assert_eq!(written["spec"]["replicas"], 0);
    assert_ne!(
        written["metadata"]["resourceVersion"],
        scale["metadata"]["resourceVersion"]
    );
    assert_eq!(bed.put(path, &scale).await.code, 409);
    assert_eq!(
        bed.patch(path, &json!({"spec": {"replicas": -1}}))
            .await
            .code,
        422
    );
    assert_eq!(
        bed.patch(path, &json!({"spec": {"replicas": 5}}))
            .await
            .code,
        200
    );
    assert_eq!(
        store.get("widgets.example.org", "n", "w").unwrap()["spec"]["replicas"],
        5
    );
    assert_eq!(
        bed.get("/apis/example.org/v1/namespaces/n/widgets/bare/scale")
            .await
            .code,
        500
    );
    assert_eq!(
        bed.get("/api/v1/namespaces/n/secrets/s/scale").await.code,
        404
    );
}

#[tokio::test]
async fn finalizers_hold_back_a_deletion() {
    let bed = bed().await;
    bed.patch(KCM, &json!({"metadata": {"finalizers": ["a/b"]}}))
        .await;
    let marked = bed.delete(KCM, &json!({})).await.json();
    assert!(
        marked["metadata"]["deletionTimestamp"].is_string(),
        "{marked}"
    );
    bed.patch(KCM, &json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(bed.get(KCM).await.code, 404);
    let gone = bed.delete(KCM, &json!({})).await;
    assert_eq!(
        (gone.code, gone.json()["reason"].as_str()),
        (404, Some("NotFound"))
    );
}

#[tokio::test]
async fn only_what_the_rules_allow_is_done() {
    let mut bed = bed().await;
    let leases = "leases.coordination.k8s.io";
    let rules = vec![
        Rule::new("get", "deployments.apps"),
        Rule::new("list", "secrets"),
        Rule::new("create", "events"),
        Rule::new("watch", leases)
            .in_namespace("garden")
            .named("lock"),
    ];
    bed.server
        .access()
        .grant("some", User::limited("some", rules));
    bed.token = "some".to_owned();
    assert_eq!(bed.get(KCM).await.code, 200);
    assert_eq!(
        bed.get("/api/v1/namespaces/x/secrets?fieldSelector=metadata.name%3Ds")
            .await
            .code,
        200
    );
    assert_eq!(bed.get("/version").await.code, 200);
    let refused = bed.delete(KCM, &json!({})).await;
    assert_eq!(
        (refused.code, refused.json()["details"]["name"].as_str()),
        (403, Some("kube-controller-manager"))
    );
    assert_eq!(bed.get("/apis/apps/v1/statefulsets").await.code, 403);
    let lock = "/apis/coordination.k8s.io/v1/namespaces/garden/leases";
    assert_eq!(
        bed.get(&format!(
            "{lock}?watch=true&timeoutSeconds=0&fieldSelector=metadata.name%3Dlock"
        ))
        .await
        .code,
        200
    );
    assert_eq!(bed.get(&format!("{lock}?watch=true")).await.code, 403);
    let review = |verb: &str| json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "events", "namespace": "garden"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(
        bed.post(path, &review("create")).await.json()["status"]["allowed"],
        true
    );
    assert_eq!(
        bed.post(path, &review("list")).await.json()["status"]["allowed"],
        false
    );
    bed.token = "nobody".to_owned();
    assert_eq!(bed.get("/version").await.code, 401);
    bed.token = "late".to_owned();
    bed.server.access().grant(
        "late",
        User::limited("late", vec![Rule::new("list", "nodes")]),
    );
    assert_eq!(bed.get("/api/v1/nodes").await.code, 200);
    let log = bed.server.requests();
    assert_eq!(
        log.count(|record| record.user == "late"
            && record.verb == "list"
            && record.status == Some(200)),
        1
    );
    assert_eq!(log.count(|record| record.is_write()), 1);
}
