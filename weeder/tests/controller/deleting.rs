//! One DELETE and its answers.

use std::time::Duration;

use api_server::{Fault, When};
use common::api_failure::ApiFailure;
use common::leader_election::Fence;
use common::view::Key;
use serde_json::{Value, json};
use testbed::book;
use weeder::delete::{DeleteResult, delete};
use weeder_core::deletion::{Deletion, Outcome};
use weeder_core::window::OpenReason;

use crate::log::hear;
use crate::seed::{ETCD, WeederSeed, healthy};

/// A seed with one pod, and the deletion of it as it is now.
async fn seed() -> (WeederSeed, Deletion) {
    let seed = WeederSeed::start().await;
    seed.crash("a", "p");
    let stored = seed.server.store().get("pods", "a", "p").unwrap();
    let field = |field| stored["metadata"][field].as_str().unwrap().to_owned();
    let [namespace, name, uid, resource_version] =
        ["namespace", "name", "uid", "resourceVersion"].map(field);
    let pod = Key { namespace, name };
    (
        seed,
        Deletion {
            pod,
            uid,
            resource_version,
            service: ETCD.into(),
            cause: OpenReason::Recovery,
        },
    )
}

#[tokio::test]
async fn nothing_is_sent_through_a_closed_fence() {
    let (seed, deletion) = seed().await;
    let answer = delete(seed.client().await, &Fence::always_closed(), &deletion).await;
    assert_eq!(
        (answer, seed.server.requests().total()),
        (DeleteResult::NotLeading, 0)
    );
}

#[tokio::test]
async fn a_pod_is_deleted_only_as_it_was_when_it_was_judged() {
    let (seed, deletion) = seed().await;
    let deleted = async |deletion: &Deletion| {
        delete(seed.client().await, &Fence::always_open(), deletion).await
    };
    let mut another = deletion.clone();
    another.uid = "another".to_owned();
    assert_eq!(deleted(&another).await, DeleteResult::Replaced);
    seed.apply(healthy("a", "p"));
    assert_eq!(deleted(&deletion).await, DeleteResult::Changed);
    let changed = seed.server.store().get("pods", "a", "p").unwrap();
    let mut judged = deletion.clone();
    judged.resource_version = changed["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(deleted(&judged).await, DeleteResult::Deleted);
    assert_eq!(
        deleted(&judged).await,
        DeleteResult::Failed(ApiFailure::NotFound)
    );
}

/// An answer with a Status of this message.
fn answer(code: u16, reason: &str, message: &str) -> Fault {
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let body = status.to_string().into();
    Fault::Answer {
        code,
        headers,
        body,
    }
}

#[tokio::test]
async fn each_answer_has_its_word() {
    let (seed, deletion) = seed().await;
    // What the storage says where it finds a precondition that fails.
    let failed = |field| {
        let message = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/a/p, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: {field} in precondition: 7, {field} in object meta: 8"
        );
        answer(409, "Conflict", &message)
    };
    let wait = Duration::from_secs(7);
    let throttled = Fault::Status {
        code: 429,
        retry_after: Some(7),
    };
    for (fault, word, outcome) in [
        (failed("UID"), "replaced", Outcome::Gone),
        (failed("ResourceVersion"), "changed", Outcome::Changed),
        (throttled, "throttled", Outcome::Retry(Some(wait))),
        (Fault::status(429), "throttled", Outcome::Retry(None)),
        (Fault::status(409), "conflict", Outcome::Retry(None)),
        (Fault::status(500), "server", Outcome::Unknown),
        (Fault::status(503), "server", Outcome::Unknown),
        (Fault::status(401), "unauthorized", Outcome::Retry(None)),
        (Fault::status(403), "forbidden", Outcome::Refused),
        (Fault::CloseBefore, "no_answer", Outcome::Unknown),
        (Fault::CloseAfter, "no_answer", Outcome::Unknown),
        (Fault::status(404), "not_found", Outcome::Gone),
    ] {
        seed.server
            .faults()
            .add(When::verb("delete", "pods").once(), fault);
        let result = delete(seed.client().await, &Fence::always_open(), &deletion).await;
        assert_eq!((result.into_str(), result.outcome()), (word, outcome));
    }
}

#[tokio::test]
async fn the_log_says_why_a_pod_was_deleted() {
    for (cause, because) in [
        (OpenReason::Recovery, "etcd-main-client is ready again"),
        (OpenReason::Start, "etcd-main-client is ready"),
    ] {
        let (seed, deletion) = seed().await;
        let (client, deletion) = (seed.client().await, Deletion { cause, ..deletion });
        let (_, lines) = hear(delete(client, &Fence::always_open(), &deletion)).await;
        let deleted = |line: &&Value| line["msg"] == "crash-looping pod deleted";
        let line = lines.iter().find(deleted).expect("a line");
        assert_eq!(line["because"], because);
    }
}

#[tokio::test]
async fn the_log_says_why_a_delete_was_refused() {
    let (seed, deletion) = seed().await;
    let reason = "admission webhook \"freeze.example.org\" denied the request:\n  no deletion during the freeze";
    seed.server.faults().add(
        When::verb("delete", "pods"),
        answer(403, "Forbidden", reason),
    );
    let client = seed.client().await;
    let (_, lines) = hear(delete(client, &Fence::always_open(), &deletion)).await;
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(book::searches_in_vain("weeder", &text).unwrap(), [""; 0]);
    let logged = lines
        .iter()
        .filter(|line| line["msg"] == "pod could not be deleted");
    let logged: Vec<_> = logged.map(|line| line["error"].as_str().unwrap()).collect();
    assert_eq!(
        logged,
        [
            "admission webhook \"freeze.example.org\" denied the request: no deletion during the freeze"
        ]
    );
}

#[tokio::test]
async fn a_delete_ends_with_the_fence() {
    let (seed, deletion) = seed().await;
    // Nobody renews: the fence closes after the renew deadline.
    let (mut elector, role) = seed.elector(2).await;
    elector.acquire().await;
    seed.server
        .faults()
        .add(When::verb("delete", "pods"), Fault::Stall);
    let answer = delete(seed.client().await, &role.write_fence(), &deletion).await;
    assert_eq!(answer, DeleteResult::NotLeading);
}
