//! `restore`: planned from the seed, by the verdict of the running prober, or with `--force` by none.

use api_server::{Fault, Record, When};
use serde_json::json;
use testbed::gardener::{CA, KCM, MCM, PAUSE as PAUSED};

use crate::world::{
    DEPLOYMENTS, ONE, ORDER, TWO, World, asking, reading, restoring, stderr, stdout, until,
};

const PAUSE: (&str, &str) = ("pause", "true");

const HELD: [&str; 3] = [
    r#"0 held from "2""#,
    r#"0 held from "3""#,
    r#"0 held from "4""#,
];
const BACK: [&str; 3] = ["2", "3", "4"];

/// Fails unless so much was written in a shoot, and its Deployments are so.
fn assert_now(world: &World, written: &[String], states: [&str; 3]) {
    assert_eq!(world.written(ONE), written);
    assert_eq!(world.states(ONE), states);
}

/// The writes of a whole restore.
fn in_order() -> Vec<String> {
    ORDER.map(|name| format!("{DEPLOYMENTS} {name}")).into()
}

/// Shoots of a paused seed, so that the prober leaves what is held down in the first of them.
async fn held() -> World {
    held_beside(&[ONE]).await
}

async fn held_beside(shoots: &[&str]) -> World {
    let world = World::new(shoots).await;
    world.annotate("garden", &[PAUSE]);
    let mut world = world;
    world.join("prober-a").await;
    for shoot in shoots {
        world.until_probed(shoot).await;
    }
    world.hold_down(ONE);
    world
}

/// Waits until the prober says of a shoot what makes `restore` refuse it so.
async fn until_refused(world: &World, words: &[&str], why: &str) {
    until(why, async || {
        let refused = world.run(&[&["restore"], words].concat()).await;
        refused.status.code() == Some(1) && stderr(&refused).contains(why)
    })
    .await;
}

#[tokio::test]
async fn it_shows_what_it_would_do_and_then_does_it_in_order_and_as_it_was() {
    let world = held_beside(&[ONE, TWO]).await;
    let idle = world.text(&["restore", TWO]).await;
    assert!(idle.contains("Nothing to restore."), "{idle}");
    let shown = world.text(&["restore", ONE]).await;
    assert!(
        shown.contains("Nothing is written; --yes does it."),
        "{shown}"
    );
    let json = world.json(&["restore", ONE]).await;
    let shoot = &json["shoots"][0];
    let steps = shoot["steps"].as_array().into_iter().flatten();
    let planned: Vec<_> = steps
        .map(|step| (step["name"].as_str(), step["restoredTo"].as_i64()))
        .collect();
    let expected = [
        (Some(KCM), Some(2)),
        (Some(MCM), Some(3)),
        (Some(CA), Some(4)),
    ];
    assert_eq!(planned, expected, "{json}");
    assert!(
        shoot["verdict"]
            .as_str()
            .is_some_and(|verdict| verdict.starts_with("scale_up"))
    );
    assert_now(&world, &[], HELD);

    let restored = world.text(&["restore", ONE, "--yes"]).await;
    let first = "Deployment/kube-controller-manager scaled from 0 to 2";
    assert!(restored.contains(first), "{restored}");
    assert_now(&world, &in_order(), BACK);
    assert_eq!(world.written(TWO), Vec::<String>::new());
}

#[tokio::test]
async fn without_a_prober_it_wants_force_and_says_why() {
    let world = World::new(&[ONE]).await;
    world.hold_down(ONE);
    let refused = world.run(&["restore", ONE, "--yes"]).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let told = stderr(&refused);
    for part in [
        "no prober says whether its nodes reach their API server (the Deployment dependency-watchdog-prober in garden has no pods)",
        "--force restores it all the same",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    assert_now(&world, &[], HELD);
    let shown = world.text(&["restore", ONE, "--force"]).await;
    assert!(
        shown.contains("--yes pauses the shoot and does it"),
        "{shown}"
    );
    assert_eq!(world.written(ONE), Vec::<String>::new());
    let paused = When::verb("patch", "namespaces").once();
    world.seed.faults().add(paused, Fault::status(403));
    let refused = world.run(&["restore", ONE, "--force", "--yes"]).await;
    let told = stderr(&refused);
    assert!(told.contains("and so not be paused"), "{told}");
    assert_eq!(world.states(ONE), HELD);
    let forced = world.run(&["restore", ONE, "--force", "--yes"]).await;
    assert!(forced.status.success(), "{forced:?}");
    let command = format!("kubectl annotate namespace {ONE} {PAUSED}-");
    assert!(stderr(&forced).contains(&command), "{forced:?}");
    let pauses = vec![format!("namespaces {ONE}"); 2];
    let all = [pauses, in_order()].concat();
    assert_now(&world, &all, BACK);
    let namespace = world.seed.store().get("namespaces", "", ONE);
    let namespace = namespace.expect("a namespace");
    assert_eq!(namespace["metadata"]["annotations"][PAUSED], "true");
}

#[tokio::test]
async fn what_the_prober_says_of_a_shoot_refuses_it() {
    let world = held_beside(&[ONE, TWO]).await;
    let (api, nodes) = &world.shoots[ONE];
    nodes.cut_all();
    until_refused(&world, &[ONE], "is not to be restored: scale_down: ").await;
    api.faults().add(When::any(), Fault::status(403));
    until_refused(
        &world,
        &[ONE],
        "the prober cannot probe it (access is denied (403))",
    )
    .await;
    // One that is refused keeps no other from coming back.
    world.hold_down(TWO);
    let output = world.run(&["restore", "--all", "--yes"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = stderr(&output);
    assert!(
        told.contains(&format!("error: {ONE}: the prober cannot probe it")),
        "{told}"
    );
    assert!(
        told.contains("error: 1 of 2 shoots are not restored"),
        "{told}"
    );
    assert_eq!(world.states(ONE), HELD);
    assert_eq!(world.states(TWO), BACK);
}

#[tokio::test]
async fn an_outage_ends_a_restore_that_is_under_way() {
    let world = held().await;
    // It hangs at its second step.
    let of_machines = |record: &Record| record.verb == "patch" && record.name == MCM;
    let hangs = When::matches(of_machines);
    world.seed.faults().add(hangs, Fault::status(500));
    let restore = world.run(&["restore", ONE, "--yes"]);
    let cut = async {
        until("the first step", async || world.written(ONE).len() > 1).await;
        world.shoots[ONE].1.cut_all();
    };
    let (stopped, ()) = tokio::join!(restore, cut);
    assert_eq!(stopped.status.code(), Some(1), "{stopped:?}");
    assert!(stderr(&stopped).contains("scale_down: "), "{stopped:?}");
    assert_eq!(world.states(ONE), [BACK[0], HELD[1], HELD[2]]);
}

#[tokio::test]
async fn a_controller_that_may_not_be_written_is_reported_and_left_behind() {
    let world = held().await;
    let volume = world
        .seed
        .store()
        .get("configmaps", "garden", "prober-config");
    let text = volume.expect("a ConfigMap")["data"]["dep-config.yaml"].take();
    let delay = "    initialDelay: 500ms";
    let impatient = text
        .as_str()
        .expect("a text")
        .replace(delay, &format!("{delay}\n    timeout: 2s"));
    let file = world.files.path().join("config.yaml");
    std::fs::write(&file, impatient).expect("a file");
    let words = [
        "restore",
        ONE,
        "--yes",
        "--config-file",
        file.to_str().expect("UTF-8"),
    ];
    let of_machines = |record: &Record| record.verb == "patch" && record.name == MCM;
    let refused = When::matches(of_machines);
    world.seed.faults().add(refused, Fault::status(403));
    let output = world.run(&words).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = "Deployment/machine-controller-manager cannot be scaled: access is denied (403)";
    assert!(stderr(&output).contains(told), "{output:?}");
    let left =
        "Deployment/machine-controller-manager could not be restored in time, going on without it";
    assert!(stdout(&output).contains(left), "{output:?}");
    assert_eq!(world.states(ONE), [BACK[0], HELD[1], BACK[2]]);
    // A second one continues where the first has ended.
    world.seed.faults().clear();
    world.text(&words).await;
    assert_eq!(world.states(ONE), BACK);
}

#[tokio::test]
async fn a_shoot_that_is_not_probed_comes_back_only_when_it_is_named_and_forced() {
    let world = held().await;
    // Not the watchdog's doing.
    world.change(ONE, CA, |object| {
        object["metadata"]["annotations"] = json!({})
    });
    let hibernated = json!({"spec": {"shoot": {"spec": {"hibernation": {"enabled": true}}}}});
    let clusters = "clusters.extensions.gardener.cloud";
    let patched = world.seed.store().patch(clusters, "", ONE, &hibernated);
    patched.expect("a Cluster");
    for words in [
        &[ONE, "--yes"][..],
        &["--all", "--yes"],
        &["--all", "--force", "--yes"],
    ] {
        until_refused(&world, words, "it hibernates or is about to").await;
    }
    let untouched = [HELD[0], HELD[1], "0"];
    assert_now(&world, &[], untouched);
    world.text(&["restore", ONE, "--force", "--yes"]).await;
    assert_eq!(world.states(ONE), [BACK[0], BACK[1], "0"]);
}

#[tokio::test]
async fn with_the_rights_that_the_manual_names_nothing_is_forbidden() {
    let world = held().await;
    world.may(&[asking(), reading(), restoring()]);
    world.text(&["restore", ONE, "--yes"]).await;
    assert_eq!(world.states(ONE), BACK);
    world.hold_down(ONE);
    world.may(&[
        json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]),
        reading(),
        restoring(),
    ]);
    let ended = world.seed.requests().all().len();
    world.text(&["restore", ONE, "--force", "--yes"]).await;
    assert_eq!(world.states(ONE), BACK);
    let mut all = world.seed.requests().all();
    let last = all.split_off(ended);
    for (asked, allowed) in [(all, &[][..]), (last, &["configmaps"])] {
        let forbidden: Vec<_> = asked
            .iter()
            .filter(|record| record.status == Some(403) && record.user == "operator")
            .map(|record| record.resource.as_str())
            .collect();
        assert_eq!(forbidden, allowed);
    }
}
