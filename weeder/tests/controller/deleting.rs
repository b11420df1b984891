//! One DELETE and its answers.

use std::time::Duration;

use api_server::{Fault, When};
use common::api_failure::ApiFailure;
use common::events::Events;
use common::flags::LeaderElection;
use common::leader_election::{Fence, LeaderElector};
use common::view::Key;
use serde_json::json;
use testbed::book;
use weeder::delete::{DeleteResult, delete};
use weeder_core::deletion::{Deletion, Outcome};

use crate::log::hear;
use crate::seed::{WeederSeed, healthy, pod};

/// A seed with one pod, and the deletion of it as it is now.
async fn seed() -> (WeederSeed, Deletion) {
    let seed = WeederSeed::start().await;
    seed.apply(pod("a", "p", "apiserver"));
    let stored = seed.server.store().get("pods", "a", "p").unwrap();
    let [uid, resource_version] = ["uid", "resourceVersion"]
        .map(|field| stored["metadata"][field].as_str().unwrap().to_owned());
    let pod = Key {
        namespace: "a".to_owned(),
        name: "p".to_owned(),
    };
    (
        seed,
        Deletion {
            pod,
            uid,
            resource_version,
        },
    )
}

#[tokio::test]
async fn nothing_is_sent_through_a_closed_fence() {
    let (seed, deletion) = seed().await;
    let fence = Fence::always_closed();
    assert_eq!(
        delete(seed.client().await, &fence, &deletion).await,
        DeleteResult::NotLeading
    );
    assert_eq!(seed.server.requests().total(), 0);
}

#[tokio::test]
async fn the_uid_decides_which_pod_is_meant() {
    let (seed, deletion) = seed().await;
    let fence = Fence::always_open();
    let another = Deletion {
        uid: "another".to_owned(),
        ..deletion.clone()
    };
    assert_eq!(
        delete(seed.client().await, &fence, &another).await,
        DeleteResult::Replaced
    );
    assert!(seed.has("a", "p"));
    assert_eq!(
        delete(seed.client().await, &fence, &deletion).await,
        DeleteResult::Deleted
    );
    assert_eq!(
        delete(seed.client().await, &fence, &deletion).await,
        DeleteResult::Failed(ApiFailure::NotFound)
    );
}

#[tokio::test]
async fn a_pod_is_deleted_only_as_it_was_when_it_was_judged() {
    let (seed, deletion) = seed().await;
    seed.apply(healthy("a", "p", "apiserver"));
    let answer = delete(seed.client().await, &Fence::always_open(), &deletion).await;
    assert_eq!(
        (answer, answer.into_str(), answer.outcome()),
        (DeleteResult::Changed, "changed", Outcome::Changed)
    );
    assert!(seed.has("a", "p"));
}

#[tokio::test]
async fn a_precondition_that_fails_is_known_by_the_words_of_the_storage_too() {
    let (seed, deletion) = seed().await;
    for (field, answer) in [
        ("UID", DeleteResult::Replaced),
        ("ResourceVersion", DeleteResult::Changed),
    ] {
        let failed = conflict(&format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/a/p, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: {field} in precondition: 7, {field} in object meta: 8"
        ));
        seed.server
            .faults()
            .add(When::verb("delete", "pods").once(), failed);
        let given = delete(seed.client().await, &Fence::always_open(), &deletion).await;
        assert_eq!(given, answer);
    }
}

fn conflict(message: &str) -> Fault {
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": message });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Fault::Answer {
        code: 409,
        headers,
        body: status.to_string().into(),
    }
}

#[tokio::test]
async fn each_answer_has_its_word() {
    let (seed, deletion) = seed().await;
    let cases = [
        (
            Fault::Status {
                code: 429,
                retry_after: Some(7),
            },
            DeleteResult::Failed(ApiFailure::Throttled(Some(Duration::from_secs(7)))),
            "throttled",
        ),
        (
            Fault::status(429),
            DeleteResult::Failed(ApiFailure::Throttled(None)),
            "throttled",
        ),
        (
            Fault::status(409),
            DeleteResult::Failed(ApiFailure::Conflict),
            "conflict",
        ),
        (
            Fault::status(500),
            DeleteResult::Failed(ApiFailure::Server),
            "server",
        ),
        (
            Fault::status(503),
            DeleteResult::Failed(ApiFailure::Server),
            "server",
        ),
        (
            Fault::status(401),
            DeleteResult::Failed(ApiFailure::Unauthorized),
            "unauthorized",
        ),
        (
            Fault::status(403),
            DeleteResult::Failed(ApiFailure::Forbidden),
            "forbidden",
        ),
        (
            Fault::CloseBefore,
            DeleteResult::Failed(ApiFailure::NoAnswer),
            "no_answer",
        ),
    ];
    for (fault, answer, word) in cases {
        seed.server
            .faults()
            .add(When::verb("delete", "pods").once(), fault);
        let given = delete(seed.client().await, &Fence::always_open(), &deletion).await;
        assert_eq!((given, given.into_str()), (answer, word));
    }
    assert!(seed.has("a", "p"));
}

#[tokio::test]
async fn the_log_says_why_a_delete_was_refused() {
    let (seed, deletion) = seed().await;
    let reason = "admission webhook \"freeze.example.org\" denied the request:\n  no deletion during the freeze";
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": reason });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let refusal = Fault::Answer {
        code: 403,
        headers,
        body: status.to_string().into(),
    };
    seed.server
        .faults()
        .add(When::verb("delete", "pods").once(), refusal);
    let client = seed.client().await;
    let (answer, lines) = hear(delete(client, &Fence::always_open(), &deletion)).await;
    assert_eq!(answer, DeleteResult::Failed(ApiFailure::Forbidden));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(
        book::searches_in_vain("weeder", &text).unwrap(),
        Vec::<String>::new()
    );
    let logged: Vec<_> = lines
        .iter()
        .filter(|line| line["msg"] == "pod could not be deleted")
        .collect();
    let said = "admission webhook \"freeze.example.org\" denied the request: no deletion during the freeze";
    assert_eq!(
        (logged.len(), &logged[0]["error"]),
        (1, &json!(said)),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_delete_ends_with_the_fence() {
    let (seed, deletion) = seed().await;
    // One that nobody renews: the fence closes after the renew deadline.
    let settings = LeaderElection {
        enabled: true,
        namespace: "garden".to_owned(),
        lease_duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_secs(1),
    };
    let (lease, identity) = ("dwd-weeder-leader-election", "me".to_owned());
    let client = seed.client().await;
    let (mut elector, role) = LeaderElector::new(client, settings, lease, identity, Events::none());
    let fence = role.write_fence();
    elector.acquire().await;
    seed.server
        .faults()
        .add(When::verb("delete", "pods"), Fault::Stall);
    assert_eq!(
        delete(seed.client().await, &fence, &deletion).await,
        DeleteResult::NotLeading
    );
    assert!(seed.has("a", "p"));
}
