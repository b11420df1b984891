//! Events as the API server gets them.

use std::sync::Arc;
use std::time::Duration;

use api_server::{Fault, Record, Rule, When};
use common::leader_election::reference;
use tokio::time::{Instant, sleep};

use crate::bed::{Bed, GARDEN, LEASE};

const SHOOT: &str = "shoot--a--b";

/// The Events of a namespace, the oldest first: what they are about, and what they say.
pub fn messages(bed: &Bed, namespace: &str) -> Vec<String> {
    let events = bed.server.store().list("events", Some(namespace));
    let shown = events.iter().map(|event| {
        let [about, said] = [&event["involvedObject"]["name"], &event["message"]];
        format!("{}: {}", about.as_str().unwrap(), said.as_str().unwrap())
    });
    shown.collect()
}

/// Reports this of an object, in work that takes 10 s. Returns how many Events were lost.
async fn report(
    bed: &Arc<Bed>,
    [namespace, name]: [&str; 2],
    texts: impl IntoIterator<Item: ToString>,
) -> u64 {
    let (events, recorder) = bed.link("it").recorder();
    let work = async {
        for text in texts {
            events.normal(&reference(namespace, name), "Test", text.to_string());
        }
        sleep(Duration::from_secs(10)).await;
    };
    recorder.beside(work).await;
    events.lost()
}

#[tokio::test(start_paused = true)]
async fn what_was_said_last_of_an_object_is_not_repeated() {
    let bed = Bed::start().await;
    let refused = When::verb("create", "events").once();
    bed.server.faults().add(refused, Fault::status(403));
    // The first is refused, so the second is none that was said already.
    let texts = ["down", "down", "down", "up", "down"];
    assert_eq!(report(&bed, [GARDEN, LEASE], texts).await, 1, "lost");
    let said = ["down", "up", "down"].map(|text| format!("{LEASE}: {text}"));
    assert_eq!(messages(&bed, GARDEN), said);
}

#[tokio::test(start_paused = true)]
async fn where_events_are_not_allowed_they_go_home_and_name_the_object() {
    for (rules, namespace, told) in [
        (vec![], GARDEN, format!("{LEASE}: Lease {SHOOT}/it: to")),
        (
            vec![Rule::new("create", "events")],
            SHOOT,
            "it: to".to_owned(),
        ),
    ] {
        let bed = Bed::with(0, rules).await;
        report(&bed, [SHOOT, "it"], ["to 0", "to 2"]).await;
        let said = [0, 2].map(|replicas| format!("{told} {replicas}"));
        assert_eq!(messages(&bed, namespace), said);
        let is_review = |record: &Record| record.resource.starts_with("selfsubjectaccessreviews");
        assert_eq!(bed.server.requests().count(is_review), 1);
        bed.check();
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_swallows_events_holds_up_neither_the_work_nor_its_end() {
    let bed = Bed::start().await;
    let events = When::verb("create", "events");
    bed.server.faults().add(events, Fault::Stall);
    let begin = Instant::now();
    let lost = report(&bed, [GARDEN, LEASE], 0..5000).await;
    assert!(
        begin.elapsed() < Duration::from_secs(11) && lost >= 900,
        "{lost}"
    );
}
