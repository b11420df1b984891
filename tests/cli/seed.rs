//! Answers where no prober answers: that first, then what the seed's objects say.

use api_server::Network;
use serde_json::json;
use testbed::gardener::KCM;

use crate::world::{ONE, TWO, World, asking, line, reading, run_in, stderr, text};

#[tokio::test]
async fn the_seed_shows_leader_marks_saved_replicas_and_pauses() {
    let world = World::new(&[ONE, TWO]).await;
    world.may(&[asking(), reading()]);
    world.hold_down(ONE);
    world.annotate("garden", &[("pause", "true")]);
    let spec = json!({ "holderIdentity": "gone_0123", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z" });
    let metadata = json!({ "name": "dwd-prober-leader-election", "namespace": "garden" });
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec, "metadata": metadata });
    world.seed.store().apply(lease).expect("a Lease");

    let shown = world.text(&["status"]).await;
    assert!(shown.starts_with("Prober:"), "{shown}");
    let first = line(&shown, "Prober:");
    assert!(
        first.contains("none answers: this is what the seed's objects show"),
        "{shown}"
    );
    let missing = "the Deployment dependency-watchdog-prober in garden has no pods";
    assert!(line(&shown, "Missing:").contains(missing), "{shown}");
    let leads = line(&shown, "Prober leads:");
    assert!(
        leads.contains("gone_0123") && leads.contains("it seems to be gone"),
        "{shown}"
    );
    let words: Vec<_> = line(&shown, ONE).split_whitespace().collect();
    let expected = "probed ? kube-controller-manager, machine-controller-manager, cluster-autoscaler paused (garden)";
    assert_eq!(words[1..].join(" "), expected, "{shown}");
    assert!(
        !shown.contains("outage"),
        "only a prober knows them: {shown}"
    );

    let shown = world.text(&["explain", ONE]).await;
    assert!(shown.starts_with("Prober:"), "{shown}");
    for part in [
        "it comes back with 2 replicas",
        "yes: its operators want nothing written",
        "ConfigMap garden/prober-config, key dep-config.yaml",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    let explained = world.json(&["explain", ONE]).await;
    assert_eq!(explained["dependents"][0]["remembered"], "2", "{explained}");
    assert_eq!(
        explained["dependents"][0]["condition"], "held_down",
        "{explained}"
    );
    let unchecked = world.run(&["explain", ONE, "--check"]).await;
    assert_eq!(unchecked.status.code(), Some(1), "{unchecked:?}");
    let asked = world.asked();
    let of = |resource: &str| {
        asked
            .iter()
            .filter(|record| record.resource == resource)
            .count()
    };
    assert_eq!((of("secrets"), of("machines.machine.sapcloud.io")), (0, 0));
    let beyond = asked
        .iter()
        .filter(|record| record.is_write() || record.status == Some(403));
    assert_eq!(beyond.count(), 0);
}

#[tokio::test]
async fn a_config_file_says_what_the_controllers_are() {
    let world = World::new(&[ONE]).await;
    let config = "kubeConfigSecretName: s\ndependentResourceInfos:\n\
                  - ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}\n  scaleUp: {level: 0}\n  scaleDown: {level: 0}\n";
    let file = world.files.path().join("config.yaml");
    std::fs::write(&file, config).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let json = world.json(&["explain", ONE, "--config-file", file]).await;
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
        let [status, explain, restore] = [&["status"][..], &["explain", ONE], &["restore", ONE]]
            .map(async |words| {
                let output = world.run(words).await;
                assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
                let told = stderr(&output);
                for part in ["the seed's Clusters cannot be listed", &named] {
                    assert!(told.contains(part), "no {part:?} in {told}");
                }
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
    let file = world.files.path().join("operator");
    let operator = std::fs::read_to_string(&file).expect("a kubeconfig");
    let elsewhere = "clusters:\n- {name: nowhere, cluster: {server: 'https://127.0.0.1:1'}}";
    let other = "contexts:\n- {name: other, context: {cluster: nowhere}}";
    let both = operator
        .replace("current-context: it", "current-context: other")
        .replace("clusters:", elsewhere)
        .replace("contexts:", other);
    std::fs::write(&file, both).expect("a file");
    for words in [&["status"][..], &["explain", ONE], &["restore", ONE]] {
        let at = async |context| world.run(&[words, &["--context", context]].concat()).await;
        let answered = at("it").await;
        assert!(answered.status.success(), "{words:?}: {answered:?}");
        let unknown = at("gone").await;
        let told = format!(
            "error: there is no context \"gone\" in kubeconfig {}\n",
            file.display()
        );
        assert_eq!((unknown.status.code(), stderr(&unknown)), (Some(1), told));
        assert_eq!(at("other").await.status.code(), Some(1), "{words:?}");
    }
}

#[tokio::test]
async fn in_the_probers_own_pod_its_own_address_is_asked() {
    let world = World::probed(&[ONE]).await;
    let address = world.address("prober-a");
    let output = run_in(&[], ["explain", ONE, "--address", &address]).await;
    assert!(text(&output).contains("scale_up: "), "{output:?}");
}
