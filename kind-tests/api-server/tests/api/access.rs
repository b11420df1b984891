use api_server::{Rule, User};
use serde_json::json;

use crate::client::{ApiBed, deployment};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/n/deployments/d";

async fn bed() -> ApiBed {
    let bed = ApiBed::start().await;
    bed.server.store().create(deployment("n", "d", 2)).unwrap();
    bed
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
    assert_eq!(bed.get(DEPLOYMENT).await.code, 200);
    assert_eq!(
        bed.get("/api/v1/namespaces/x/secrets?fieldSelector=metadata.name%3Ds")
            .await
            .code,
        200
    );
    assert_eq!(bed.get("/version").await.code, 200);
    let refused = bed.send(bed.request("DELETE", DEPLOYMENT)).await.unwrap();
    assert_eq!(
        (refused.code, refused.json()["details"]["name"].as_str()),
        (403, Some("d"))
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
