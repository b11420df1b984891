//! What operators see: metrics, health, Events.

use std::collections::BTreeSet;
use std::time::Duration;

use api_server::{Fault, When};
use serde_json::json;
use testbed::PATIENCE;
use testbed::gardener;
use testbed::page::ScrapedMetrics;
use tokio::time::{sleep, timeout};

use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held};

pub struct Served {
    pub world: ProberWorld,
    pub metrics: String,
    pub health: String,
}

impl Served {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub async fn start_with(flags: &[&str]) -> Self {
        let served = Self::serve(ProberWorld::new().await, flags).await;
        served.world.probes(3).await;
        served
    }

    /// A prober that may not have begun to probe.
    pub async fn serve(world: ProberWorld, flags: &[&str]) -> Self {
        Self::serve_with(world, CONFIG, flags).await
    }

    pub async fn serve_with(mut world: ProberWorld, config: &str, flags: &[&str]) -> Self {
        let [metrics, health] = [world.address(), world.address()];
        world.servers = vec![
            format!("--metrics-bind-address={metrics}"),
            format!("--health-bind-addr={health}"),
            "--pprof-bind-addr=0".into(),
        ];
        world.servers.extend(flags.iter().map(ToString::to_string));
        world.start(config);
        let health = format!("http://{health}");
        let serves = async {
            while reqwest::get(&health).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, serves).await.expect("it serves");
        Self {
            world,
            metrics: format!("http://{metrics}/metrics"),
            health,
        }
    }

    pub async fn get(&self, url: &str, accept: &str) -> (u16, String) {
        let answer = reqwest::Client::new()
            .get(url)
            .header("accept", accept)
            .send()
            .await
            .expect("an answer");
        let (status, text) = (answer.status().as_u16(), answer.text().await.expect("text"));
        super::log::check(url, &text);
        (status, text)
    }

    pub async fn metric(&self, line: &str) -> f64 {
        let (_, text) = self.get(&self.metrics, "text/plain").await;
        let value = text
            .lines()
            .find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
        assert!(value.is_some(), "no {line} in\n{text}");
        value.expect("just asserted").parse().expect("a number")
    }

    /// Waits until a metric is so.
    pub async fn until_metric(&self, line: &str, so: impl Fn(f64) -> bool) {
        let reached = async {
            while !so(self.metric(line).await) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(
            timeout(PATIENCE, reached).await.is_ok(),
            "{line} is {}",
            self.metric(line).await
        );
    }

    /// Waits until the last complete probe has found so many leases expired, and for two more
    /// probes.
    pub async fn until_expired(&self, count: f64) {
        self.until_metric("dwd_leases{state=\"expired\"}", |expired| expired == count)
            .await;
        self.world.probes(2).await;
    }
}

#[tokio::test]
async fn health_and_readiness_are_served() {
    let served = Served::start().await;
    for (path, line) in [
        ("healthz", "[+]probes ok"),
        ("readyz", "[+]seed ok"),
        ("readyz", "[+]requests ok"),
    ] {
        let (status, body) = served
            .get(&format!("{}/{path}", served.health), "*/*")
            .await;
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(line), "{body}");
    }
    served.world.end().await;
}

#[tokio::test]
async fn a_seed_that_knows_no_machines_is_as_one_that_has_none() {
    // D-55
    let world = ProberWorld::new().await;
    let groups = r#"{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps", "versions": []}]}"#;
    let groups = Fault::Answer {
        code: 200,
        headers: vec![],
        body: groups.into(),
    };
    world
        .seed
        .faults()
        .add(When::request("GET", "/apis"), groups);
    world.seed.faults().add(
        When::verb("list", "machines.machine.sapcloud.io"),
        Fault::status(404),
    );
    let served = Served::serve(world, &[]).await;
    served
        .until_metric("dwd_seed_known", |known| known == 1.0)
        .await;
    let (status, body) = served
        .get(&format!("{}/readyz", served.health), "*/*")
        .await;
    assert_eq!(status, 200, "{body}");
    served.world.nodes.cut_all();
    // In half of this time the leases expire.
    served.world.probes(8).await;
    assert_eq!(served.world.written(), [""; 0]);
    served.world.end().await;
}

#[tokio::test]
async fn a_prober_that_cannot_list_something_it_works_by_shows_that_it_is_blind() {
    const RESOURCES: [&str; 4] = [
        "machines.machine.sapcloud.io",
        "secrets",
        "deployments.apps",
        "clusters.extensions.gardener.cloud",
    ];
    let world = ProberWorld::new().await;
    let refused = RESOURCES.map(|resource| {
        world
            .seed
            .faults()
            .add(When::verb("list", resource), Fault::status(503))
    });
    let served = Served::serve(world, &[]).await;
    for (resource, fault) in RESOURCES.into_iter().zip(refused) {
        assert_eq!(
            served.metric("dwd_seed_known").await,
            0.0,
            "without {resource}"
        );
        served.world.seed.faults().remove(fault);
        let watched = served.world.seed.requests().wait_for(|all| {
            let watches = |name: &str| {
                let of = all
                    .iter()
                    .filter(|record| record.verb == "watch" && record.resource == resource);
                of.filter(|record| record.status == Some(200) && record.query.contains(name))
                    .count()
                    > 0
            };
            // Each of the dependents is watched by itself.
            let all_of_them = if resource == "deployments.apps" {
                &[KCM, MCM, CA][..]
            } else {
                &[""]
            };
            all_of_them.iter().all(|name| watches(name)).then_some(())
        });
        assert!(
            timeout(PATIENCE, watched).await.is_ok(),
            "{resource} is not watched"
        );
    }
    served
        .until_metric("dwd_seed_known", |known| known >= 1.0)
        .await;
    served.world.probes(1).await;
    served.world.end().await;
}

#[tokio::test]
async fn an_object_that_is_nested_deeply_or_cannot_be_read_harms_no_other() {
    let world = ProberWorld::new().await;
    let mut deep = gardener::cluster("shoot--p--deep", None);
    gardener::nest_deeply(&mut deep);
    let mut machine = gardener::machine("shoot--p--deep", "broken");
    machine["status"]["currentStatus"] = json!(8);
    world.apply(deep.clone());
    world.apply(machine.clone());
    let served = Served::serve(world, &[]).await;
    served.world.probes(2).await;
    let unreadable = "dwd_unreadable_objects_total{resource=\"machines\"}";
    served.until_metric(unreadable, |count| count == 1.0).await;
    // The same in a watch.
    deep["metadata"]["labels"] = json!({"a": "b"});
    machine["metadata"]["labels"] = json!({"a": "b"});
    served.world.apply(deep);
    served.world.apply(machine);
    served.until_metric(unreadable, |count| count == 2.0).await;
    served.world.nodes.cut_all();
    let all_held = [held("1"), held("1"), held("1")];
    served.world.until(all_held).await;
    let clusters = "dwd_unreadable_objects_total{resource=\"clusters\"}";
    assert_eq!(served.metric(clusters).await, 0.0);
    served.world.end().await;
}

#[tokio::test]
async fn a_kind_that_does_not_exist_makes_no_prober_blind() {
    let world = ProberWorld::new().await;
    let config = format!(
        "{CONFIG}- ref: {{kind: Nothing, name: nothing, apiVersion: none.example.org/v1}}\n  optional: true\n  scaleUp: {{}}\n  scaleDown: {{}}\n"
    );
    let served = Served::serve_with(world, &config, &[]).await;
    served.world.probes(1).await;
    served
        .until_metric("dwd_seed_known", |known| known >= 1.0)
        .await;
    served.world.end().await;
}

#[tokio::test]
async fn an_outage_shows_in_the_metrics_and_its_end_too() {
    let served = Served::start().await;
    assert_eq!(served.metric("dwd_shoots{state=\"probed\"}").await, 1.0);
    assert_eq!(served.metric("dwd_leases{state=\"candidate\"}").await, 3.0);
    served.world.nodes.cut_all();
    served.world.until([held("1"), held("1"), held("1")]).await;
    let written = format!(
        "dwd_scale_operations_total{{direction=\"down\",kind=\"Deployment\",name=\"{KCM}\",result=\"written\"}}"
    );
    assert_eq!(served.metric(&written).await, 1.0);
    let held_down = format!("dwd_held_down{{kind=\"Deployment\",name=\"{KCM}\"}}");
    served.world.probes(2).await;
    assert_eq!(served.metric(&held_down).await, 1.0);
    assert_eq!(served.metric("dwd_leases{state=\"expired\"}").await, 3.0);
    let host = served.world.seed.address();
    let writes =
        format!("rest_client_requests_total{{code=\"200\",method=\"PATCH\",host=\"{host}\"}}");
    assert_eq!(served.metric(&writes).await, 3.0);
    served.world.nodes.heal_all();
    served.world.until([at(1), at(1), at(1)]).await;
    served.world.end().await;
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_write_once_and_writes_nothing() {
    let served = Served::start_with(&["--dry-run", "--enable-leader-election=true"]).await;
    let would = |direction: &str| {
        format!(
            "dwd_dry_run_writes_total{{direction=\"{direction}\",kind=\"Deployment\",name=\"{KCM}\"}}"
        )
    };
    served.world.nodes.cut_all();
    served.until_expired(3.0).await;
    assert_eq!(served.metric(&would("down")).await, 1.0);
    served.world.hold_down(KCM, "2");
    served.world.nodes.heal_all();
    served.until_expired(0.0).await;
    assert_eq!(served.metric(&would("up")).await, 1.0);
    let writes = served
        .world
        .seed
        .requests()
        .count(|record| record.is_write());
    assert_eq!(writes, 0, "no scaling, no Lease, no Event");
    served.world.end().await;
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_metric_is_served() {
    let served = Served::start_with(&["--metrics-per-shoot"]).await;
    served.world.nodes.cut_all();
    served.world.until([held("1"), held("1"), held("1")]).await;
    let (_, text) = served.get(&served.metrics, "text/plain").await;
    let scraped = ScrapedMetrics::read(&text).expect("metrics");
    let shown: BTreeSet<&str> = scraped.types.keys().map(String::as_str).collect();
    let document = include_str!("../../../docs/metrics.md");
    let section = document
        .split("\n## ")
        .find(|section| section.starts_with("Prober"))
        .expect("a section about the prober");
    let common = document
        .split("\n## ")
        .find(|section| section.starts_with("Both agents"))
        .expect("a section about both");
    let rows = section
        .lines()
        .chain(common.lines())
        .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
    let mut documented: BTreeSet<&str> = rows.collect();
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
    served.world.end().await;
}

#[tokio::test]
async fn metrics_are_open_metrics_whatever_is_accepted_and_a_shoot_is_no_label() {
    let served = Served::start().await;
    for accept in [
        "text/plain;version=0.0.4",
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
    ] {
        let request = reqwest::Client::new()
            .get(&served.metrics)
            .header("accept", accept);
        let answer = request.send().await.expect("an answer");
        assert_eq!(
            answer.headers()["content-type"],
            "application/openmetrics-text; version=1.0.0; charset=utf-8"
        );
        let text = answer.text().await.expect("text");
        assert!(text.ends_with("# EOF\n"), "{text}");
        assert!(!text.contains(NAMESPACE));
    }
    served.world.end().await;
}

#[tokio::test]
async fn shoots_are_distinguished_only_where_that_is_asked_for() {
    let served = Served::start_with(&["--metrics-per-shoot"]).await;
    let own = format!("dwd_shoot_leases{{shoot=\"{NAMESPACE}\",state=\"candidate\"}}");
    assert_eq!(served.metric(&own).await, 3.0);
    served.world.end().await;
}

#[tokio::test]
async fn an_event_says_what_was_done_and_why() {
    let served = Served::start().await;
    served.world.nodes.cut_all();
    served.world.until([held("1"), held("1"), held("1")]).await;
    let event = served.world.seed.store().wait_for(|store| {
        let events = store.list("events", Some("garden"));
        events.into_iter().find(|event| {
            event["reason"] == "ScaledDown"
                && event["message"].as_str().is_some_and(|m| m.contains(KCM))
        })
    });
    let event = timeout(PATIENCE, event).await.expect("an Event");
    assert!(
        event["message"]
            .as_str()
            .is_some_and(|message| message.contains(NAMESPACE)),
        "{event}"
    );
    assert_eq!(event["type"], "Warning");
    served.world.end().await;
}

#[tokio::test]
async fn a_changed_config_is_applied_and_a_bad_one_refused() {
    let served = Served::start().await;
    let events = |reason: &'static str| {
        served.world.seed.store().wait_for(move |store| {
            let found = store
                .list("events", Some("garden"))
                .into_iter()
                .any(|event| event["reason"] == reason);
            found.then_some(())
        })
    };
    served
        .world
        .write_config(&CONFIG.replace("probeTimeout: 2s", "probeTimeout: 2"));
    timeout(PATIENCE, events("ConfigRefused"))
        .await
        .expect("an Event");
    assert_eq!(served.metric("dwd_config_refused").await, 1.0);

    // The autoscaler is not the prober's business any more, and another Deployment becomes so.
    const OTHER: &str = "other-controller";
    served
        .world
        .apply(gardener::deployment(NAMESPACE, OTHER, 2));
    let (kept, _) = CONFIG
        .split_once("- ref: {kind: Deployment, name: cluster-autoscaler")
        .expect("it is the last one");
    let other = format!(
        "- ref: {{kind: Deployment, name: {OTHER}, apiVersion: apps/v1}}\n  scaleUp: {{}}\n  scaleDown: {{}}\n"
    );
    served.world.write_config(&format!("{kept}{other}"));
    served
        .until_metric("dwd_config_reloads_total{result=\"taken\"}", |taken| {
            taken >= 1.0
        })
        .await;
    assert_eq!(served.metric("dwd_config_refused").await, 0.0);
    served.world.nodes.cut_all();
    served.world.until([held("1"), held("1"), at(1)]).await;
    served.world.until_it_is(OTHER, held("2")).await;
    served.world.nodes.heal_all();
    served.world.until([at(1), at(1), at(1)]).await;
    served.world.until_it_is(OTHER, at(2)).await;
    served.world.end().await;
}
