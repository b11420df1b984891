//! What the prober shows at `/statusz`.

use api_server::{Fault, Network, Rule, User, When};
use common::metrics::RequestCounter;
use common::seed_client::{self, KubeconfigChoice};
use prober::seed_reader::SeedReader;
use serde_json::{Value, json};
use testbed::PATIENCE;
use testbed::gardener::PAUSE;

use super::log::SEED_TOKEN;
use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, dialer};

/// What the prober can list of a seed, but not write.
pub const READABLE: &str = "deployments.apps,secrets,namespaces,machines.machine.sapcloud.io,clusters.extensions.gardener.cloud";

async fn shown(world: &ProberWorld) -> Value {
    world.status(|status| Some(status.clone())).await
}

/// Fails unless the page says all of this.
async fn page_says(world: &ProberWorld, expected: &[&str]) {
    let page = world.page().await;
    for text in expected {
        assert!(page.contains(text), "no {text:?} in {page}");
    }
}

/// What these fields of an object hold.
fn fields(object: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| object[name].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_healthy_shoot_is_shown_with_its_numbers_and_the_config_in_force() {
    let world = ProberWorld::running().await;
    let all = shown(&world).await;
    let process = fields(&all["process"], &["agent", "role"]);
    assert_eq!(process, json!(["prober", "alone"]));
    let shoot = &all["shoots"][0];
    let is_probed = fields(shoot, &["namespace", "state"]);
    assert_eq!(is_probed, json!([NAMESPACE, "probed"]));
    let numbers = [
        "verdict",
        "candidates",
        "expired",
        "expiredAfterSeconds",
        "unknownAfterSeconds",
    ];
    let found = fields(&shoot["probe"]["found"], &numbers);
    assert_eq!(found, json!(["scale_up", 3, 0, 3.0, 4.0]));
    let [config, expected] = [&all["config"].to_string(), CONFIG]
        .map(|text| prober::config::parse(text).expect("a config").config);
    assert_eq!(config, expected);
    page_says(&world, &[NAMESPACE, "Nothing is held down"]).await;
    assert_eq!(world.get("/statusz").await.0, 200);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_shown_with_what_is_held_down_and_the_leases_behind_it() {
    let world = ProberWorld::running().await;
    world.outage().await;
    world.probes(2).await;
    let shoot = shown(&world).await["shoots"][0].take();
    let dependents = shoot["dependents"].as_array().expect("a list");
    let held_down = dependents.iter().filter(|dependent| {
        dependent["condition"] == "held_down" && dependent["since"].is_string()
    });
    assert!(
        held_down
            .map(|dependent| &dependent["name"])
            .eq(&[KCM, MCM, CA])
    );
    let found = &shoot["probe"]["found"];
    let verdict = fields(found, &["verdict", "expired"]);
    assert_eq!(verdict, json!(["scale_down", 3]));
    let leases = found["leases"].as_array().expect("a list");
    let ages: Vec<_> = leases
        .iter()
        .map(|lease| lease["ageSeconds"].as_f64())
        .collect();
    assert!(
        ages.is_sorted_by(|a, b| a >= b) && ages[2] >= Some(3.0),
        "{ages:?}"
    );
    assert!(leases.iter().all(|lease| lease["state"] == "expired"));
    let node = &world.nodes.names()[0];
    let leases = "3 of 3 leases expired";
    page_says(
        &world,
        &["held down by the watchdog", KCM, "scale_down", leases, node],
    )
    .await;
    world.end().await;
}

/// Waits until a controller of the shoot shows this field, and returns it.
async fn first(world: &ProberWorld, field: &str) -> Value {
    let shows = |status: &Value| {
        let dependents = status["shoots"][0]["dependents"].as_array()?;
        let mut shown = dependents.iter().map(|dependent| dependent[field].clone());
        shown.find(|shown| !shown.is_null())
    };
    world.status(shows).await
}

#[tokio::test(start_paused = true)]
async fn what_a_write_waits_for_and_why_one_failed_is_shown() {
    let world = ProberWorld::running().await;
    world.annotate(NAMESPACE, PAUSE, json!("true"));
    world.until_metric("dwd_paused_shoots", 1.0).await;
    world.nodes.cut_all();
    let wait = fields(&first(&world, "waits").await, &["for", "reason"]);
    assert_eq!(wait, json!(["not_paused", "the pause to be lifted"]));
    page_says(&world, &["waits for the pause to be lifted"]).await;
    world.fails(When::verb("patch", "deployments.apps"), Fault::status(500));
    world.annotate(NAMESPACE, PAUSE, json!("false"));
    let failed = first(&world, "notScaled").await.to_string();
    assert!(failed.contains("500"), "{failed}");
    page_says(&world, &["it could not be scaled: "]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_one_record_on_the_page_in_the_log_in_an_event_and_in_metrics() {
    let world = ProberWorld::running().await;
    assert_eq!(shown(&world).await["outages"], json!([]));
    world.outage().await;
    world.recovery().await;
    let over = |status: &Value| {
        let outage = &status["outages"][0];
        outage["ended"].is_string().then(|| outage.clone())
    };
    let outage = world.status(over).await;
    let verdict = fields(
        &outage["verdict"],
        &["candidates", "fraction", "graceSeconds"],
    );
    let lengths = ["writes", "heldDown"].map(|name| outage[name].as_array().map(Vec::len));
    assert_eq!(verdict, json!([3, 0.6, 4.0]));
    assert_eq!(
        fields(&outage, &["namespace", "end"]),
        json!([NAMESPACE, "restored"])
    );
    assert_eq!(lengths, [Some(6), Some(3)], "{outage}");
    let sentence = "of 3 leases expired, held down (written as the leader): ";
    page_says(
        &world,
        &[sentence, "; restored (written as the leader) after "],
    )
    .await;
    world.event("OutageEnded", sentence).await;
    let counted = "dwd_outages_total{end=\"restored\",blip=\"true\"}";
    world.until_metric(counted, 1.0).await;
    world
        .until_metric("dwd_outage_duration_seconds_count", 1.0)
        .await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_is_shown_with_its_cause() {
    let world = ProberWorld::running().await;
    world.shoot.set_network(Network::Refused);
    let stage = |status: &Value| {
        let stage = status["shoots"][0]["probe"]["failure"]["stage"].as_str();
        stage.map(str::to_owned)
    };
    assert_eq!(world.status(stage).await, "leases");
    page_says(&world, &["nothing is concluded"]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_waits_says_who_leads() {
    let mut world = ProberWorld::new().await;
    world.hold_lease();
    world.start(CONFIG);
    let leads = |status: &Value| {
        let process = &status["process"];
        process["leader"]
            .is_string()
            .then(|| fields(process, &["role", "leader"]))
    };
    assert_eq!(world.status(leads).await, json!(["waiting", "another"]));
    page_says(&world, &["Another replica leads"]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn whether_a_shoot_is_paused_is_not_known_while_namespaces_may_not_be_read() {
    let world = ProberWorld::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, world.seed.kubeconfig(SEED_TOKEN)).expect("a file");
    let choice = KubeconfigChoice::path(Some(&file));
    let (dialer, counter) = (dialer(&world.seed), RequestCounter::default());
    let client = seed_client::connect(dialer, choice, &counter).await;
    let config = prober::config::parse(CONFIG).expect("a config").config;
    let client = client.expect("a client");
    let namespaces = When::matches(|record| record.resource == "namespaces");
    world.fails(namespaces, Fault::status(403));
    for paused in [None, Some(false)] {
        let reader = SeedReader::start(client.clone(), config.clone(), None, PATIENCE).await;
        assert_eq!(reader.status().shoots[0].paused, paused);
        reader.end().await;
        world.seed.faults().clear();
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_missing_is_told_before_an_outage() {
    let world = ProberWorld::new().await;
    world.delete(KCM);
    let world = world.started(CONFIG).await;
    let missing = format!("dwd_missing_resources{{name=\"{KCM}\"}}");
    world.until_metric(&missing, 1.0).await;
    let shoot = shown(&world).await["shoots"][0].take();
    let kcm = fields(&shoot["dependents"][0], &["name", "condition"]);
    assert_eq!(kcm, json!([KCM, "missing"]));
    page_says(
        &world,
        &["What needs attention", "it does not exist, though it must"],
    )
    .await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_told_before_an_outage() {
    let mut world = ProberWorld::new().await;
    let reader = User::limited("reader", vec![Rule::new("get,list,watch", READABLE)]);
    world.seed.access().grant(SEED_TOKEN, reader);
    world.start(CONFIG);
    world.until_metric("dwd_missing_rights", 3.0).await;
    let missing = [CA, KCM, MCM].map(|name| format!("patch deployments.apps {name}"));
    assert_eq!(shown(&world).await["missingRights"], json!(missing));
    let told = format!("The right to patch deployments.apps {KCM} is missing");
    page_says(&world, &[&told]).await;
    world.end().await;
}
