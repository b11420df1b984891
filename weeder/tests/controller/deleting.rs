//! One DELETE and its answers.

use std::time::Duration;

use api_server::{Fault, When};
use common::api_failure::ApiFailure;
use common::events::Events;
use common::flags::LeaderElection;
use common::leader_election::{Fence, LeaderElector};
use common::view::Key;
use serde_json::{Value, json};
use weeder::delete::{DeleteResult, delete};
use weeder_core::deletion::{Deletion, Outcome};
use weeder_core::window::OpenReason;

use crate::log::hear;
use crate::world::{ETCD, LOCK, WeederWorld, healthy};

/// A seed with one pod, and the deletion of it as it is now.
async fn one_pod() -> (WeederWorld, Deletion) {
    let world = WeederWorld::new().await;
    world.crash("a", "p");
    let deletion = judged(&world);
    (world, deletion)
}

/// The deletion of the pod as it is now.
fn judged(world: &WeederWorld) -> Deletion {
    let stored = world.server.store().get("pods", "a", "p").unwrap();
    let field = |field| stored["metadata"][field].as_str().unwrap().to_owned();
    let [namespace, name, uid, resource_version] =
        ["namespace", "name", "uid", "resourceVersion"].map(field);
    Deletion {
        pod: Key { namespace, name },
        uid,
        resource_version,
        service: ETCD.into(),
        cause: OpenReason::Recovery,
    }
}

/// Sends it as the leader.
async fn sent(world: &WeederWorld, deletion: &Deletion) -> DeleteResult {
    let client = world.client().await;
    delete(client, &Fence::always_open(), deletion).await
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_through_a_closed_fence() {
    let (world, deletion) = one_pod().await;
    let client = world.client().await;
    let closed = delete(client.clone(), &Fence::always_closed(), &deletion).await;
    let sent = world.server.requests().total();
    assert_eq!((closed, sent), (DeleteResult::NotLeading, 0));
    // Nobody renews: the fence closes after the renew deadline.
    let settings = LeaderElection {
        enabled: true,
        namespace: "garden".to_owned(),
        lease_duration: Duration::from_secs(7),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_secs(1),
    };
    let (me, events) = ("me".to_owned(), Events::none());
    let (mut elector, role) = LeaderElector::new(client.clone(), settings, LOCK, me, events);
    elector.acquire().await;
    world.fails(When::verb("delete", "pods"), Fault::Stall);
    let cut_off = delete(client, &role.write_fence(), &deletion).await;
    assert_eq!(cut_off, DeleteResult::NotLeading);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_deleted_only_as_it_was_when_it_was_judged() {
    let (world, deletion) = one_pod().await;
    let mut another = deletion.clone();
    another.uid = "another".to_owned();
    assert_eq!(sent(&world, &another).await, DeleteResult::Replaced);
    world.apply(healthy("a", "p"));
    assert_eq!(sent(&world, &deletion).await, DeleteResult::Changed);
    let judged = judged(&world);
    for result in [
        DeleteResult::Deleted,
        DeleteResult::Failed(ApiFailure::NotFound),
    ] {
        assert_eq!(sent(&world, &judged).await, result);
    }
}

/// An answer with a Status of this message.
fn answer(code: u16, reason: &str, message: &str) -> Fault {
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message });
    Fault::Answer {
        code,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: status.to_string().into(),
    }
}

#[tokio::test(start_paused = true)]
async fn each_answer_has_its_word() {
    let (world, deletion) = one_pod().await;
    // What the storage says where it finds a precondition that fails.
    let failed = |field| {
        let message = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/a/p, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: {field} in precondition: 7, {field} in object meta: 8"
        );
        answer(409, "Conflict", &message)
    };
    let wait = Duration::from_secs(7);
    for (fault, word, outcome) in [
        (failed("UID"), "replaced", Outcome::Gone),
        (failed("ResourceVersion"), "changed", Outcome::Changed),
        (Fault::throttle(7), "throttled", Outcome::Retry(Some(wait))),
        (Fault::status(409), "conflict", Outcome::Retry(None)),
        (Fault::status(500), "server", Outcome::Unknown),
        (Fault::status(401), "unauthorized", Outcome::Retry(None)),
        (Fault::status(403), "forbidden", Outcome::Refused),
        (Fault::status(422), "refused", Outcome::Refused),
        (Fault::CloseBefore, "no_answer", Outcome::Unknown),
        // It is given up after 10 s.
        (Fault::Stall, "no_answer", Outcome::Unknown),
        (Fault::CloseAfter, "no_answer", Outcome::Unknown),
        (Fault::status(404), "not_found", Outcome::Gone),
    ] {
        world.fails(When::verb("delete", "pods").once(), fault);
        let result = sent(&world, &deletion).await;
        assert_eq!((result.into_str(), result.outcome()), (word, outcome));
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_says_why_a_pod_was_deleted() {
    for (cause, because) in [
        (OpenReason::Recovery, "etcd-main-client is ready again"),
        (OpenReason::Start, "etcd-main-client is ready"),
    ] {
        let (world, deletion) = one_pod().await;
        let (_, lines) = hear(sent(&world, &Deletion { cause, ..deletion })).await;
        let deleted = |line: &&Value| line["msg"] == "crash-looping pod deleted";
        let line = lines.iter().find(deleted).expect("a line");
        assert_eq!(line["because"], because);
    }
    // Or why it was not.
    let (world, deletion) = one_pod().await;
    let reason = "admission webhook \"freeze.example.org\" denied the request:\n  no deletion during the freeze";
    world.fails(
        When::verb("delete", "pods"),
        answer(403, "Forbidden", reason),
    );
    let (_, lines) = hear(sent(&world, &deletion)).await;
    let refused = |line: &&Value| line["msg"] == "pod could not be deleted";
    let logged = lines.iter().find(refused).expect("a line");
    assert_eq!(logged["error"], reason.replace("\n  ", " "));
}
