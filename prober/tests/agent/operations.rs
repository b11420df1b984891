//! What operators see: metrics, health, Events.

use std::collections::BTreeSet;

use api_server::{Fault, When};
use serde_json::json;
use testbed::gardener;
use testbed::page::ScrapedMetrics;

use super::world::{CA, CONFIG, DEPLOYMENTS, KCM, MACHINES, NAMESPACE, ProberWorld, at, held};

/// Whether the seed's objects are known.
const KNOWN: &str = "dwd_seed_known";

/// The config with one more dependent.
fn with_dependent(reference: &str) -> String {
    format!(
        "{CONFIG}- ref: {{{reference}}}\n  optional: true\n  scaleUp: {{}}\n  scaleDown: {{}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn health_and_readiness_are_served() {
    // Neither a seed that knows no machines (D-55) nor a kind that does not exist hinders them.
    let world = ProberWorld::new().await;
    let groups = Fault::Answer {
        code: 200,
        headers: vec![],
        body: r#"{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps", "versions": []}]}"#.into(),
    };
    world.fails(When::request("GET", "/apis"), groups);
    world.fails(When::verb("list", MACHINES), Fault::status(404));
    let nothing = "kind: Nothing, name: nothing, apiVersion: none.example.org/v1";
    let world = world.started(&with_dependent(nothing)).await;
    world.until_metric(KNOWN, 1.0).await;
    for (path, line) in [
        ("/healthz", "[+]probes ok"),
        ("/readyz", "[+]seed ok"),
        ("/readyz", "[+]requests ok"),
    ] {
        let (status, body) = world.get(path).await;
        assert!(status == 200 && body.contains(line), "{body}");
    }
    world.nodes.cut_all();
    // In half of this time the leases expire; without a Machine nothing is concluded.
    world.probes(8).await;
    assert_eq!(world.written(), [""; 0]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_prober_that_cannot_list_something_it_works_by_shows_that_it_is_blind() {
    let resources = [
        MACHINES,
        "secrets",
        DEPLOYMENTS,
        "clusters.extensions.gardener.cloud",
    ];
    for resource in resources {
        let mut world = ProberWorld::new().await;
        let refused = world.fails(When::verb("list", resource), Fault::status(503));
        world.start(CONFIG);
        world.met(refused, 5).await;
        world.until_metric(KNOWN, 0.0).await;
        world.seed.faults().remove(refused);
        world.until_metric(KNOWN, 1.0).await;
        world.probes(1).await;
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_nested_deeply_or_cannot_be_read_harms_no_other() {
    let world = ProberWorld::new().await;
    let mut deep = gardener::cluster("shoot--p--deep", None);
    gardener::nest_deeply(&mut deep);
    let mut machine = gardener::machine("shoot--p--deep", "broken");
    machine["status"]["currentStatus"] = json!(8);
    world.apply(deep.clone());
    world.apply(machine.clone());
    let world = world.started(CONFIG).await;
    let unreadable = |resource| format!("dwd_unreadable_objects_total{{resource=\"{resource}\"}}");
    world.until_metric(&unreadable("machines"), 1.0).await;
    // The same in a watch.
    for mut object in [deep, machine] {
        object["metadata"]["labels"] = json!({"a": "b"});
        world.apply(object);
    }
    world.until_metric(&unreadable("machines"), 2.0).await;
    world.until_metric(&unreadable("clusters"), 0.0).await;
    world.outage().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_shows_in_the_metrics_and_its_end_too() {
    let world = ProberWorld::running().await;
    let kcm = format!("kind=\"Deployment\",name=\"{KCM}\"");
    let host = world.seed.address();
    let held_down = format!("dwd_held_down{{{kcm}}}");
    for (series, value) in [
        ("dwd_shoots{state=\"probed\"}", 1.0),
        ("dwd_leases{state=\"candidate\"}", 3.0),
    ] {
        world.until_metric(series, value).await;
    }
    world.outage().await;
    for (series, value) in [
        (
            &*format!("dwd_scale_operations_total{{direction=\"down\",{kcm},result=\"written\"}}"),
            1.0,
        ),
        (&held_down, 1.0),
        ("dwd_leases{state=\"expired\"}", 3.0),
        (
            &format!("rest_client_requests_total{{code=\"200\",method=\"PATCH\",host=\"{host}\"}}"),
            3.0,
        ),
    ] {
        world.until_metric(series, value).await;
    }
    let event = world.event("ScaledDown", KCM).await;
    assert_eq!(
        (&event["type"], &event["metadata"]["namespace"]),
        (&json!("Warning"), &json!("garden"))
    );
    assert!(event["message"].to_string().contains(NAMESPACE), "{event}");
    world.recovery().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_it_would_write_once_and_writes_nothing() {
    let mut world = ProberWorld::new().await;
    world.flags = vec!["--dry-run", "--enable-leader-election=true"];
    let world = world.started(CONFIG).await;
    let would = |way: &str| {
        format!(
            "dwd_dry_run_writes_total{{direction=\"{way}\",kind=\"Deployment\",name=\"{KCM}\"}}"
        )
    };
    world.nodes.cut_all();
    world.until_expired(3.0).await;
    world.until_metric(&would("down"), 1.0).await;
    world.hold_down(KCM, "2");
    world.nodes.heal_all();
    world.until_expired(0.0).await;
    world.until_metric(&would("up"), 1.0).await;
    let writes = world.seed.requests().writes();
    assert_eq!(writes, 0, "no scaling, no Lease, no Event");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_documented_and_every_documented_metric_is_served() {
    let mut world = ProberWorld::new().await;
    world.flags = vec!["--metrics-per-shoot"];
    let world = world.started(CONFIG).await;
    let own = format!("dwd_shoot_leases{{shoot=\"{NAMESPACE}\",state=\"candidate\"}}");
    world.until_metric(&own, 3.0).await;
    world.outage().await;
    let (_, text) = world.get("/metrics").await;
    let scraped = ScrapedMetrics::read(&text).expect("metrics");
    let shown: BTreeSet<&str> = scraped.types.keys().map(String::as_str).collect();
    let sections = include_str!("../../../docs/metrics.md").split("\n## ");
    let ours = sections
        .filter(|section| section.starts_with("Prober") || section.starts_with("Both agents"));
    let name = |line: &'static str| line.strip_prefix("| `")?.split(['`', '{']).next();
    let mut documented: BTreeSet<_> = ours.flat_map(str::lines).filter_map(name).collect();
    // Shown only where there is an election, no writing, or a controller that cannot be scaled; this
    // prober runs alone and writes.
    for name in [
        "leader_election_master_status",
        "dwd_dry_run_writes_total",
        "dwd_left_behind_total",
    ] {
        assert!(documented.remove(name), "{name}");
    }
    assert_eq!(shown, documented);
    world.end().await;
}

#[tokio::test]
async fn metrics_are_open_metrics_whatever_is_accepted_and_a_shoot_is_no_label() {
    let world = ProberWorld::running().await;
    let url = format!("http://{}/metrics", world.served_at()[0]);
    for accept in [
        "text/plain;version=0.0.4",
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
    ] {
        let request = reqwest::Client::new().get(&url).header("accept", accept);
        let answer = request.send().await.expect("an answer");
        let expected = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert_eq!(answer.headers()["content-type"], expected);
        let text = answer.text().await.expect("text");
        assert!(
            text.ends_with("# EOF\n") && !text.contains(NAMESPACE),
            "{text}"
        );
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_config_is_applied_and_a_bad_one_refused() {
    let world = ProberWorld::running().await;
    world.write_config(&CONFIG.replace("probeTimeout: 2s", "probeTimeout: 2"));
    world.event("ConfigRefused", "probeTimeout").await;
    world.until_metric("dwd_config_refused", 1.0).await;

    // The autoscaler is not the prober's business any more, and another Deployment becomes so.
    const OTHER: &str = "other-controller";
    world.apply(gardener::deployment(NAMESPACE, OTHER, 2));
    world.write_config(&CONFIG.replace(CA, OTHER));
    let taken = "dwd_config_reloads_total{result=\"taken\"}";
    world.until_metric(taken, 1.0).await;
    world.until_metric("dwd_config_refused", 0.0).await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), at(1)]).await;
    world.until_it_is(OTHER, held("2")).await;
    world.nodes.heal_all();
    world.until_up().await;
    world.until_it_is(OTHER, at(2)).await;
    world.end().await;
}
