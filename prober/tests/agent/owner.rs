//! The owner record: what it says, fails to say, and what follows.

use serde_json::json;
use tokio::time::{Duration, Instant};

use super::world::{CONFIG, NAMESPACE, ProberWorld};

/// Far longer than a test takes.
const PATIENT: &str = "tolerance: 1h";
pub const IMPATIENT: &str = "tolerance: 2s";

/// Checks that ask for a record each second.
pub fn config(more: &str) -> String {
    format!(
        "{CONFIG}ownerCheck: {{name: 'owner.{{{{domain}}}}', value: '{{{{seed}}}}', interval: 1s, timeout: 300ms, {more}}}\n"
    )
}

/// A prober that checks a record that says this.
async fn checked(says: &'static str, more: &str) -> ProberWorld {
    let mut world = ProberWorld::new().await;
    world.own(Some(says));
    world.start(&config(more));
    world
}

/// Waits until it is said whether the shoot is ours.
async fn until_owner(world: &ProberWorld, status: u16, text: &str) {
    let path = format!("/ownership/{NAMESPACE}");
    let reached = testbed::eventually(text, async || {
        let (found, body) = world.get(&path).await;
        let is_so = found == status && body.contains(text);
        anyhow::ensure!(is_so, "{found} {body}");
        Ok(())
    });
    reached.await.expect("it is said");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_changes_in_mid_outage_ends_all_writing_until_it_is_ours_again() {
    let world = checked("here", PATIENT).await;
    world.probes(3).await;
    world.outage().await;
    world.own(Some("there"));
    until_owner(&world, 503, "says \"there\", not \"here\"").await;
    world.event("OwnedElsewhere", "there").await;
    world.nodes.heal_all();
    let (probed, written) = (world.shoot.requests().total(), world.written());
    world.owner_asked(4).await;
    world.until_held().await;
    assert_eq!(world.written(), written);
    // One request may have been under way.
    assert!(world.shoot.requests().total() <= probed + 1, "not probed");
    let elsewhere = "dwd_owner_shoots{standing=\"elsewhere\"}";
    world.until_metric(elsewhere, 1.0).await;
    let shown = world.status(|status| Some(status.clone())).await;
    let owner = &shown["shoots"][0]["owner"];
    let shown = json!([
        owner["standing"],
        owner["elsewhere"],
        shown["outages"][0]["end"]
    ]);
    assert_eq!(shown, json!(["elsewhere", "there", "still_held_down"]));
    let told = "the prober neither probes nor writes it";
    assert!(world.page().await.contains(told));
    world.own(Some("here"));
    world.until_up().await;
    world.event("OwnedAgain", "here").await;
    until_owner(&world, 200, "ours").await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_resolved_is_tolerated_and_then_ends_all_writing() {
    let world = checked("here", IMPATIENT).await;
    until_owner(&world, 200, "says").await;
    world.probes(3).await;
    world.owner_asked(1).await;
    // The last good answer came at this moment.
    let since = Instant::now();
    world.own(None);
    until_owner(&world, 503, "unresolved").await;
    assert!(since.elapsed() >= Duration::from_secs(2), "it is tolerated");
    let checks = "dwd_owner_checks_total{result=\"server\"}";
    assert!(world.metric(checks).await >= Some(1.0));
    world.event("OwnerUnresolved", "cannot be resolved").await;
    world.nodes.cut_all();
    world.owner_asked(4).await;
    assert_eq!(world.written(), [""; 0]);
    world.own(Some("here"));
    world.until_held().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_known_to_belong_elsewhere_is_passivated_and_comes_back() {
    let world = checked("there", &format!("{PATIENT}, onLoss: passivate")).await;
    world.until_held().await;
    let why = "belongs to another seed";
    world.event("ScaledDown", why).await;
    let protected = "dwd_held_down_shoots{verdict=\"unknown\"}";
    world.until_metric(protected, 0.0).await;
    world.own(Some("here"));
    world.until_up().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_section_is_applied_while_the_prober_runs() {
    let world = ProberWorld::running().await;
    world.own(Some("there"));
    until_owner(&world, 404, "no ownerCheck").await;
    world.write_config(&config(PATIENT));
    until_owner(&world, 503, "elsewhere").await;
    let (status, _) = world.get("/ownership/shoot--none--such").await;
    assert_eq!(status, 404);
    world.nodes.cut_all();
    world.owner_asked(4).await;
    assert_eq!(world.written(), [""; 0]);
    world.write_config(CONFIG);
    world.until_held().await;
    until_owner(&world, 404, "no ownerCheck").await;
    world.end().await;
}
