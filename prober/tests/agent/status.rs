//! What the prober shows at `/statusz`.

use std::time::Duration;

use api_server::{Fault, Rule, User, When};
use common::metrics::RequestCounter;
use common::seed_client::{self, KubeconfigChoice};
use common::transport::Dialer;
use prober::seed_reader::SeedReader;
use serde_json::{Value, json};
use testbed::PATIENCE;

use super::log::SEED_TOKEN;
use super::operations::Served;
use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held};

async fn shown(served: &Served) -> Value {
    let (status, body) = served
        .get(&format!("{}/statusz.json", served.health), "*/*")
        .await;
    assert_eq!(status, 200);
    serde_json::from_str(&body).expect("JSON")
}

async fn page(served: &Served, path: &str) -> String {
    let (status, body) = served
        .get(&format!("{}{path}", served.health), "text/html")
        .await;
    assert_eq!(status, 200);
    body
}

#[tokio::test]
async fn a_healthy_shoot_is_shown_with_its_numbers_and_the_config_in_force() {
    let served = Served::start().await;
    let all = shown(&served).await;
    assert_eq!(
        (&all["process"]["agent"], &all["process"]["role"]),
        (&"prober".into(), &"alone".into())
    );
    let shoot = &all["shoots"][0];
    assert_eq!(
        (&shoot["namespace"], &shoot["state"]),
        (&NAMESPACE.into(), &"probed".into())
    );
    let found = &shoot["probe"]["found"];
    assert_eq!(
        (&found["verdict"], &found["candidates"], &found["expired"]),
        (&"scale_up".into(), &3.into(), &0.into())
    );
    assert_eq!(
        (&found["expiredAfterSeconds"], &found["unknownAfterSeconds"]),
        (&3.0.into(), &4.0.into())
    );
    let config = prober::config::parse(&all["config"].to_string())
        .expect("a config")
        .config;
    assert_eq!(
        config,
        prober::config::parse(CONFIG).expect("a config").config
    );
    for path in ["/", "/statusz"] {
        let page = page(&served, path).await;
        assert!(
            page.contains(NAMESPACE) && page.contains("Nothing is held down"),
            "{page}"
        );
    }
    served.world.end().await;
}

#[tokio::test]
async fn an_outage_is_shown_with_what_is_held_down_and_the_leases_behind_it() {
    let served = Served::start().await;
    served.world.nodes.cut_all();
    served.world.until([held("1"), held("1"), held("1")]).await;
    served.world.probes(2).await;
    let all = shown(&served).await;
    let shoot = &all["shoots"][0];
    let dependents = shoot["dependents"].as_array().expect("a list");
    let held_down = dependents
        .iter()
        .filter(|dependent| dependent["condition"] == "held_down" && dependent["since"].is_string())
        .filter_map(|dependent| dependent["name"].as_str());
    assert_eq!(held_down.collect::<Vec<_>>(), [KCM, MCM, CA], "{shoot}");
    let probe = &shoot["probe"];
    assert_eq!(
        (&probe["found"]["verdict"], &probe["found"]["expired"]),
        (&"scale_down".into(), &3.into())
    );
    let leases = probe["found"]["leases"].as_array().expect("a list");
    let ages: Vec<f64> = leases
        .iter()
        .filter_map(|lease| lease["ageSeconds"].as_f64())
        .collect();
    assert!(
        ages.len() == 3 && ages.is_sorted_by(|a, b| a >= b) && ages[2] >= 3.0,
        "{ages:?}"
    );
    assert!(
        leases.iter().all(|lease| lease["state"] == "expired"),
        "{leases:?}"
    );
    let page = page(&served, "/statusz").await;
    for expected in [
        "held down by the watchdog",
        KCM,
        "scale_down",
        "3 of 3 leases expired",
        served.world.nodes.names()[0].as_str(),
    ] {
        assert!(page.contains(expected), "no {expected:?} in {page}");
    }
    served.world.end().await;
}

/// Waits until a controller of the shoot shows this field, and returns it.
async fn first(served: &Served, field: &str) -> Value {
    loop {
        let all = shown(served).await;
        let mut dependents = all["shoots"][0]["dependents"]
            .as_array()
            .into_iter()
            .flatten();
        if let Some(shown) = dependents.find_map(|dependent| dependent.get(field)) {
            return shown.clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_write_waits_for_and_why_one_failed_is_shown() {
    let served = Served::start().await;
    let pause = |value: &str| {
        let annotations = json!({ "dependency-watchdog.gardener.cloud/pause": value });
        let metadata = json!({ "name": NAMESPACE, "annotations": annotations });
        served
            .world
            .apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
    };
    pause("true");
    served
        .until_metric("dwd_paused_shoots", |paused| paused >= 1.0)
        .await;
    served.world.nodes.cut_all();
    let wait = first(&served, "waits").await;
    assert_eq!(
        (&wait["for"], &wait["reason"]),
        (&"not_paused".into(), &"the pause to be lifted".into())
    );
    let shown = page(&served, "/").await;
    assert!(
        shown.contains("waits for the pause to be lifted"),
        "{shown}"
    );
    let broken = When::verb("patch", "deployments.apps");
    served.world.seed.faults().add(broken, Fault::status(500));
    pause("false");
    let failed = first(&served, "notScaled").await;
    let cause = failed.as_str().expect("a cause");
    assert!(cause.contains("500"), "{cause}");
    let shown = page(&served, "/").await;
    assert!(shown.contains("it could not be scaled: "), "{shown}");
    served.world.end().await;
}

#[tokio::test]
async fn an_outage_is_one_record_on_the_page_in_the_log_in_an_event_and_in_metrics() {
    let served = Served::start().await;
    assert_eq!(shown(&served).await["outages"], json!([]));
    served.world.nodes.cut_all();
    served.world.until([held("1"), held("1"), held("1")]).await;
    served.world.nodes.heal_all();
    served.world.until([at(1), at(1), at(1)]).await;
    let outage = loop {
        let outage = shown(&served).await["outages"][0].take();
        if !outage["ended"].is_null() {
            break outage;
        }
        tokio::task::yield_now().await;
    };
    let numbers =
        ["candidates", "fraction", "graceSeconds"].map(|name| outage["verdict"][name].as_f64());
    assert_eq!(
        (&outage["namespace"], &outage["end"], numbers),
        (
            &NAMESPACE.into(),
            &"restored".into(),
            [Some(3.0), Some(0.6), Some(4.0)]
        )
    );
    let lengths = ["writes", "heldDown"].map(|name| outage[name].as_array().map(Vec::len));
    assert_eq!(lengths, [Some(6), Some(3)], "{outage}");
    let page = page(&served, "/").await;
    let sentence = "of 3 leases expired, held down (written as the leader): ";
    assert!(
        page.contains(sentence) && page.contains("; restored (written as the leader) after "),
        "{page}"
    );
    served.world.event("OutageEnded", sentence).await;
    let blips = served
        .metric("dwd_outages_total{end=\"restored\",blip=\"true\"}")
        .await;
    assert_eq!(
        blips
            + served
                .metric("dwd_outages_total{end=\"restored\",blip=\"false\"}")
                .await,
        1.0
    );
    assert_eq!(
        served.metric("dwd_outage_duration_seconds_count").await,
        1.0
    );
    served.world.end().await;
}

#[tokio::test]
async fn a_probe_that_fails_is_shown_with_its_cause() {
    let served = Served::start().await;
    served.world.shoot.set_network(api_server::Network::Refused);
    let failure = loop {
        let failure = shown(&served).await["shoots"][0]["probe"]["failure"].take();
        if failure.is_object() {
            break failure;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(failure["stage"], "leases", "{failure}");
    let page = page(&served, "/").await;
    assert!(page.contains("nothing is concluded"), "{page}");
    served.world.end().await;
}

#[tokio::test]
async fn a_replica_that_waits_says_who_leads() {
    let election = [
        "--enable-leader-election=true",
        "--leader-election-namespace=garden",
    ];
    let world = ProberWorld::new().await;
    let spec = json!({
        "holderIdentity": "another", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z", "leaseTransitions": 0,
    });
    let metadata = json!({ "name": "dwd-prober-leader-election", "namespace": "garden" });
    world.apply(json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec }));
    let served = Served::serve(world, &election).await;
    let process = loop {
        let process = shown(&served).await["process"].take();
        if process["leader"].is_string() {
            break process;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        (&process["role"], &process["leader"]),
        (&"waiting".into(), &"another".into())
    );
    assert!(page(&served, "/").await.contains("Another replica leads"));
    served.world.end().await;
}

#[tokio::test]
async fn whether_a_shoot_is_paused_is_not_known_while_namespaces_may_not_be_read() {
    let world = ProberWorld::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, world.seed.kubeconfig(SEED_TOKEN)).expect("a file");
    let choice = KubeconfigChoice::path(Some(&file));
    let client = seed_client::connect(Dialer::default(), choice, &RequestCounter::default())
        .await
        .expect("a client");
    let config = prober::config::parse(CONFIG).expect("a config").config;
    for (forbidden, paused) in [(true, None), (false, Some(false))] {
        world.seed.faults().clear();
        if forbidden {
            world.seed.faults().add(
                When::matches(|record| record.resource == "namespaces"),
                Fault::status(403),
            );
        }
        // What may not be read never comes.
        let patience = if forbidden {
            Duration::from_secs(1)
        } else {
            PATIENCE
        };
        let reader = SeedReader::start(client.clone(), config.clone(), None, patience).await;
        assert_eq!(reader.status().shoots[0].paused, paused);
        reader.end().await;
    }
}

#[tokio::test]
async fn a_controller_that_is_missing_is_told_before_an_outage() {
    let world = ProberWorld::new().await;
    world.delete(KCM);
    let served = Served::serve(world, &[]).await;
    let missing = format!("dwd_missing_resources{{name=\"{KCM}\"}}");
    served.world.probes(2).await;
    served.until_metric(&missing, |count| count == 1.0).await;
    let shoot = shown(&served).await["shoots"][0].take();
    let kcm = &shoot["dependents"][0];
    assert_eq!(
        (&kcm["name"], &kcm["condition"]),
        (&KCM.into(), &"missing".into())
    );
    let page = page(&served, "/").await;
    let missing = "it does not exist, though it must";
    assert!(
        page.contains("What needs attention") && page.contains(missing),
        "{page}"
    );
    served.world.end().await;
}

#[tokio::test]
async fn a_missing_right_is_told_before_an_outage() {
    let world = ProberWorld::new().await;
    let readable = "deployments.apps,secrets,namespaces,machines.machine.sapcloud.io,clusters.extensions.gardener.cloud";
    let reader = User::limited("reader", vec![Rule::new("get,list,watch", readable)]);
    world.seed.access().grant(SEED_TOKEN, reader);
    let served = Served::serve(world, &[]).await;
    served
        .until_metric("dwd_missing_rights", |count| count == 3.0)
        .await;
    assert_eq!(
        shown(&served).await["missingRights"],
        json!([CA, KCM, MCM].map(|name| format!("patch deployments.apps {name}")))
    );
    let page = page(&served, "/").await;
    assert!(
        page.contains("The right to patch deployments.apps kube-controller-manager is missing"),
        "{page}"
    );
    served.world.end().await;
}
