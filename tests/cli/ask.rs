//! The replica of the prober that answers, and the way to it.

use std::time::Duration;

use api_server::{Fault, When};
use serde_json::{Value, json};

use crate::world::{ONE, World, asking, line, until};

/// Path of a way to a replica.
fn way(world: &World, pod: &str, way: &str) -> String {
    let address = world.address(pod);
    let (_, port) = address.rsplit_once(':').expect("a port");
    match way {
        "proxy" => format!("/api/v1/namespaces/garden/pods/{pod}:{port}/proxy/statusz.json"),
        _ => format!("/api/v1/namespaces/garden/pods/{pod}/{way}"),
    }
}

/// Two replicas, of which the first leads.
async fn two() -> World {
    let mut world = World::probed(&[ONE]).await;
    world.join("prober-b").await;
    let other = format!("http://{}/statusz.json", world.address("prober-b"));
    until("a probe of the other replica", async || {
        let address = other.trim_start_matches("http://");
        let (address, path) = address.split_once('/').expect("a path");
        let page = testbed::page::get(address, &format!("/{path}"), Duration::from_secs(5)).await;
        page.is_ok_and(|(_, text)| text.contains("scale_up"))
    })
    .await;
    world
}

#[tokio::test]
async fn the_leader_answers_by_the_proxy_past_a_network_policy_or_else_another_replica() {
    let world = two().await;
    let answered = async || {
        let shown = world.text(&["status"]).await;
        assert!(line(&shown, ONE).contains("probed"), "{shown}");
        let by = line(&shown, "Prober:").split_whitespace().nth(1);
        (by.map(str::to_owned), shown)
    };
    let (by, shown) = answered().await;
    assert_eq!(by.as_deref(), Some("prober-a"), "{shown}");
    assert!(shown.contains("(leading, version "), "{shown}");
    let asked = world.asked();
    assert!(asked.iter().any(|record| record.resource == "pods/proxy"));
    assert!(
        !asked
            .iter()
            .any(|record| record.resource == "pods/portforward")
    );

    // As a NetworkPolicy does it: packets of the API server are swallowed.
    let swallowed = When::request("GET", &way(&world, "prober-a", "proxy"));
    world.seed.faults().add(swallowed, Fault::Stall);
    let (by, shown) = answered().await;
    assert_eq!(by.as_deref(), Some("prober-a"), "{shown}");
    let asked = world.asked();
    assert!(
        asked
            .iter()
            .any(|record| record.resource == "pods/portforward")
    );

    let forbidden = When::request("GET", &way(&world, "prober-a", "portforward"));
    world.seed.faults().add(forbidden, Fault::status(403));
    let (by, shown) = answered().await;
    assert_eq!(by.as_deref(), Some("prober-b"), "{shown}");
    let missing = line(&shown, "Missing:");
    for part in [
        "prober-a does not answer: by pods/proxy: no answer in 2 s; by pods/portforward: ",
        "scripted fault",
    ] {
        assert!(missing.contains(part), "no {part:?} in {missing}");
    }
    assert!(shown.contains("(waiting, version "), "{shown}");
}

#[tokio::test]
async fn a_shoot_whose_probe_by_the_leader_is_overdue_is_shown_by_another_replica() {
    let world = two().await;
    let (_, page) = testbed::page::get(
        &world.address("prober-a"),
        "/statusz.json",
        Duration::from_secs(5),
    )
    .await
    .expect("a status");
    let mut late: Value = serde_json::from_str(&page).expect("JSON");
    late["shoots"][0]["probe"]["overdue"] = true.into();
    late["shoots"][0]["probe"]["nextProbeInSeconds"] = (-60).into();
    let answer = Fault::Answer {
        code: 200,
        headers: Vec::new(),
        body: late.to_string().into(),
    };
    let proxy = When::request("GET", &way(&world, "prober-a", "proxy"));
    world.seed.faults().add(proxy, answer);
    let shown = world.text(&["status"]).await;
    assert!(line(&shown, "Prober:").contains("prober-a"), "{shown}");
    assert!(line(&shown, ONE).contains("shown by prober-b"), "{shown}");
    let shown = world.text(&["explain", ONE, "--check"]).await;
    let by = "prober-b, since the probe by the one above is overdue";
    assert!(line(&shown, "Shown by:").contains(by), "{shown}");

    // Where nobody is better, the late one is shown, and said to be late.
    let other = When::request("GET", &way(&world, "prober-b", "proxy"));
    world.seed.faults().add(other, Fault::status(403));
    let other = When::request("GET", &way(&world, "prober-b", "portforward"));
    world.seed.faults().add(other, Fault::status(403));
    let shown = world.text(&["status"]).await;
    assert!(
        line(&shown, ONE).contains("its probe is overdue"),
        "{shown}"
    );
    let checked = world.run(&["explain", ONE, "--check"]).await;
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
}

#[tokio::test]
async fn outages_are_those_that_the_prober_has_observed() {
    let world = World::probed(&[ONE]).await;
    let shown = world.text(&["status"]).await;
    assert!(shown.contains("No outage since prober-a began."), "{shown}");
    world.shoots[ONE].1.cut_all();
    until("a record of the outage", async || {
        let shown = world.text(&["explain", ONE]).await;
        shown.contains("The last outages, as prober-a has observed them:")
    })
    .await;
    world.may(&[asking()]);
    let json = world.json(&["status"]).await;
    assert_eq!(json["outages"][0]["namespace"], ONE, "{json}");
    assert_eq!(json["answeredBy"], json!("prober-a"), "{json}");
}
