//! `restore`: by what the running prober says, or with `--force` while a pause stands.

use std::time::Duration;

use api_server::{Fault, Record, When};
use testbed::gardener::{CA, KCM, MCM, PAUSE};
use testbed::kubelets::READY_AFTER;
use tokio_util::sync::CancellationToken;

use crate::world::{
    DEPLOYMENTS, ONE, ORDER, PAUSED, TWO, World, holds, stderr, stdout, until_holds,
};

const HELD: &str = "0 from 2, 0 from 3, 0 from 4";
const BACK: &str = "2, 3, 4";
/// What is said of each Deployment that comes back.
const RESTORED: [&str; 3] = [": 0 -> 2", ": 0 -> 3", ": 0 -> 4"];
const YES: &str = "restore shoot--dev--one --yes";
const FORCE: &str = "restore shoot--dev--one --force --yes";
const ALL: &str = "restore --all --yes";
const CLUSTERS: &str = "clusters.extensions.gardener.cloud";

/// Fails unless so much was written in the first shoot, and its Deployments are so.
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

/// Writes to the second of the Deployments.
fn second_write() -> When {
    When::matches(|record: &Record| record.verb == "patch" && record.name == MCM)
}

/// Time between the first requests of two kinds for Deployments.
fn between(world: &World, first: (&str, &str), second: (&str, &str)) -> Duration {
    let requests = world.asked();
    let at = |(verb, name)| {
        let mut requests = requests.iter();
        let first = requests.find(|record| record.verb == verb && record.name == name);
        first.expect(name).at.expect("a time")
    };
    at(second) - at(first)
}

/// Lines of a restore: what becomes of the Deployments.
fn lines(of: [&str; 3]) -> String {
    let lines = ORDER.into_iter().zip(of);
    let lines = lines.map(|(name, what)| format!("{ONE}: Deployment/{name}{what}\n"));
    lines.collect()
}

#[tokio::test]
async fn it_shows_what_it_would_do_and_then_does_it_in_order_and_as_it_was() {
    let world = held(&[ONE, TWO]).await;
    let shown = world.text("restore shoot--dev--one").await;
    let unwritten = lines(RESTORED) + "Nothing is written without --yes.\n";
    assert_eq!(shown, unwritten);
    assert_now(&world, &[], HELD);
    assert_eq!(world.text(YES).await, lines(RESTORED));
    assert_now(&world, &ORDER, BACK);
    assert_eq!(world.written(TWO), [""; 0]);
    let delay = between(&world, ("get", MCM), ("patch", MCM));
    assert!(delay >= Duration::from_millis(500), "{delay:?}");
    let none = lines([" is not held down"; 3]);
    assert_eq!(world.text(YES).await, none);
    // The rights of the manual are enough.
    let mut asked = world.asked().into_iter();
    assert_eq!(asked.find(|record| record.status == Some(403)), None);
}

#[tokio::test]
async fn all_that_is_held_down_comes_back_but_where_the_prober_does_not_say_up() {
    let world = held(&[ONE, TWO]).await;
    let (_, nodes) = &world.shoots[ONE];
    nodes.cut_all();
    let down = format!("error: {ONE}: scale_down: ");
    let one = async || stderr(&world.run("restore shoot--dev--one").await);
    until_holds(&[&down], one).await;
    world.hold_down(TWO);
    let told = world.refused(ALL).await;
    holds(&told, &[&*down, "error: 1 of 2 shoots are not restored"]);
    assert_eq!([world.replicas(ONE), world.replicas(TWO)], [HELD, BACK]);
    nodes.heal_all();
    let restored = async || stdout(&world.run(ALL).await);
    until_holds(&[lines(RESTORED)], restored).await;
    until_holds(&["Nothing is held down.\n"], restored).await;
}

#[tokio::test]
async fn a_shoot_is_asked_about_again_when_its_turn_comes() {
    let world = held(&[ONE]).await;
    let (faults, reached) = (world.seed.faults(), CancellationToken::new());
    let read = When::verb("get", "configmaps");
    let read = faults.add(read, Fault::Hold(reached.clone()));
    let hibernates = async {
        faults.met(read, 1).await;
        let hibernated = "spec: {shoot: {spec: {hibernation: {enabled: true}}}}";
        world.patch(CLUSTERS, "", ONE, hibernated);
        let status = async || world.page("prober-a", "/statusz.json").await;
        until_holds(&["\"state\":\"hibernated\""], status).await;
        reached.cancel();
    };
    let (told, ()) = tokio::join!(world.refused(ALL), hibernates);
    let unprobed = "the prober does not probe it: hibernated: it hibernates or is about to";
    holds(&told, &[unprobed]);
    assert_now(&world, &[], HELD);
    // Nor is what somebody else has scaled to 0 brought back by force.
    world.patch(DEPLOYMENTS, ONE, CA, "metadata: {annotations: null}");
    world.text(FORCE).await;
    assert_eq!(world.replicas(ONE), "2, 3, 0");
}

#[tokio::test]
async fn by_force_it_asks_nobody_and_wants_a_pause_to_stand() {
    let world = World::new(&[ONE]).await;
    world.hold_down(ONE);
    let annotate = |namespace: &str, annotations: &str| {
        let patch = format!("metadata: {{annotations: {annotations}}}");
        world.patch("namespaces", "", namespace, &patch);
    };
    let pause = |value: &str| annotate(ONE, &format!("{{{PAUSE}: '{value}'}}"));
    let unpaused = format!(
        "error: {ONE}: it is not paused, so that the prober would scale down again what comes back. First:\n  \
         kubectl annotate --overwrite namespace {ONE} {PAUSE}=true\n"
    );
    holds(&world.refused(FORCE).await, &[&unpaused]);
    // What is said of the shoot's own namespace wins.
    world.apply(PAUSED);
    pause("false");
    holds(&world.refused(FORCE).await, &[&unpaused]);
    assert_now(&world, &[], HELD);
    let mistyped = world.refused("restore shoot--dev--won --force").await;
    holds(&mistyped, &["the seed has no such namespace"]);
    annotate(ONE, "null");
    world.text(FORCE).await;
    assert_now(&world, &ORDER, BACK);

    world.hold_down(ONE);
    annotate("garden", "null");
    world.refused(FORCE).await;
    pause("true");
    world.text(FORCE).await;
    assert_now(&world, &[ORDER, ORDER].concat(), BACK);
    let mut asked = world.asked().into_iter();
    assert_eq!(
        asked.find(|record| record.resource.starts_with("pods")),
        None
    );
}

#[tokio::test]
async fn what_fails_is_said_in_the_api_servers_words_and_the_rest_goes_on() {
    const REST: &str = "2, 0 from 3, 4";
    let world = held(&[ONE]).await;
    let faults = world.seed.faults();
    faults.add(second_write(), Fault::status(403));
    let told = format!("error: {ONE}: Deployment/{MCM}: ");
    holds(&world.refused(YES).await, &[&*told, "scripted fault"]);
    assert_eq!(world.replicas(ONE), REST);
    // Somebody else is faster, and then always.
    faults.clear();
    faults.add(second_write().times(2), Fault::status(409));
    world.text(YES).await;
    assert_eq!(world.replicas(ONE), BACK);
    world.hold_down(ONE);
    faults.add(second_write(), Fault::status(409));
    let told = world.refused(YES).await;
    holds(&told, &["somebody else keeps writing it"]);
    assert_eq!(world.replicas(ONE), REST);
}

#[tokio::test]
async fn each_is_awaited_for_a_moment_and_comes_back_to_1_where_nothing_usable_is_remembered() {
    let world = held(&[ONE]).await;
    let slow = format!("metadata: {{annotations: {{{READY_AFTER}: '60000'}}}}");
    for (name, patch) in [
        (
            KCM,
            "metadata: {annotations: {dependency-watchdog.gardener.cloud/replicas: many}}",
        ),
        (MCM, &slow),
        (CA, "spec: {replicas: 1}"),
    ] {
        world.patch(DEPLOYMENTS, ONE, name, patch);
    }
    let restored = world.text(YES).await;
    let slow = format!(": 0 -> 3\n{ONE}: Deployment/{MCM} is not ready yet");
    let expected = [
        ": 0 -> 1, since what is remembered cannot be used",
        &slow,
        ": 1 -> 1, without the marker",
    ];
    assert_eq!(restored, lines(expected));
    assert_eq!(world.replicas(ONE), "1, 3, 1");
    let waited = between(&world, ("patch", MCM), ("patch", CA));
    assert!(waited >= Duration::from_secs(5), "{waited:?}");
}

#[tokio::test]
async fn a_config_file_says_what_comes_back_and_in_which_order() {
    let world = held(&[ONE]).await;
    // The first of the file is the last to come back; the second is not in it.
    let dependent = |name, level| {
        format!(
            "- {{ref: {{kind: Deployment, name: {name}, apiVersion: apps/v1}}, scaleUp: {{level: {level}}}, scaleDown: {{level: 0}}}}"
        )
    };
    let (first, last) = (dependent(KCM, 1), dependent(CA, 0));
    let config = format!("kubeConfigSecretName: s\ndependentResourceInfos:\n{first}\n{last}\n");
    let file = world.write("config.yaml", &config);
    // As in the prober's pod, whose own address is asked.
    let address = world.address("prober-a");
    let inside = format!("{YES} --address {address} --config-file {file}");
    world.text(&inside).await;
    assert_now(&world, &[CA, KCM], "2, 0 from 3, 4");
    let mut asked = world.asked().into_iter();
    assert_eq!(asked.find(|record| record.resource != DEPLOYMENTS), None);

    let refused = async |more: &str, why: &[&str]| {
        let told = world.refused(&format!("{YES}{more}")).await;
        holds(&told, &["error: no config, which --config-file may name: "]);
        holds(&told, why);
    };
    refused(" --config-file /no/such", &["/no/such: No such file"]).await;
    for (data, why) in [
        (
            "{dep-config.yaml: 'dependentResourceInfos: []'}",
            "ConfigMap garden/prober-config: kubeConfigSecretName: ",
        ),
        (
            "{dep-config.yaml: null, ca.crt: none}",
            "has no ConfigMap with a prober's config mounted",
        ),
    ] {
        let data = format!("data: {data}");
        world.patch("configmaps", "garden", "prober-config", &data);
        refused("", &[why]).await;
    }
    let maps = When::verb("get", "configmaps");
    world.seed.faults().add(maps, Fault::status(403));
    let unread = "ConfigMap garden/prober-config cannot be read: ";
    refused("", &[unread, "scripted fault"]).await;
}
