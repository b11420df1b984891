//! States of shoots, each real, and how `status` and `explain` of the running prober show them.

use api_server::{Fault, Network, When};
use serde_json::{Value, json};
use testbed::gardener::{CA, IGNORE, KCM, MCM, PROBE_SECRET};

use crate::world::{DEPLOYMENTS, World, asking, line, stderr, until};

/// What makes the state, and how `status` and `explain` show it.
struct Row {
    namespace: &'static str,
    make: fn(&World, &str),
    /// Its line in `status`, with one blank between words, but for the namespace.
    status: &'static str,
    explain: &'static [&'static str],
}

const ROWS: [Row; 10] = [
    Row {
        namespace: "shoot--a--healthy",
        make: |_, _| {},
        status: "probed 5 -",
        explain: &[
            "scale_up: the nodes reach their API server",
            "Machines: 5 that back nodes",
            "standbyProtects true (config)",
        ],
    },
    Row {
        namespace: "shoot--a--outage",
        make: |world, namespace| world.shoots[namespace].1.cut_all(),
        status: "probed 5 kube-controller-manager, machine-controller-manager, cluster-autoscaler",
        explain: &[
            "scale_down: the nodes have lost the way to their API server",
            "held down by the watchdog while too few leases are renewed; it comes back with 1 replicas (since ",
            "expired",
        ],
    },
    Row {
        namespace: "shoot--a--paused",
        make: |world, namespace| {
            world.annotate(namespace, &[("pause", "true")]);
            world.hold_down(namespace);
        },
        status: "probed 5 kube-controller-manager, machine-controller-manager, cluster-autoscaler paused (namespace)",
        explain: &[
            "its operators want nothing written",
            "it comes back with 2 replicas",
            "its write waits for the pause to be lifted",
        ],
    },
    Row {
        namespace: "shoot--a--settings",
        make: |world, namespace| {
            let own = [
                ("pause", "false"),
                ("restore-only-held-down", "true"),
                ("standby-protects", "no"),
            ];
            world.annotate(namespace, &own);
            world.change(namespace, KCM, |object| {
                object["spec"]["replicas"] = 0.into()
            });
        },
        status: "probed 5 - pause false (namespace); restoreOnlyHeldDown true (namespace); at 0, not by the watchdog: kube-controller-manager",
        explain: &[
            "with restoreOnlyHeldDown it stays so",
            "standby-protects: \"no\" is refused, expected true or false",
        ],
    },
    Row {
        namespace: "shoot--a--ignored",
        make: |world, namespace| {
            world.change(namespace, MCM, |object| {
                object["metadata"]["annotations"][IGNORE] = "true".into();
            });
        },
        status: "probed 5 - ignore-scaling: machine-controller-manager",
        explain: &["it is annotated with ignore-scaling"],
    },
    Row {
        namespace: "shoot--a--missing",
        make: |world, namespace| {
            let deleted = world.seed.store().delete(DEPLOYMENTS, namespace, CA);
            deleted.expect("a Deployment");
        },
        status: "probed 5 -",
        explain: &["it does not exist, which is no error since it is optional"],
    },
    Row {
        namespace: "shoot--a--asleep",
        make: |world, namespace| {
            let hibernated =
                json!({"spec": {"shoot": {"spec": {"hibernation": {"enabled": true}}}}});
            let clusters = "clusters.extensions.gardener.cloud";
            let changed = world
                .seed
                .store()
                .patch(clusters, "", namespace, &hibernated);
            changed.expect("a Cluster");
        },
        status: "hibernated 5 -",
        explain: &["hibernated: it hibernates or is about to: it is not probed"],
    },
    Row {
        namespace: "shoot--a--forbidden",
        make: |world, namespace| {
            let api = &world.shoots[namespace].0;
            api.faults().add(When::any(), Fault::status(403));
        },
        status: "probed 5 -",
        explain: &["(forbidden at version), so nothing is concluded: access is denied (403)"],
    },
    Row {
        namespace: "shoot--a--nosecret",
        make: |world, namespace| {
            let store = world.seed.store();
            let deleted = store.delete("secrets", namespace, PROBE_SECRET);
            deleted.expect("a Secret");
        },
        status: "probed 5 -",
        explain: &["so nothing is concluded: "],
    },
    Row {
        namespace: "shoot--a--zone",
        make: |world, namespace| {
            let (api, nodes) = &world.shoots[namespace];
            for (number, node) in nodes.names().iter().enumerate() {
                let zone = if number < 2 { "eu-1a" } else { "eu-1b" };
                let labelled = |object: &mut Value| {
                    object["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone.into();
                };
                let changed = api.store().update("nodes", "", node, labelled);
                changed.expect("a node");
            }
            nodes.cut([0, 1]);
        },
        status: "probed 5 -",
        explain: &[
            "eu-1a is lost: 2 of its 2 leases expired; nothing is scaled for that",
            "scale_up: ",
        ],
    },
];

#[tokio::test]
async fn each_state_is_shown_with_its_cause_to_whoever_may_only_ask_the_prober() {
    let namespaces = ROWS.map(|row| row.namespace);
    let world = World::probed(&namespaces).await;
    world.may(&[asking()]);
    for row in &ROWS {
        (row.make)(&world, row.namespace);
    }
    for row in &ROWS {
        let shown = async || {
            let shown = world.text(&["status"]).await;
            let words: Vec<_> = line(&shown, row.namespace)
                .split_whitespace()
                .skip(1)
                .collect();
            words.join(" ") == row.status
        };
        until(row.status, shown).await;
        let explained = async || {
            let shown = world.text(&["explain", row.namespace]).await;
            let shown: Vec<_> = shown.split_whitespace().collect();
            let shown = shown.join(" ");
            row.explain.iter().all(|part| shown.contains(part))
        };
        until(row.explain[0], explained).await;
    }
    // The rows of other shoots are none of its business.
    let asleep = world.json(&["explain", "shoot--a--asleep"]).await;
    assert_eq!(asleep["seed"]["shoots"], json!([]), "{asleep}");
    let asked = world.asked();
    let beyond: Vec<_> = asked
        .iter()
        .filter(|record| record.is_write() || record.status == Some(403))
        .collect();
    assert!(beyond.is_empty(), "{beyond:?}");
}

#[tokio::test]
async fn explain_checks_whether_there_is_a_verdict() {
    let one = "shoot--dev--one";
    let world = World::probed(&[one]).await;
    world.shoots[one].0.set_network(Network::Refused);
    let check = ["explain", one, "--check"];
    until("no verdict any more", async || {
        world.run(&check).await.status.code() == Some(1)
    })
    .await;
    let refused = world.run(&check).await;
    let told = stderr(&refused);
    assert!(told.contains("there is no clear verdict"), "{refused:?}");
    assert!(!world.text(&["explain", one]).await.is_empty());
    let missing = world.run(&["explain", "shoot--dev--nope"]).await;
    let told = stderr(&missing);
    assert!(
        told.contains("there is no Cluster \"shoot--dev--nope\""),
        "{told}"
    );
}
