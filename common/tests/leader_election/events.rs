//! Events as the API server gets them.

use std::time::Duration;

use api_server::{Fault, Record, Rule, When};
use common::events::Events;
use common::leader_election::reference;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bed::{ElectionBed, GARDEN, LEASE, soon};

const SHOOT: &str = "shoot--a--b";

fn deployment() -> ObjectReference {
    let [api_version, kind, namespace, name, uid] = [
        "apps/v1",
        "Deployment",
        SHOOT,
        "kube-controller-manager",
        "u",
    ]
    .map(|text| Some(text.to_owned()));
    ObjectReference {
        api_version,
        kind,
        namespace,
        name,
        uid,
        ..ObjectReference::default()
    }
}

/// The Events of a namespace, the oldest first.
fn written(bed: &ElectionBed, namespace: &str) -> Vec<Value> {
    let mut events = bed.server.store().list("events", Some(namespace));
    events.sort_by_key(|event| event["metadata"]["name"].as_str().map(str::to_owned));
    events
}

fn messages(bed: &ElectionBed, namespace: &str) -> Vec<String> {
    let events = written(bed, namespace).into_iter();
    events
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

/// Reports something, and waits for so many answers. Returns how many Events were lost.
async fn reported(bed: &ElectionBed, report: impl FnOnce(&Events), count: usize) -> u64 {
    let (events, recorder) = bed.recorder();
    let is_answered = |record: &&Record| record.resource == "events" && record.status.is_some();
    let answered = bed
        .server
        .requests()
        .wait_for(|records| (records.iter().filter(is_answered).count() >= count).then_some(()));
    let work = async {
        report(&events);
        soon(answered).await;
    };
    recorder.beside(work).await;
    events.lost()
}

#[tokio::test(start_paused = true)]
async fn the_beginning_and_the_end_of_leadership_are_reported_on_the_lease() {
    let bed = ElectionBed::start().await;
    bed.leader().await.end().await;
    assert_eq!(
        messages(&bed, GARDEN),
        ["one became leader", "one stopped leading"]
    );
    let event = written(&bed, GARDEN).remove(0);
    let about = ["kind", "namespace", "name"].map(|field| &event["involvedObject"][field]);
    assert_eq!(json!(about), json!(["Lease", GARDEN, LEASE]));
    bed.check();
}

#[tokio::test(start_paused = true)]
async fn what_was_said_last_of_an_object_is_not_repeated() {
    let bed = ElectionBed::start().await;
    bed.fails(When::verb("create", "events").once(), &Fault::status(403));
    let report = |events: &Events| {
        // The first is refused, so the second is none that was said already.
        for text in ["down", "down", "down", "up", "down"] {
            events.warning(&reference(GARDEN, LEASE), "Test", text.into());
        }
    };
    assert_eq!(reported(&bed, report, 4).await, 1, "lost");
    assert_eq!(messages(&bed, GARDEN), ["down", "up", "down"]);
}

#[tokio::test(start_paused = true)]
async fn where_events_are_not_allowed_they_go_home_and_name_the_object() {
    for (rules, there, home) in [
        (
            vec![],
            &[][..],
            &[
                "Deployment shoot--a--b/kube-controller-manager: to 0",
                "Deployment shoot--a--b/kube-controller-manager: to 2",
            ][..],
        ),
        (vec![Rule::new("create", "events")], &["to 0", "to 2"], &[]),
    ] {
        let bed = ElectionBed::with(rules).await;
        let report = |events: &Events| {
            for text in ["to 0", "to 2"] {
                events.normal(&deployment(), "Scaled", text.into());
            }
        };
        reported(&bed, report, 2).await;
        assert_eq!(
            [messages(&bed, SHOOT), messages(&bed, GARDEN)],
            [there, home]
        );
        let is_review = |record: &Record| record.resource.starts_with("selfsubjectaccessreviews");
        assert_eq!(bed.server.requests().count(is_review), 1);
        bed.check();
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_swallows_events_holds_up_neither_the_work_nor_its_end() {
    let bed = ElectionBed::start().await;
    bed.fails(When::verb("create", "events"), &Fault::Stall);
    let begin = Instant::now();
    let many = |events: &Events| {
        for number in 0..5000 {
            events.normal(&reference(GARDEN, LEASE), "Test", number.to_string());
        }
    };
    let lost = reported(&bed, many, 0).await;
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    assert!(lost >= 900);
}
