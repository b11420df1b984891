//! States of shoots, each real, and how `status` and `explain` of the running prober show them.

use std::cell::RefCell;

use api_server::{Fault, Network, When};
use serde_json::{Value, json};
use testbed::PATIENCE;
use testbed::gardener::{self, CA, IGNORE, KCM, MCM, PROBE_SECRET};
use tokio::time::timeout;

use crate::world::{DEPLOYMENTS, World, asking, line, project, stderr, until};

/// A state that an operator can meet, and how it is shown.
struct Row {
    namespace: &'static str,
    make: fn(&World, &str),
    /// Parts of its line in `status`, with one blank between words.
    status: &'static [&'static str],
    /// Parts of `explain`, which the page shows too.
    explain: &'static [&'static str],
    /// Series that tell of it: one above 0 begins so.
    metric: &'static str,
    /// Alert on that metric; `None` where the state is wanted.
    alert: Option<&'static str>,
}

/// Refuses each write to a Deployment.
fn refuse(world: &World, namespace: &str, name: &'static str, code: u16) {
    let namespace = namespace.to_owned();
    let when = When::matches(move |record| {
        record.verb == "patch" && record.namespace == namespace && record.name == name
    });
    world.seed.faults().add(when, Fault::status(code));
}

/// Answers so to all that is asked of a shoot.
fn answer(world: &World, namespace: &str, code: u16) {
    let api = &world.shoots[namespace].0;
    api.faults().add(When::any(), Fault::status(code));
}

fn patch_shoot(world: &World, namespace: &str, shoot: Value) {
    let clusters = "clusters.extensions.gardener.cloud";
    let patch = json!({ "spec": { "shoot": shoot } });
    let patched = world.seed.store().patch(clusters, "", namespace, &patch);
    patched.expect("a Cluster");
}

const ALL_THREE: &str =
    "probed 5 kube-controller-manager, machine-controller-manager, cluster-autoscaler";

const ROWS: [Row; 20] = [
    Row {
        namespace: "shoot--a--healthy",
        make: |_, _| {},
        status: &["probed 5 -"],
        explain: &[
            "scale_up: the nodes reach their API server",
            "Machines: 5 that back nodes",
            "standbyProtects true (config)",
        ],
        metric: "dwd_shoots{state=\"probed\"}",
        alert: None,
    },
    Row {
        namespace: "shoot--a--nosecret",
        make: |world, namespace| {
            let store = world.seed.store();
            let deleted = store.delete("secrets", namespace, PROBE_SECRET);
            deleted.expect("a Secret");
        },
        status: &["probed 5 - probes fail (", " at kubeconfig): ", ", since "],
        explain: &["so nothing is concluded: "],
        metric: "dwd_probes_total{stage=\"kubeconfig\"",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--unauthorized",
        make: |world, namespace| answer(world, namespace, 401),
        status: &["probed 5 - probes fail (unauthorized at ", ", since "],
        explain: &["(unauthorized at ", "so nothing is concluded: "],
        metric: "dwd_probes_total{stage=\"version\",result=\"unauthorized\"}",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--forbidden",
        make: |world, namespace| answer(world, namespace, 403),
        status: &["probed 5 - probes fail (forbidden at version): access is denied (403)"],
        explain: &["(forbidden at version), so nothing is concluded: access is denied (403)"],
        metric: "dwd_probes_total{stage=\"version\",result=\"forbidden\"}",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--tls",
        make: |world, namespace| {
            let host = world.shoots[namespace].0.url();
            let kubeconfig = world.shoots[namespace].0.kubeconfig_at(&host, "probe");
            let server = format!("server: {host}");
            let named = format!("{server}\n    tls-server-name: nobody.example.org");
            let wrong = kubeconfig.replace(&server, &named);
            let secret = gardener::probe_secret(namespace, &wrong);
            let changed = world
                .seed
                .store()
                .update("secrets", namespace, PROBE_SECRET, |object| {
                    object["data"] = secret["data"].clone();
                });
            changed.expect("a Secret");
        },
        status: &["probed 5 - probes fail (", "nobody.example.org"],
        explain: &["so nothing is concluded: ", "nobody.example.org"],
        metric: "dwd_probes_total{stage=",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--unreachable",
        make: |world, namespace| world.shoots[namespace].0.set_network(Network::Refused),
        status: &["probed 5 - probes fail (", ", since "],
        explain: &["so nothing is concluded: "],
        metric: "dwd_probes_total{stage=",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--slow",
        make: |world, namespace| {
            let api = &world.shoots[namespace].0;
            api.faults().add(When::any(), Fault::Stall);
        },
        status: &["probed 5 - probes fail (timeout at ", ", since "],
        explain: &["(timeout at ", "so nothing is concluded: "],
        metric: "dwd_probes_total{stage=\"version\",result=\"timeout\"}",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--nomachine",
        make: |world, namespace| {
            let (machines, store) = ("machines.machine.sapcloud.io", world.seed.store());
            for node in world.shoots[namespace].1.names() {
                store.delete(machines, namespace, node).expect("a Machine");
            }
        },
        status: &[
            "probed 0 - ",
            "not a single Machine",
            "no Machine backs a node",
        ],
        explain: &["hold_no_machines: ", "Machines: 0 that back nodes"],
        metric: "dwd_verdicts{verdict=\"hold_no_machines\"}",
        alert: None,
    },
    Row {
        namespace: "shoot--a--asleep",
        make: |world, namespace| {
            let hibernated = json!({ "spec": { "hibernation": { "enabled": true } } });
            patch_shoot(world, namespace, hibernated);
        },
        status: &["hibernated 5 -"],
        explain: &["hibernated: it hibernates or is about to: it is not probed"],
        metric: "dwd_shoots{state=\"hibernated\"}",
        alert: None,
    },
    Row {
        namespace: "shoot--a--migrating",
        make: |world, namespace| {
            let migrating = json!({ "type": "Migrate", "state": "Processing", "progress": 10 });
            patch_shoot(
                world,
                namespace,
                json!({ "status": { "lastOperation": migrating } }),
            );
        },
        status: &["migrating 5 -"],
        explain: &["its control plane moves to another seed"],
        metric: "dwd_shoots{state=\"migrating\"}",
        alert: None,
    },
    Row {
        namespace: "shoot--a--paused",
        make: |world, namespace| {
            world.annotate(namespace, &[("pause", "true")]);
            world.hold_down(namespace);
        },
        status: &[ALL_THREE, "paused (namespace)"],
        explain: &[
            "its operators want nothing written",
            "it comes back with 2 replicas",
            "its write waits for the pause to be lifted",
        ],
        metric: "dwd_paused_shoots",
        alert: Some("PauseForgotten"),
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
        status: &[
            "probed 5 - pause false (namespace); restoreOnlyHeldDown true (namespace); at 0, not by the watchdog: kube-controller-manager",
        ],
        explain: &[
            "with restoreOnlyHeldDown it stays so",
            "standby-protects: \"no\" is refused, expected true or false",
        ],
        metric: "dwd_settings_refused",
        alert: None,
    },
    Row {
        namespace: "shoot--a--ignored",
        make: |world, namespace| {
            world.change(namespace, MCM, |object| {
                object["metadata"]["annotations"][IGNORE] = "true".into();
            });
        },
        status: &["probed 5 - ignore-scaling: machine-controller-manager"],
        explain: &["it is annotated with ignore-scaling"],
        metric: "dwd_shoots{state=\"probed\"}",
        alert: None,
    },
    Row {
        namespace: "shoot--a--optional",
        make: |world, namespace| {
            let deleted = world.seed.store().delete(DEPLOYMENTS, namespace, CA);
            deleted.expect("a Deployment");
        },
        status: &["probed 5 -"],
        explain: &["it does not exist, which is no error since it is optional"],
        metric: "dwd_shoots{state=\"probed\"}",
        alert: None,
    },
    Row {
        namespace: "shoot--a--missing",
        make: |world, namespace| {
            let deleted = world.seed.store().delete(DEPLOYMENTS, namespace, KCM);
            deleted.expect("a Deployment");
        },
        status: &["probed 5 -", "does not exist: kube-controller-manager"],
        explain: &["it does not exist"],
        metric: "dwd_missing_resources{name=\"kube-controller-manager\"}",
        alert: Some("ControllerMissing"),
    },
    Row {
        namespace: "shoot--a--grace",
        make: |world, namespace| {
            let grace = json!({ "nodeMonitorGracePeriod": "1s" });
            let kubernetes = json!({ "kubeControllerManager": grace });
            patch_shoot(
                world,
                namespace,
                json!({ "spec": { "kubernetes": kubernetes } }),
            );
        },
        status: &["probed 5", "its grace is too short"],
        explain: &["is shorter than two renewals of the nodes' leases"],
        metric: "dwd_short_grace_shoots",
        alert: None,
    },
    Row {
        namespace: "shoot--a--outage",
        make: |world, namespace| world.shoots[namespace].1.cut_all(),
        status: &[ALL_THREE, "in an outage"],
        explain: &[
            "scale_down: the nodes have lost the way to their API server",
            "held down by the watchdog while too few leases are renewed; it comes back with 1 replicas (since ",
            "expired",
        ],
        metric: "dwd_held_down{kind=\"Deployment\",name=\"kube-controller-manager\"}",
        alert: Some("ProtectionActive"),
    },
    Row {
        namespace: "shoot--a--unprotected",
        make: |world, namespace| {
            refuse(world, namespace, KCM, 403);
            world.shoots[namespace].1.cut_all();
        },
        status: &[
            "in an outage; kube-controller-manager (access is denied (403)",
            "; nodes are marked Unknown since ",
        ],
        explain: &[
            "Not protected: kube-controller-manager (access is denied (403)",
            "it could not be scaled: access is denied (403)",
        ],
        metric: "dwd_scale_operations_total{direction=\"down\",kind=\"Deployment\",name=\"kube-controller-manager\",result=\"forbidden\"}",
        alert: Some("ProtectionBlocked"),
    },
    Row {
        namespace: "shoot--a--restoring",
        make: |world, namespace| {
            refuse(world, namespace, CA, 503);
            world.hold_down(namespace);
        },
        status: &["probed 5 cluster-autoscaler being restored"],
        explain: &["it could not be scaled: "],
        metric: "dwd_held_down_shoots{verdict=\"scale_up\"}",
        alert: Some("RestoreBlocked"),
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
        status: &["probed 5 - eu-1a is lost"],
        explain: &[
            "eu-1a is lost: 2 of its 2 leases expired; nothing is scaled for that",
            "scale_up: ",
        ],
        metric: "dwd_lost_zone_shoots",
        alert: Some("ZoneLost"),
    },
];

/// Words with one blank between them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits until all of these are shown together.
async fn shows(parts: &[&str], shown: impl AsyncFn() -> String) {
    let last = RefCell::new(String::new());
    let reached = async {
        loop {
            let text = shown().await;
            if parts.iter().all(|part| text.contains(part)) {
                return;
            }
            *last.borrow_mut() = text;
        }
    };
    let reached = timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "not {parts:?} but {}", last.borrow());
}

#[tokio::test]
async fn each_state_is_shown_with_its_cause_to_whoever_may_only_ask_the_prober() {
    let namespaces: Vec<_> = ROWS.iter().map(|row| row.namespace).collect();
    let world = World::probed(&namespaces).await;
    world.may(&[asking()]);
    for row in &ROWS {
        (row.make)(&world, row.namespace);
    }
    let rules = project("deploy/kustomize/components/monitoring/prometheus-rule.yaml");
    let rules = std::fs::read_to_string(rules).expect("the rules");
    for row in &ROWS {
        shows(row.status, async || {
            words(line(&world.text(&["status"]).await, row.namespace))
        })
        .await;
        shows(row.explain, async || {
            words(&world.text(&["explain", row.namespace]).await)
        })
        .await;
        let counted = async || {
            let metrics = world.metrics().await;
            let mut values = metrics.values.iter();
            values.any(|(series, value)| series.starts_with(row.metric) && *value > 0.0)
        };
        until(row.metric, counted).await;
        let name = row.metric.split('{').next().unwrap_or_default();
        let alert = row.alert.map(|alert| {
            let begin = format!("- alert: DependencyWatchdog{alert}\n");
            let (_, rule) = rules.split_once(&begin).expect(alert);
            rule.split("- alert:").next().unwrap_or_default()
        });
        let watches = alert.is_none_or(|rule| rule.contains(name));
        assert!(watches, "{:?} does not watch {name}", row.alert);
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
