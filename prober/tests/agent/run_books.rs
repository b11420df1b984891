//! Pages tell people to search what the log of the prober has, once it has happened.

use api_server::{Fault, Rule, User, When};
use chrono::{SecondsFormat, Utc};
use serde_json::json;
use testbed::dns::Reply;
use testbed::gardener::{self, REPLICAS};
use testbed::memory::MemoryShootPlan;
use testbed::{book, eventually};

use super::log;
use super::owner;
use super::world::{CONFIG, KCM, LEASES, MCM, NAMESPACE, ProberWorld, at, held, scales};

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

/// An outage after which a controller's number is not known, and one in which the shoot is
/// hibernated.
async fn outages() {
    let mut world = ProberWorld::new().await;
    let machines = When::verb("list", "machines.machine.sapcloud.io");
    world
        .seed
        .faults()
        .add(machines.times(2), Fault::status(500));
    world.start(CONFIG);
    world.probes(3).await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.change(MCM, |object| {
        object["metadata"]["annotations"][REPLICAS] = json!("many")
    });
    world.nodes.heal_all();
    world.until([at(1), at(1), at(1)]).await;
    world.seed.store().break_watches();
    world.seed.store().compact();
    world.seed.cut_connections();
    world.probes(2).await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.change_shoot(|shoot| shoot["spec"]["hibernation"] = json!({"enabled": true}));
    heard("stays at 0").await;
    world.end().await;
}

/// A config that is refused, a pause, probes and writes that fail, a kind that is not served and a
/// Cluster without a shoot.
async fn failures() {
    let no_kind = CONFIG.replace(
        "name: cluster-autoscaler, apiVersion: apps/v1",
        "name: any, apiVersion: no.such/v1",
    );
    let world = ProberWorld::running_with(&no_kind).await;
    world.write_config("probeInterval: never");
    world.annotate(
        NAMESPACE,
        "dependency-watchdog.gardener.cloud/pause",
        json!("true"),
    );
    heard("pause annotation").await;
    world.annotate(
        NAMESPACE,
        "dependency-watchdog.gardener.cloud/pause",
        json!(null),
    );
    let mut blank = gardener::cluster("shoot--p--blank", None);
    blank["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("shoot");
    world.apply(blank);
    world
        .shoot
        .faults()
        .add(When::request("GET", LEASES).once(), Fault::status(500));
    world.probes(2).await;
    let writes = When::matches(|record| scales(record) && record.name == MCM);
    world.seed.faults().add(writes.times(3), Fault::status(500));
    world.nodes.cut_all();
    world.until_it_is(KCM, held("1")).await;
    heard("resource cannot be scaled").await;
    world.end().await;
}

/// One node to judge by, whose lease is not renewed.
async fn one_candidate() {
    let mut world = ProberWorld::of(MemoryShootPlan {
        nodes: 1,
        ..MemoryShootPlan::default()
    })
    .await;
    world.hold_down(MCM, "1");
    world.nodes.cut_all();
    world.start(CONFIG);
    heard("hold_single_candidate").await;
    world.end().await;
}

/// Two of five nodes, which are a zone.
async fn lost_zone() {
    let mut world = ProberWorld::of(MemoryShootPlan {
        nodes: 5,
        ..MemoryShootPlan::default()
    })
    .await;
    for (number, name) in world.nodes.names().iter().enumerate() {
        let zone = if number < 2 { "a" } else { "b" };
        let labels = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
        world
            .shoot
            .store()
            .patch("nodes", "", name, &labels)
            .expect("labelled");
    }
    world.start(CONFIG);
    world.probes(3).await;
    world.nodes.cut([0, 1]);
    heard("zones are lost").await;
    world.end().await;
}

/// A controller that does not exist, and the right to write those that do, which is not granted.
async fn unprotected() {
    let mut world = ProberWorld::new().await;
    world.delete(KCM);
    let readable = "deployments.apps,secrets,namespaces,machines.machine.sapcloud.io,clusters.extensions.gardener.cloud";
    let reader = User::limited("reader", vec![Rule::new("get,list,watch", readable)]);
    world.seed.access().grant(log::SEED_TOKEN, reader);
    world.start(CONFIG);
    heard("resource does not exist").await;
    heard("a right is missing").await;
    world.end().await;
}

/// A leader that is not there, in whose place a standby acts.
async fn standby() {
    let mut world = ProberWorld::new().await;
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
    world.apply(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "dwd-prober-leader-election", "namespace": "garden"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 600, "acquireTime": now, "renewTime": now, "leaseTransitions": 0},
    }));
    world.servers.push("--enable-leader-election=true".into());
    world.start(CONFIG);
    world.probes(3).await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    heard("the leader did not act").await;
    world.end().await;
}

/// An owner record that nobody can resolve.
async fn unresolved_owner() {
    let dns = owner::dns(Reply::Failure).await;
    let mut world = ProberWorld::new().await;
    world.start(&owner::config(&dns, owner::IMPATIENT));
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

#[tokio::test]
async fn pages_find_what_they_search() {
    log::listen();
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
    assert_eq!(vain, Vec::<String>::new());
}
