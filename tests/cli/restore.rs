//! `restore`: planned from the seed, by the verdict of the running prober, or with `--force` by none.

use api_server::{Fault, Record, When};
use serde_json::json;
use testbed::gardener::{CA, KCM, MCM, PAUSE};

use crate::world::{
    DEPLOYMENTS, ONE, ORDER, PAUSED, RESTORING, TWO, World, holds, stderr, stdout, until,
    until_holds,
};

const HELD: &str = "0 from 2, 0 from 3, 0 from 4";
const BACK: &str = "2, 3, 4";

/// Fails unless so much was written in a shoot, and its Deployments are so.
fn assert_now(world: &World, written: &[&str], replicas: &str) {
    assert_eq!(world.written(ONE), written);
    assert_eq!(world.replicas(ONE), replicas);
}

/// Shoots of a paused seed, so that the prober leaves what is held down in the first of them.
async fn held(shoots: &[&str]) -> World {
    let mut world = World::new(shoots).await;
    world.apply(PAUSED);
    world.join_and_probe().await;
    world.hold_down(ONE);
    world
}

/// Waits until the prober says of a shoot what makes `restore` refuse it so.
async fn until_refused(world: &World, words: &str, why: &str) {
    let words = format!("restore {words}");
    until_holds(&[why], async || stderr(&world.run(&words).await)).await;
    world.refused(&words).await;
}

/// Writes to the second of the Deployments.
fn second_write() -> When {
    When::matches(|record: &Record| record.verb == "patch" && record.name == MCM)
}

#[tokio::test]
async fn it_shows_what_it_would_do_and_then_does_it_in_order_and_as_it_was() {
    let world = held(&[ONE, TWO]).await;
    holds(
        &world.text("restore shoot--dev--two").await,
        &["Nothing to restore."],
    );
    let shown = world.text("restore shoot--dev--one").await;
    holds(&shown, &["Nothing is written; --yes does it."]);
    let json = world.json("restore shoot--dev--one").await;
    let shoot = &json["shoots"][0];
    let steps = [0, 1, 2].map(|step| &shoot["steps"][step]);
    let planned = steps.map(|step| json!([step["name"], step["restoredTo"]]));
    let expected = [json!([KCM, 2]), json!([MCM, 3]), json!([CA, 4])];
    assert_eq!(planned, expected, "{json}");
    holds(&shoot["verdict"].to_string(), &["\"scale_up"]);
    assert_now(&world, &[], HELD);

    let restored = world.text("restore shoot--dev--one --yes").await;
    holds(
        &restored,
        &["Deployment/kube-controller-manager scaled from 0 to 2"],
    );
    assert_now(&world, &ORDER, BACK);
    assert_eq!(world.written(TWO), Vec::<String>::new());

    // The rights of the manual are enough: with force nobody is asked, and what cannot be read of
    // the config is its default.
    world.hold_down(ONE);
    world.may(RESTORING);
    world.text("restore shoot--dev--one --force --yes").await;
    assert_eq!(world.replicas(ONE), BACK);
    let all = world.asked().into_iter();
    let forbidden = all.filter(|record| record.status == Some(403));
    let forbidden: Vec<_> = forbidden.map(|record| record.resource).collect();
    assert_eq!(forbidden, ["configmaps"]);
}

#[tokio::test]
async fn without_a_prober_it_wants_force_and_says_why() {
    let world = World::new(&[ONE]).await;
    world.hold_down(ONE);
    let told = world.refused("restore shoot--dev--one --yes").await;
    let why = "no prober says whether its nodes reach their API server (the Deployment dependency-watchdog-prober in garden has no pods)";
    holds(&told, &[why, "--force restores it all the same"]);
    let shown = world.text("restore shoot--dev--one --force").await;
    holds(&shown, &["--yes pauses the shoot and does it"]);
    assert_now(&world, &[], HELD);
    let paused = When::verb("patch", "namespaces").once();
    world.seed.faults().add(paused, Fault::status(403));
    let force = "restore shoot--dev--one --force --yes";
    holds(&world.refused(force).await, &["and so not be paused"]);
    assert_now(&world, &[ONE], HELD);
    let forced = world.run(force).await;
    assert!(forced.status.success(), "{forced:?}");
    let unpause = format!("kubectl annotate namespace {ONE} {PAUSE}-");
    holds(&stderr(&forced), &[&unpause]);
    assert_now(&world, &[&[ONE, ONE][..], &ORDER].concat(), BACK);
    let namespace = world.seed.store().get("namespaces", "", ONE);
    let namespace = namespace.expect("a namespace");
    assert_eq!(namespace["metadata"]["annotations"][PAUSE], "true");
}

#[tokio::test]
async fn what_the_prober_says_of_a_shoot_refuses_it() {
    let world = held(&[ONE, TWO]).await;
    let (api, nodes) = &world.shoots[ONE];
    nodes.cut_all();
    until_refused(&world, ONE, "is not to be restored: scale_down: ").await;
    api.faults().add(When::any(), Fault::status(403));
    let unprobed = "the prober cannot probe it (access is denied (403))";
    until_refused(&world, ONE, unprobed).await;
    // One that is refused keeps no other from coming back.
    world.hold_down(TWO);
    let told = world.refused("restore --all --yes").await;
    let refused = format!("error: {ONE}: the prober cannot probe it");
    holds(&told, &[&*refused, "error: 1 of 2 shoots are not restored"]);
    assert_eq!([world.replicas(ONE), world.replicas(TWO)], [HELD, BACK]);
}

#[tokio::test]
async fn an_outage_ends_a_restore_that_is_under_way() {
    let world = held(&[ONE]).await;
    // It hangs at its second step.
    world.seed.faults().add(second_write(), Fault::status(500));
    let cut = async {
        until("the first step", async || world.written(ONE).len() > 1).await;
        world.shoots[ONE].1.cut_all();
    };
    let (told, ()) = tokio::join!(world.refused("restore shoot--dev--one --yes"), cut);
    holds(&told, &["scale_down: "]);
    assert_eq!(world.replicas(ONE), "2, 0 from 3, 0 from 4");
}

#[tokio::test]
async fn a_controller_that_may_not_be_written_is_reported_and_left_behind() {
    let world = held(&[ONE]).await;
    let delay = "    initialDelay: 500ms";
    let impatient = world
        .config
        .replace(delay, &format!("{delay}\n    timeout: 2s"));
    let file = world.write("config.yaml", &impatient);
    let words = format!("restore {ONE} --yes --config-file {file}");
    world.seed.faults().add(second_write(), Fault::status(403));
    let output = world.run(&words).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = "Deployment/machine-controller-manager cannot be scaled: access is denied (403)";
    holds(&stderr(&output), &[told]);
    let left =
        "Deployment/machine-controller-manager could not be restored in time, going on without it";
    holds(&stdout(&output), &[left]);
    assert_eq!(world.replicas(ONE), "2, 0 from 3, 4");
    // A second one continues where the first has ended.
    world.seed.faults().clear();
    world.text(&words).await;
    assert_eq!(world.replicas(ONE), BACK);
}

#[tokio::test]
async fn a_shoot_that_is_not_probed_comes_back_only_when_it_is_named_and_forced() {
    let world = held(&[ONE]).await;
    // Not the watchdog's doing.
    world.patch(DEPLOYMENTS, ONE, CA, "metadata: {annotations: null}");
    let hibernated = "spec: {shoot: {spec: {hibernation: {enabled: true}}}}";
    world.patch("clusters.extensions.gardener.cloud", "", ONE, hibernated);
    for words in [
        "shoot--dev--one --yes",
        "--all --yes",
        "--all --force --yes",
    ] {
        until_refused(&world, words, "it hibernates or is about to").await;
    }
    assert_now(&world, &[], "0 from 2, 0 from 3, 0");
    world.text("restore shoot--dev--one --force --yes").await;
    assert_eq!(world.replicas(ONE), "2, 3, 0");
}
