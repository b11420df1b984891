//! `restore`: by what the running prober says, or with `--force` while a pause stands.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use api_server::{Fault, Record, When};
use testbed::gardener::{CA, KCM, MCM, PAUSE};
use testbed::kubelets::READY_AFTER;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::world::{
    DEPLOYMENTS, ONE, ORDER, PAUSED, TWO, World, holds, stderr, stdout, text, until_holds,
};

const HELD: &str = "0 from 2, 0 from 3, 0 from 4";
const BACK: &str = "2, 3, 4";
const YES: &str = "restore shoot--dev--one --yes";
const CLUSTERS: &str = "clusters.extensions.gardener.cloud";
const HIBERNATED: &str = "spec: {shoot: {spec: {hibernation: {enabled: true}}}}";
const FORCE: &str = "restore shoot--dev--one --force --yes";

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

/// Lines of a restore: what becomes of the Deployments.
fn lines(of: [&str; 3]) -> String {
    let lines = ORDER.into_iter().zip(of);
    let lines = lines.map(|(name, what)| format!("{ONE}: Deployment/{name}{what}\n"));
    lines.collect()
}

#[tokio::test]
async fn it_shows_what_it_would_do_and_then_does_it_in_order_and_as_it_was() {
    let world = held(&[ONE, TWO]).await;
    let all = lines([": 0 -> 2", ": 0 -> 3", ": 0 -> 4"]);
    let shown = world.text("restore shoot--dev--one").await;
    assert_eq!(shown, format!("{all}Nothing is written; --yes does it.\n"));
    assert_now(&world, &[], HELD);

    assert_eq!(world.text(YES).await, all);
    assert_now(&world, &ORDER, BACK);
    assert_eq!(world.written(TWO), Vec::<String>::new());
    let requests = world.asked();
    let mut of_second = requests.iter().filter(|record| record.name == MCM);
    let first = of_second
        .find(|record| record.verb == "get")
        .expect("a read");
    let written = of_second.find(|record| record.is_write()).expect("a write");
    let delay = written.at.expect("a time") - first.at.expect("a time");
    assert!(delay >= Duration::from_millis(500), "{delay:?}");

    let none = lines([" is not held down"; 3]);
    assert_eq!(world.text(YES).await, none);
    assert_eq!(world.text("restore shoot--dev--one").await, none);
    // The rights of the manual are enough.
    let forbidden = world
        .asked()
        .into_iter()
        .find(|record| record.status == Some(403));
    assert!(forbidden.is_none(), "{forbidden:?}");
}

#[tokio::test]
async fn all_that_is_held_down_comes_back_but_where_the_prober_does_not_say_up() {
    let world = held(&[ONE, TWO]).await;
    let (api, nodes) = &world.shoots[ONE];
    nodes.cut_all();
    until_refused(&world, ONE, "shoot--dev--one: scale_down: ").await;
    api.faults().add(When::any(), Fault::status(403));
    let unprobed = "the prober cannot probe it (access is denied (403))";
    until_refused(&world, ONE, unprobed).await;
    world.hold_down(TWO);
    let told = world.refused("restore --all --yes").await;
    let refused = format!("error: {ONE}: the prober cannot probe it");
    holds(&told, &[&*refused, "error: 1 of 2 shoots are not restored"]);
    assert_eq!([world.replicas(ONE), world.replicas(TWO)], [HELD, BACK]);

    api.faults().clear();
    nodes.heal_all();
    let restored = async || stdout(&world.run("restore --all --yes").await);
    until_holds(&[lines([": 0 -> 2", ": 0 -> 3", ": 0 -> 4"])], restored).await;
    let nothing = async || stdout(&world.run("restore --all").await);
    until_holds(&["Nothing is held down.\n"], nothing).await;
}

#[tokio::test]
async fn a_shoot_is_asked_about_again_when_its_turn_comes() {
    let world = held(&[ONE]).await;
    let (faults, reached) = (world.seed.faults(), CancellationToken::new());
    let read = When::verb("get", "configmaps");
    let read = faults.add(read, Fault::Hold(reached.clone()));
    let hibernates = async {
        faults.met(read, 1).await;
        world.patch(CLUSTERS, "", ONE, HIBERNATED);
        let status = async || world.page("prober-a", "/statusz.json").await;
        until_holds(&["\"state\":\"hibernated\""], status).await;
        reached.cancel();
    };
    let (told, ()) = tokio::join!(world.refused("restore --all --yes"), hibernates);
    holds(
        &told,
        &["the prober does not probe it: hibernated: it hibernates"],
    );
    assert_now(&world, &[], HELD);
}

#[tokio::test]
async fn what_the_prober_cannot_read_may_be_held_down() {
    let mut world = World::new(&[ONE]).await;
    let unread = |record: &Record| {
        record.user != "operator" && record.verb == "list" && record.resource == DEPLOYMENTS
    };
    let faults = world.seed.faults();
    faults.add(When::matches(unread), Fault::status(403));
    world.join_and_probe().await;
    world.hold_down(ONE);
    let restored = async || stdout(&world.run("restore --all --yes").await);
    until_holds(&[lines([": 0 -> 2", ": 0 -> 3", ": 0 -> 4"])], restored).await;
    assert_now(&world, &ORDER, BACK);
}

#[tokio::test]
async fn without_the_seeds_shoots_all_is_refused() {
    let mut world = World::new(&[ONE]).await;
    let clusters = When::verb("list", CLUSTERS);
    world.seed.faults().add(clusters, Fault::status(403));
    world.join("prober-a").await;
    let told = world.refused("restore --all --yes").await;
    assert_eq!(
        told,
        "error: the prober does not know the seed's Clusters at present\n"
    );
    let told = world.refused(YES).await;
    holds(&told, &["the prober knows no Cluster"]);
}

#[tokio::test]
async fn by_force_it_asks_nobody_and_wants_a_pause_to_stand() {
    let world = World::new(&[ONE]).await;
    world.hold_down(ONE);
    let annotate = format!("kubectl annotate --overwrite namespace {ONE} {PAUSE}=true\n");
    let unpaused = format!(
        "{ONE} is not paused, so that the prober would scale down again what comes back. First:\n  {annotate}"
    );
    let pause = |value: &str| format!("metadata: {{annotations: {{{PAUSE}: '{value}'}}}}");
    assert_eq!(world.refused(FORCE).await, format!("error: {unpaused}"));
    // What is said of the shoot's own namespace wins.
    world.apply(PAUSED);
    world.patch("namespaces", "", ONE, &pause("false"));
    assert_eq!(world.refused(FORCE).await, format!("error: {unpaused}"));
    assert_now(&world, &[], HELD);
    let missing = "error: the seed has no namespace shoot--dev--won\n";
    let mistyped = world.refused("restore shoot--dev--won --force").await;
    assert_eq!(mistyped, missing);
    world.patch("namespaces", "", ONE, "metadata: {annotations: null}");
    world.text(FORCE).await;
    assert_now(&world, &ORDER, BACK);

    world.hold_down(ONE);
    world.patch("namespaces", "", "garden", "metadata: {annotations: null}");
    world.refused(FORCE).await;
    world.patch("namespaces", "", ONE, &pause("true"));
    let shown = world.text("restore shoot--dev--one --force").await;
    holds(&shown, &["Nothing is written; --yes does it.\n"]);
    world.text(FORCE).await;
    assert_now(&world, &[ORDER, ORDER].concat(), BACK);
    let asked = world
        .asked()
        .into_iter()
        .find(|record| record.resource.starts_with("pods"));
    assert!(asked.is_none(), "{asked:?}");
}

#[tokio::test]
async fn a_shoot_that_is_not_probed_comes_back_only_when_it_is_named_and_forced() {
    let world = held(&[ONE]).await;
    // Not the watchdog's doing.
    world.patch(DEPLOYMENTS, ONE, CA, "metadata: {annotations: null}");
    world.patch(CLUSTERS, "", ONE, HIBERNATED);
    for words in ["shoot--dev--one --yes", "--all --yes"] {
        let why = "the prober does not probe it: hibernated: it hibernates or is about to";
        until_refused(&world, words, why).await;
    }
    assert_now(&world, &[], "0 from 2, 0 from 3, 0");
    world.text(FORCE).await;
    assert_eq!(world.replicas(ONE), "2, 3, 0");
}

#[tokio::test]
async fn what_fails_is_said_in_the_api_servers_words_and_the_rest_goes_on() {
    let world = held(&[ONE]).await;
    let faults = world.seed.faults();
    faults.add(second_write(), Fault::status(403));
    let output = world.run(YES).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = format!("error: {ONE}: Deployment/{MCM}: ");
    holds(&stderr(&output), &[&*told, "scripted fault"]);
    assert_eq!(world.replicas(ONE), "2, 0 from 3, 4");
    // Where nobody can be told, too.
    world.hold_down(ONE);
    let full = File::options().write(true).open("/dev/full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"));
    command.env_clear().args(YES.split(' '));
    command
        .arg("--kubeconfig")
        .arg(world.files.path().join("operator"));
    command
        .stdout(Stdio::null())
        .stderr(full.expect("a device"));
    let status = command.status().await.expect("the binary runs");
    assert_eq!(status.code(), Some(1));
    assert_eq!(world.replicas(ONE), "2, 0 from 3, 4");
    // Somebody else is faster, and then always.
    faults.clear();
    faults.add(second_write().times(2), Fault::status(409));
    world.text(YES).await;
    assert_eq!(world.replicas(ONE), BACK);
    world.hold_down(ONE);
    faults.add(second_write(), Fault::status(409));
    let told = world.refused(YES).await;
    holds(&told, &["somebody else keeps writing it"]);
    assert_eq!(world.replicas(ONE), "2, 0 from 3, 4");
}

#[tokio::test]
async fn each_is_awaited_for_a_moment_and_comes_back_to_1_where_nothing_usable_is_remembered() {
    let world = held(&[ONE]).await;
    let garbled = "metadata: {annotations: {dependency-watchdog.gardener.cloud/replicas: many}}";
    world.patch(DEPLOYMENTS, ONE, KCM, garbled);
    let slow = format!("metadata: {{annotations: {{{READY_AFTER}: '60000'}}}}");
    world.patch(DEPLOYMENTS, ONE, MCM, &slow);
    world.patch(DEPLOYMENTS, ONE, CA, "spec: {replicas: 1}");
    let restored = world.text(YES).await;
    let slow = format!(": 0 -> 3\n{ONE}: Deployment/{MCM} is not ready yet");
    let expected = [
        ": 0 -> 1, since what is remembered cannot be used",
        &slow,
        ": 1 -> 1, without the marker",
    ];
    assert_eq!(restored, lines(expected));
    assert_eq!(world.replicas(ONE), "1, 3, 1");
    let requests = world.asked();
    let written = |name| {
        let mut writes = requests.iter().filter(|record| record.is_write());
        writes
            .find(|record| record.name == name)
            .expect(name)
            .at
            .expect("a time")
    };
    let waited = written(CA) - written(MCM);
    assert!(waited >= Duration::from_secs(5), "{waited:?}");
}

#[tokio::test]
async fn a_config_file_says_what_comes_back_and_in_which_order() {
    let world = held(&[ONE]).await;
    // The first of the file is the last to come back; the second is not in it.
    let reference =
        |name| format!("- ref: {{kind: Deployment, name: {name}, apiVersion: apps/v1}}");
    let (first, last) = (reference(KCM), reference(CA));
    let config = format!(
        "kubeConfigSecretName: s\ndependentResourceInfos:\n{first}\n  scaleUp: {{level: 1}}\n  scaleDown: {{level: 0}}\n{last}\n  scaleUp: {{level: 0}}\n  scaleDown: {{level: 0}}\n"
    );
    let file = world.write("config.yaml", &config);
    // As in the prober's pod, whose own address is asked.
    let inside = format!(
        "{YES} --address {} --config-file",
        world.address("prober-a")
    );
    world.text(&format!("{inside} {file}")).await;
    assert_now(&world, &[CA, KCM], "2, 0 from 3, 4");
    assert!(
        world
            .asked()
            .iter()
            .all(|record| record.resource == "deployments.apps")
    );
    let nowhere = world
        .refused(&format!("{YES} --config-file /no/such"))
        .await;
    holds(&nowhere, &["/no/such: No such file"]);

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
        let parts = ["error: no config, which --config-file may name: ", why];
        holds(&world.refused(YES).await, &parts);
    }
    let maps = When::verb("get", "configmaps");
    world.seed.faults().add(maps, Fault::status(403));
    let told = world.refused(YES).await;
    let parts = [
        "error: no config, which --config-file may name: ConfigMap garden/prober-config cannot be read: ",
        "scripted fault",
    ];
    holds(&told, &parts);
    let there = text(
        &world
            .run(&format!(
                "{YES} --config-file {}",
                world.write("all", &world.config)
            ))
            .await,
    );
    holds(&there, &[format!("Deployment/{MCM}: 0 -> 3")]);
    assert_eq!(world.replicas(ONE), BACK);
}
