//! What operators set by annotations on namespaces: on `garden` for the whole seed, on the shoot's
//! own for that shoot.

use prober_core::options::{GARDEN, PAUSE};
use serde_json::{Value, json};

use super::world::{CONFIG, KCM, NAMESPACE, ProberWorld, held};

const PAUSED: &str = "dwd_paused_shoots";

#[tokio::test(start_paused = true)]
async fn a_pause_on_garden_stops_every_write_unless_the_shoots_namespace_says_otherwise() {
    let world = ProberWorld::new().await;
    world.annotate(GARDEN, PAUSE, json!("true"));
    let world = world.started(CONFIG).await;
    world.nodes.cut_all();
    world.until_expired(3.0).await;
    assert_eq!(world.written(), [""; 0]);
    world.annotate(NAMESPACE, PAUSE, json!("false"));
    world.until_held().await;
    world.annotate(NAMESPACE, PAUSE, Value::Null);
    world.until_metric(PAUSED, 1.0).await;
    world.nodes.heal_all();
    world.until_expired(0.0).await;
    world.until_held().await;
    world.annotate(GARDEN, PAUSE, Value::Null);
    world.until_up().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_read_is_reported_and_what_garden_sets_holds() {
    let world = ProberWorld::new().await;
    world.annotate(GARDEN, PAUSE, json!("true"));
    world.annotate(NAMESPACE, PAUSE, json!("not for now"));
    world.hold_down(KCM, "1");
    let world = world.started(CONFIG).await;
    world.event("SettingRefused", NAMESPACE).await;
    world.probes(4).await;
    assert_eq!((&world.states()[0], world.written()), (&held("1"), vec![]));
    let refused = "dwd_settings_refused";
    world.until_metric(refused, 1.0).await;
    world.until_metric(PAUSED, 1.0).await;
    world.annotate(NAMESPACE, PAUSE, json!("0"));
    world.until_up().await;
    world.until_metric(refused, 0.0).await;
    world.end().await;
}
