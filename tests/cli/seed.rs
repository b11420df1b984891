//! Answers where no prober answers: that first, then what the seed's objects say.

use api_server::Network;
use testbed::gardener::KCM;

use crate::world::{ONE, PAUSED, READING, TWO, World, holds, line, stderr};

const COMMANDS: [&str; 3] = [
    "status",
    "explain shoot--dev--one",
    "restore shoot--dev--one",
];
/// Of a leader that is gone.
const LEASE: &str = "
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: dwd-prober-leader-election, namespace: garden}
spec: {holderIdentity: gone_0123, leaseDurationSeconds: 15, renewTime: '2020-01-01T00:00:00.000000Z'}";

#[tokio::test]
async fn the_seed_shows_leader_marks_saved_replicas_and_pauses() {
    let world = World::new(&[ONE, TWO]).await;
    world.may(READING);
    world.hold_down(ONE);
    world.apply(PAUSED);
    world.apply(LEASE);

    let shown = world.text("status").await;
    assert!(shown.starts_with("Prober:"), "{shown}");
    let nobody = "none answers: this is what the seed's objects show";
    holds(line(&shown, "Prober:"), &[nobody]);
    let missing = "the Deployment dependency-watchdog-prober in garden has no pods";
    holds(line(&shown, "Missing:"), &[missing]);
    holds(
        line(&shown, "Prober leads:"),
        &["gone_0123", "it seems to be gone"],
    );
    let words: Vec<_> = line(&shown, ONE).split_whitespace().collect();
    let expected = "probed ? kube-controller-manager, machine-controller-manager, cluster-autoscaler paused (garden)";
    assert_eq!(words[1..].join(" "), expected, "{shown}");
    let told = shown.contains("outage");
    assert!(!told, "only a prober knows them: {shown}");

    let shown = world.text("explain shoot--dev--one").await;
    assert!(shown.starts_with("Prober:"), "{shown}");
    let parts = [
        "it comes back with 2 replicas",
        "yes: its operators want nothing written",
        "ConfigMap garden/prober-config, key dep-config.yaml",
    ];
    holds(&shown, &parts);
    let explained = world.json("explain shoot--dev--one").await;
    let first = &explained["dependents"][0];
    assert_eq!(
        [&first["remembered"], &first["condition"]],
        ["2", "held_down"],
        "{explained}"
    );
    world.refused("explain shoot--dev--one --check").await;
    let beyond = world.asked().into_iter().find(|record| {
        let unneeded = ["secrets", "machines.machine.sapcloud.io"].contains(&&*record.resource);
        unneeded || record.is_write() || record.status == Some(403)
    });
    assert!(beyond.is_none(), "{beyond:?}");
}

#[tokio::test]
async fn a_config_file_says_what_the_controllers_are() {
    let world = World::new(&[ONE]).await;
    let config = "kubeConfigSecretName: s\ndependentResourceInfos:\n\
                  - ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}\n  scaleUp: {level: 0}\n  scaleDown: {level: 0}\n";
    let file = world.write("config.yaml", config);
    let json = world
        .json(&format!("explain {ONE} --config-file {file}"))
        .await;
    assert_eq!(json["seed"]["configFrom"], file);
    assert_eq!(json["dependents"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["dependents"][0]["name"], KCM);
}

#[tokio::test]
async fn a_seed_that_cannot_be_read_is_an_error_and_not_a_seed_without_shoots() {
    let world = World::new(&[ONE]).await;
    let named = format!("no answer from {}: ", world.seed.address());
    for network in [Network::Refused, Network::Silent] {
        world.seed.set_network(network);
        let [status, explain, restore] = COMMANDS.map(async |words| {
            let output = world.run(words).await;
            assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
            let told = stderr(&output);
            holds(&told, &["the seed's Clusters cannot be listed", &*named]);
            told
        });
        let (status, explain, _) = tokio::join!(status, explain, restore);
        for told in [status, explain] {
            assert!(told.starts_with("error: no prober answers ("), "{told}");
        }
    }
}

#[tokio::test]
async fn every_command_takes_the_context_that_it_is_told() {
    let world = World::new(&[ONE]).await;
    let elsewhere = "clusters:\n- {name: nowhere, cluster: {server: 'https://127.0.0.1:1'}}";
    let other = "contexts:\n- {name: other, context: {cluster: nowhere}}";
    let both = world.seed.kubeconfig("operator");
    let both = both.replace("current-context: it", "current-context: other");
    let both = both
        .replace("clusters:", elsewhere)
        .replace("contexts:", other);
    let file = world.write("operator", &both);
    for words in COMMANDS {
        let at = |context| format!("{words} --context {context}");
        world.text(&at("it")).await;
        let told = format!("error: there is no context \"gone\" in kubeconfig {file}\n");
        assert_eq!(world.refused(&at("gone")).await, told);
        world.refused(&at("other")).await;
    }
}
