//! Pages tell people to search what the log of the prober has, once it has happened.

use api_server::{Fault, Rule, User, When};
use prober_core::options::PAUSE;
use serde_json::json;
use testbed::gardener::{self, REPLICAS};
use testbed::memory::MemoryShootPlan;
use testbed::{book, eventually};

use super::log;
use super::owner::{IMPATIENT, config};
use super::status::READABLE;
use super::world::*;

/// Searches for what does not happen to a sound program or in this process, by the sources that
/// write what they find.
const IN_SOURCES: [(&str, &str); 3] = [
    (
        "DependencyWatchdogOpenFiles.md: limit of open files",
        include_str!("../../../common/src/process.rs"),
    ),
    (
        "DependencyWatchdogPanicked.md: \"panic\"",
        include_str!("../../../common/src/process.rs"),
    ),
    (
        "DependencyWatchdogPanicked.md: \"probe panicked and is restarted\"",
        include_str!("../../src/manager.rs"),
    ),
];

fn with_nodes(nodes: usize) -> MemoryShootPlan<'static> {
    MemoryShootPlan {
        nodes,
        ..MemoryShootPlan::default()
    }
}

/// An outage after which a controller's number is not known, and one in which the shoot is
/// hibernated.
async fn outages() {
    let world = ProberWorld::new().await;
    world.fails(When::verb("list", MACHINES).times(2), Fault::status(500));
    let world = world.started(CONFIG).await;
    world.outage().await;
    world.change(MCM, |object| {
        object["metadata"]["annotations"][REPLICAS] = json!("many")
    });
    world.recovery().await;
    world.seed.store().break_watches();
    world.seed.store().compact();
    world.seed.cut_connections();
    world.probes(2).await;
    world.outage().await;
    let hibernates = json!({"hibernation": {"enabled": true}});
    world.change_cluster(json!({"shoot": {"spec": hibernates}}));
    heard("stays at 0").await;
    world.end().await;
}

/// A config that is refused, a pause, probes and writes that fail, a kind that is not served and a
/// Cluster without a shoot.
async fn failures() {
    let autoscaler = "name: cluster-autoscaler, apiVersion: apps/v1";
    let no_kind = CONFIG.replace(autoscaler, "name: any, apiVersion: no.such/v1");
    let world = ProberWorld::running_with(&no_kind).await;
    world.write_config("probeInterval: never");
    world.annotate(NAMESPACE, PAUSE, json!("true"));
    heard("pause annotation").await;
    world.annotate(NAMESPACE, PAUSE, json!(null));
    let mut blank = gardener::cluster("shoot--p--blank", None);
    blank["spec"]["shoot"] = json!(null);
    world.apply(blank);
    let once = When::request("GET", LEASES).once();
    world.shoot.faults().add(once, Fault::status(500));
    world.probes(2).await;
    world.fails(writes_to(MCM).times(3), Fault::status(500));
    world.nodes.cut_all();
    world.until_it_is(KCM, held("1")).await;
    heard("resource cannot be scaled").await;
    world.end().await;
}

/// One node to judge by, whose lease is not renewed.
async fn one_candidate() {
    let mut world = ProberWorld::of(with_nodes(1)).await;
    world.hold_down(MCM, "1");
    world.nodes.cut_all();
    world.start(CONFIG);
    heard("hold_single_candidate").await;
    world.end().await;
}

/// Two of five nodes, which are a zone.
async fn lost_zone() {
    let world = ProberWorld::of(with_nodes(5)).await;
    for (number, name) in world.nodes.names().iter().enumerate() {
        let zone = if number < 2 { "a" } else { "b" };
        let labels = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
        let labelled = world.shoot.store().patch("nodes", "", name, &labels);
        labelled.expect("a node");
    }
    let world = world.started(CONFIG).await;
    world.nodes.cut([0, 1]);
    heard("zones are lost").await;
    world.end().await;
}

/// A controller that does not exist, and the right to write those that do, which is not granted.
async fn unprotected() {
    let mut world = ProberWorld::new().await;
    world.delete(KCM);
    let reader = User::limited("reader", vec![Rule::new("get,list,watch", READABLE)]);
    world.seed.access().grant(log::SEED_TOKEN, reader);
    world.start(CONFIG);
    heard("resource does not exist").await;
    heard("a right is missing").await;
    world.end().await;
}

/// A leader that is not there, in whose place a standby acts.
async fn standby() {
    let mut world = ProberWorld::new().await;
    world.hold_lease();
    let world = world.started(CONFIG).await;
    world.outage().await;
    heard("the leader did not act").await;
    world.end().await;
}

/// An owner record that nobody can resolve.
async fn unresolved_owner() {
    let mut world = ProberWorld::new().await;
    world.start(&config(IMPATIENT));
    heard("owner record").await;
    world.end().await;
}

/// Waits until something was logged.
async fn heard(text: &str) {
    let heard = eventually(text, async || {
        anyhow::ensure!(log::lines().contains(text), "it is not in the log");
        Ok(())
    });
    heard.await.expect("it is logged");
}

#[tokio::test(start_paused = true)]
async fn pages_find_what_they_search() {
    tokio::join!(
        outages(),
        failures(),
        one_candidate(),
        lost_zone(),
        standby(),
        unresolved_owner(),
        unprotected()
    );
    let mut vain = book::searches_in_vain("prober", &log::lines()).expect("searches");
    for (search, source) in IN_SOURCES {
        let (_, words) = search.split_once(": ").expect("a page and words");
        assert!(source.contains(words), "{search}");
        vain.retain(|found| found != search);
    }
    assert_eq!(vain, [""; 0]);
}
