//! The replica of the prober that answers, and the way to it.

use api_server::{Fault, When};
use serde_json::Value;

use crate::world::{ONE, World, holds, line, until_holds};

/// Requests to a replica on this way, by a proxy or by a port-forward.
fn way(world: &World, pod: &str, way: &str) -> When {
    let address = world.address(pod);
    let (_, port) = address.rsplit_once(':').expect("a port");
    let path = match way {
        "proxy" => format!("{pod}:{port}/proxy/statusz.json"),
        _ => format!("{pod}/{way}"),
    };
    When::request("GET", &format!("/api/v1/namespaces/garden/pods/{path}"))
}

/// Two replicas, of which the first leads.
async fn two() -> World {
    let mut world = World::probed(&[ONE]).await;
    world.join("prober-b").await;
    let page = async || world.page("prober-b", "/statusz.json").await;
    until_holds(&["scale_up"], page).await;
    world
}

#[tokio::test]
async fn the_leader_answers_by_the_proxy_past_a_network_policy_or_else_another_replica() {
    let world = two().await;
    let answered = async |by: &str| {
        let shown = world.text("status").await;
        holds(line(&shown, ONE), &["probed"]);
        let answers = line(&shown, "Prober:").split_whitespace().nth(1);
        assert_eq!(answers, Some(by), "{shown}");
        shown
    };
    let has_forwarded = || {
        let mut asked = world.asked().into_iter();
        asked.any(|record| record.resource == "pods/portforward")
    };
    holds(&answered("prober-a").await, &["(leading, version "]);
    assert!(!has_forwarded());

    // As a NetworkPolicy does it: packets of the API server are swallowed.
    let faults = world.seed.faults();
    faults.add(way(&world, "prober-a", "proxy"), Fault::Stall);
    answered("prober-a").await;
    assert!(has_forwarded());

    faults.add(way(&world, "prober-a", "portforward"), Fault::status(403));
    let shown = answered("prober-b").await;
    let causes = "prober-a does not answer: by pods/proxy: no answer in 2 s; by pods/portforward: ";
    holds(line(&shown, "Missing:"), &[causes, "scripted fault"]);
    holds(&shown, &["(waiting, version "]);
}

#[tokio::test]
async fn a_shoot_whose_probe_by_the_leader_is_overdue_is_shown_by_another_replica() {
    let world = two().await;
    let page = world.page("prober-a", "/statusz.json").await;
    let mut late: Value = serde_json::from_str(&page).expect("JSON");
    late["shoots"][0]["probe"]["overdue"] = true.into();
    late["shoots"][0]["probe"]["nextProbeInSeconds"] = (-60).into();
    let answer = Fault::Answer {
        code: 200,
        headers: Vec::new(),
        body: late.to_string().into(),
    };
    let faults = world.seed.faults();
    faults.add(way(&world, "prober-a", "proxy"), answer);
    let shown = world.text("status").await;
    holds(line(&shown, "Prober:"), &["prober-a"]);
    holds(line(&shown, ONE), &["shown by prober-b"]);
    let shown = world.text("explain shoot--dev--one --check").await;
    let by = "prober-b, since the probe by the one above is overdue";
    holds(line(&shown, "Shown by:"), &[by]);

    // Where nobody is better, the late one is shown, and said to be late.
    for by in ["proxy", "portforward"] {
        faults.add(way(&world, "prober-b", by), Fault::status(403));
    }
    let shown = world.text("status").await;
    holds(line(&shown, ONE), &["its probe is overdue"]);
    world.refused("explain shoot--dev--one --check").await;
}
