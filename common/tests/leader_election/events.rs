//! Events as the API server gets them.

use api_server::{Fault, Record, Rule, When};
use common::leader_election::reference;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;

use crate::bed::{ElectionBed, GARDEN, LEASE, LEASES, quick, soon};

const SHOOT: &str = "shoot--a--b";

fn deployment() -> ObjectReference {
    ObjectReference {
        api_version: Some("apps/v1".into()),
        kind: Some("Deployment".into()),
        namespace: Some(SHOOT.into()),
        name: Some("kube-controller-manager".into()),
        uid: Some("u".into()),
        ..ObjectReference::default()
    }
}

/// The Events of a namespace, the oldest first.
fn written(bed: &ElectionBed, namespace: &str) -> Vec<Value> {
    let mut events = bed.server.store().list("events", Some(namespace));
    events.sort_by_key(|event| event["metadata"]["name"].as_str().map(str::to_owned));
    events
}

/// Waits for answered requests for Events.
async fn answered(bed: &ElectionBed, count: usize) {
    let answered = |record: &&Record| record.resource == "events" && record.status.is_some();
    soon(
        bed.server
            .requests()
            .wait_for(|records| (records.iter().filter(answered).count() >= count).then_some(())),
    )
    .await;
}

#[tokio::test]
async fn the_beginning_and_the_end_of_leadership_are_reported_on_the_lease() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    let uid = bed.server.store().get(LEASES, GARDEN, LEASE).unwrap()["metadata"]["uid"].clone();
    replica.end().await;
    let events = written(&bed, GARDEN);
    let messages: Vec<_> = events
        .iter()
        .map(|event| event["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages, ["one became leader", "one stopped leading"]);
    for event in &events {
        let about = &event["involvedObject"];
        assert_eq!(
            (&about["kind"], &about["apiVersion"]),
            (&"Lease".into(), &"coordination.k8s.io/v1".into())
        );
        assert_eq!(
            (&about["namespace"], &about["name"], &about["uid"]),
            (&GARDEN.into(), &LEASE.into(), &uid)
        );
        assert_eq!(
            (&event["reason"], &event["type"], &event["count"]),
            (&"LeaderElection".into(), &"Normal".into(), &1.into())
        );
        assert_eq!(event["source"]["component"], "dependency-watchdog");
        assert!(
            event["firstTimestamp"].is_string()
                && event["firstTimestamp"] == event["lastTimestamp"]
        );
    }
    bed.check();
}

#[tokio::test]
async fn what_was_said_last_of_an_object_is_not_repeated() {
    let bed = ElectionBed::start().await;
    bed.server
        .faults()
        .add(When::verb("create", "events").once(), Fault::status(403));
    let (events, recorder) = bed.recorder();
    let lease = reference(GARDEN, LEASE);
    let work = async {
        // The first is refused, so the second is none that was said already.
        for text in ["down", "down", "down", "up", "down"] {
            events.warning(&lease, "Test", text.into());
        }
        answered(&bed, 4).await;
    };
    recorder.beside(work).await;
    let messages: Vec<_> = written(&bed, GARDEN)
        .iter()
        .map(|event| event["message"].clone())
        .collect();
    assert_eq!(messages, ["down", "up", "down"]);
}

#[tokio::test]
async fn where_events_are_not_allowed_they_go_home_and_name_the_object() {
    let bed = ElectionBed::start().await;
    let (events, recorder) = bed.recorder();
    recorder
        .beside(async {
            events.normal(&deployment(), "Scaled", "to 0".into());
            events.normal(&deployment(), "Scaled", "to 2".into());
            answered(&bed, 2).await;
        })
        .await;
    assert!(written(&bed, SHOOT).is_empty());
    let home = written(&bed, GARDEN);
    assert_eq!(
        home[0]["message"],
        "Deployment shoot--a--b/kube-controller-manager: to 0"
    );
    assert_eq!(home[0]["involvedObject"]["name"], LEASE);
    let reviews = bed
        .server
        .requests()
        .count(|record| record.resource.starts_with("selfsubjectaccessreviews"));
    assert_eq!(reviews, 1);
    bed.check();
}

#[tokio::test]
async fn where_events_are_allowed_they_stand_beside_their_object() {
    let bed = ElectionBed::with(vec![Rule::new("create", "events")]).await;
    let (events, recorder) = bed.recorder();
    recorder
        .beside(async {
            events.normal(&deployment(), "Scaled", "to 0".into());
            answered(&bed, 1).await;
        })
        .await;
    let there = written(&bed, SHOOT);
    assert_eq!(
        (&there[0]["message"], &there[0]["involvedObject"]["uid"]),
        (&"to 0".into(), &"u".into())
    );
    bed.check();
}

#[tokio::test]
async fn an_event_that_is_refused_is_lost_and_counted_and_the_next_one_is_written() {
    let bed = ElectionBed::start().await;
    bed.server
        .faults()
        .add(When::verb("create", "events").once(), Fault::status(403));
    let (events, recorder) = bed.recorder();
    let counter = events.clone();
    recorder
        .beside(async {
            events.normal(&reference(GARDEN, LEASE), "Test", "one".into());
            events.normal(&reference(GARDEN, LEASE), "Test", "two".into());
            answered(&bed, 2).await;
        })
        .await;
    assert_eq!(counter.lost(), 1);
    assert_eq!(written(&bed, GARDEN).len(), 1);
}

#[tokio::test]
async fn an_api_server_that_swallows_events_holds_up_neither_the_work_nor_its_end() {
    let bed = ElectionBed::start().await;
    bed.server
        .faults()
        .add(When::verb("create", "events"), Fault::Stall);
    let (events, recorder) = bed.recorder();
    let begin = tokio::time::Instant::now();
    let done = recorder
        .beside(async {
            for number in 0..5000 {
                events.normal(&reference(GARDEN, LEASE), "Test", number.to_string());
            }
            7
        })
        .await;
    assert_eq!(done, 7);
    assert!(
        begin.elapsed() < std::time::Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    assert!(events.lost() >= 900);
}

#[tokio::test]
async fn as_many_events_as_a_large_seed_brings_at_once_are_all_written() {
    const COUNT: usize = 900;
    let bed = ElectionBed::start().await;
    let (events, recorder) = bed.recorder();
    for number in 0..COUNT {
        events.normal(&reference(GARDEN, LEASE), "Test", number.to_string());
    }
    recorder.beside(answered(&bed, COUNT)).await;
    assert_eq!((written(&bed, GARDEN).len(), events.lost()), (COUNT, 0));
}
