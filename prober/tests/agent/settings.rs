//! What operators set by annotations on namespaces: on `garden` for the whole seed, on the shoot's
//! own for that shoot.

use prober_core::options::{GARDEN, PAUSE, RESTORE_ONLY_HELD_DOWN, SCALE_UP_STABILIZATION};
use serde_json::{Value, json};

use super::operations::Served;
use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held};

#[tokio::test]
async fn a_pause_on_garden_stops_every_write_unless_the_shoots_namespace_says_otherwise() {
    let world = ProberWorld::new().await;
    world.annotate(GARDEN, PAUSE, json!("true"));
    let served = Served::serve(world, &[]).await;
    let world = &served.world;
    world.probes(3).await;
    world.nodes.cut_all();
    served.until_expired(3.0).await;
    assert_eq!(world.written(), Vec::<String>::new());
    world.annotate(NAMESPACE, PAUSE, json!("false"));
    world.until([held("1"), held("1"), held("1")]).await;

    world.annotate(NAMESPACE, PAUSE, Value::Null);
    served
        .until_metric("dwd_paused_shoots", |paused| paused >= 1.0)
        .await;
    world.nodes.heal_all();
    served.until_expired(0.0).await;
    assert_eq!(
        [KCM, MCM, CA].map(|name| world.dependent(name)),
        [held("1"), held("1"), held("1")]
    );
    world.annotate(GARDEN, PAUSE, Value::Null);
    world.until([at(1), at(1), at(1)]).await;
    served.world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_restored_is_set_for_a_seed_and_for_a_shoot() {
    let mut world = ProberWorld::new().await;
    world.annotate(GARDEN, RESTORE_ONLY_HELD_DOWN, json!("true"));
    world.change(KCM, |object| object["spec"]["replicas"] = json!(0));
    world.hold_down(MCM, "2");
    world.start(CONFIG);
    world.until([at(0), at(2), at(1)]).await;
    world.probes(3).await;
    assert_eq!(world.written(), [MCM]);
    world.annotate(NAMESPACE, RESTORE_ONLY_HELD_DOWN, json!("false"));
    world.until([at(1), at(2), at(1)]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn how_long_a_recovery_must_last_is_set_for_a_seed_and_for_a_shoot() {
    let mut world = ProberWorld::new().await;
    world.annotate(GARDEN, SCALE_UP_STABILIZATION, json!("1h"));
    world.hold_down(KCM, "1");
    world.start(CONFIG);
    world.probes(4).await;
    assert_eq!(world.dependent(KCM), held("1"));
    world.annotate(NAMESPACE, SCALE_UP_STABILIZATION, json!("0s"));
    world.until([at(1), at(1), at(1)]).await;
    world.end().await;
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_reported_and_what_garden_sets_holds() {
    let world = ProberWorld::new().await;
    world.annotate(GARDEN, PAUSE, json!("true"));
    world.annotate(NAMESPACE, PAUSE, json!("not for now"));
    world.hold_down(KCM, "1");
    let served = Served::serve(world, &[]).await;
    let world = &served.world;
    world.event("SettingRefused", NAMESPACE).await;
    world.probes(4).await;
    assert_eq!((world.dependent(KCM), world.written()), (held("1"), vec![]));
    assert_eq!(served.metric("dwd_settings_refused").await, 1.0);
    assert_eq!(served.metric("dwd_paused_shoots").await, 1.0);
    world.annotate(NAMESPACE, PAUSE, json!("0"));
    world.until([at(1), at(1), at(1)]).await;
    assert_eq!(served.metric("dwd_settings_refused").await, 0.0);
    served.world.end().await;
}
