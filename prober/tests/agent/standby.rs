//! Two replicas, one of which leads: what the other does in its place, and what it does not (D-50).

use std::collections::BTreeSet;
use std::time::Duration;

use api_server::{Fault, Record, User, When};
use testbed::gardener;

use super::log::STANDBY_TOKEN;
use super::world::{CONFIG, LOCK, ProberWorld, scales};

const STANDBY: &str = "system:serviceaccount:garden:standby";
/// The Lease outlives everything here, so that whoever is dead or blind keeps the lead.
const ELECTION: [&str; 4] = [
    "--enable-leader-election=true",
    "--leader-elect-lease-duration=90s",
    "--leader-elect-renew-deadline=60s",
    "--leader-elect-retry-period=1s",
];

/// A leader and a standby, which both have seen the leases change.
async fn pair() -> ProberWorld {
    let mut world = ProberWorld::new().await;
    let standby = User {
        name: STANDBY.into(),
        ..gardener::seed_prober()
    };
    world.seed.access().grant(STANDBY_TOKEN, standby);
    world.flags = ELECTION.into();
    let mut world = world.started(CONFIG).await;
    world.event("LeaderElection", "became leader").await;
    world.join(STANDBY_TOKEN);
    world
        .until_metric("dwd_leases{state=\"candidate\"}", 3.0)
        .await;
    world.probes(8).await;
    world
}

/// Who leads.
fn leader(world: &ProberWorld) -> String {
    let store = world.seed.store();
    let lease = store.get("leases.coordination.k8s.io", "garden", LOCK);
    let holder = lease.expect("a Lease")["spec"]["holderIdentity"].take();
    holder.as_str().expect("a text").to_owned()
}

/// By whom the dependents were written.
fn writers(world: &ProberWorld) -> BTreeSet<String> {
    let all = world.seed.requests().all().into_iter();
    all.filter(scales).map(|record| record.user).collect()
}

/// What the standby says that it wrote in the leader's place.
async fn without_lead(world: &ProberWorld) -> [Option<f64>; 2] {
    let series = ["down", "up"]
        .map(|way| format!("dwd_protected_without_lead_total{{direction=\"{way}\"}}"));
    [
        world.metric(&series[0]).await,
        world.metric(&series[1]).await,
    ]
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_killed_in_mid_outage_costs_the_standbys_patience_and_not_the_shoot() {
    let mut world = pair().await;
    let leads = leader(&world);
    world.nodes.cut_all();
    world.kill().await;
    world.until_held().await;
    assert_eq!(leader(&world), leads, "nobody leads in its place yet");
    assert_eq!(writers(&world), [STANDBY.to_owned()].into());
    assert_eq!(world.written().len(), 3);
    world.event("LeaderDidNotAct", &leads).await;
    assert_eq!(without_lead(&world).await, [Some(3.0), Some(0.0)]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn beside_a_leader_that_acts_a_standby_writes_nothing_in_a_whole_outage_and_its_recovery() {
    let world = pair().await;
    // The leader takes its time, but not longer than it has.
    let leaders = When::matches(|record: &Record| scales(record) && record.user != STANDBY);
    world.fails(leaders, Fault::Delay(Duration::from_millis(150)));
    world.outage().await;
    world.probes(6).await;
    world.recovery().await;
    world.probes(6).await;
    assert_eq!(writers(&world), [gardener::seed_prober().name].into());
    assert_eq!(without_lead(&world).await, [Some(0.0), Some(0.0)]);
    world.end().await;
}
