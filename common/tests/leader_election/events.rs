//! Events as the API server gets them.

use std::sync::Arc;
use std::time::Duration;

use api_server::{Fault, When};
use common::metrics::Registry;
use prometheus_client::encoding::text::encode;
use tokio::time::sleep;

use crate::bed::{Bed, GARDEN, LEASE, MOMENT};

/// The messages of the Events of a namespace, the oldest first. All are about the Lease.
pub fn messages(bed: &Bed, namespace: &str) -> Vec<String> {
    let events = bed.server.store().list("events", Some(namespace));
    let shown = events.iter().map(|event| {
        let about = &event["involvedObject"];
        assert_eq!(
            (&about["kind"], &about["name"]),
            (&"Lease".into(), &LEASE.into())
        );
        event["message"].as_str().unwrap().to_owned()
    });
    shown.collect()
}

/// Reports these texts of things, and waits for some seconds. Returns how many Events were lost.
async fn report(
    bed: &Arc<Bed>,
    texts: impl IntoIterator<Item = (&str, String)>,
    seconds: u64,
) -> u64 {
    let (events, _recorder) = bed.link("it").events();
    let mut registry = Registry::default();
    events.register(&mut registry);
    for (about, text) in texts {
        events.normal(about, "Test", &text);
    }
    sleep(Duration::from_secs(seconds)).await;
    let mut shown = String::new();
    encode(&mut shown, &registry).unwrap();
    let lost = shown
        .lines()
        .find_map(|line| line.strip_prefix("dwd_events_lost_total "));
    lost.unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_was_said_last_of_an_object_is_not_repeated() {
    let bed = Bed::start().await;
    let refused = When::verb("create", "events").once();
    bed.server.faults().add(refused, Fault::status(403));
    // The first is refused, so the second is none that was said already.
    let texts = [
        "a down", "a down", "a down", "b down", "a down", "a up", "a down",
    ];
    let texts = texts.map(|text| text.split_once(' ').unwrap());
    let said = || texts.map(|(about, text)| (about, text.to_owned()));
    assert_eq!(report(&bed, said(), 10).await, 1, "lost");
    let once = ["a: down", "b: down", "a: up", "a: down"];
    assert_eq!(messages(&bed, GARDEN), once);
}

#[tokio::test(start_paused = true)]
async fn events_are_about_the_lease_and_name_the_object() {
    let bed = Bed::start().await;
    let long = "é".repeat(1024);
    let said = [("", "it"), ("shoot--a--b", "it"), ("x", &long)];
    let said = said.map(|(about, text)| (about, text.to_owned()));
    assert_eq!(report(&bed, said, 10).await, 0);
    let cut = format!("x: {}", "é".repeat(510));
    assert_eq!(messages(&bed, GARDEN), ["it", "shoot--a--b: it", &cut]);
    bed.check();
}

#[tokio::test(start_paused = true)]
async fn an_event_is_not_repeated_for_ten_minutes() {
    let bed = Bed::start().await;
    let (events, _recorder) = bed.link("it").events();
    for (seconds, written) in [(0, 1), (590, 1), (20, 2)] {
        sleep(Duration::from_secs(seconds)).await;
        events.normal("", "Test", "it");
        sleep(MOMENT).await;
        assert_eq!(messages(&bed, GARDEN).len(), written, "{seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_swallows_events_holds_up_nothing() {
    let bed = Bed::start().await;
    let events = When::verb("create", "events");
    bed.server.faults().add(events, Fault::Stall);
    let texts = (0..5000).map(|number| ("", number.to_string()));
    // The queue holds 4,096, and two requests were given up.
    let lost = report(&bed, texts, 11).await;
    assert_eq!(lost, 5000 - 4096 + 2);
}
