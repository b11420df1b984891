//! States of shoots, each real, and how `status` and `explain` of the running prober show them.

use std::cell::RefCell;

use api_server::{Fault, Network, Rule, User, When};
use serde_json::{Value, json};
use testbed::PATIENCE;
use testbed::dns::{Dns, Reply};
use testbed::gardener::{self, CA, IGNORE, KCM, MCM, PROBE_SECRET};
use testbed::prober::dependent;
use tokio::time::timeout;

use crate::world::{self, DEPLOYMENTS, World, asking, project, stderr, until};

/// A state that an operator can meet, and how it is shown.
struct Row {
    namespace: &'static str,
    make: fn(&World, &str),
    /// Parts of its line in `status`, and of what stands above all lines, with one blank between words.
    status: &'static [&'static str],
    /// Parts of `explain`. The page shows them, too, where something needs attention, and of other
    /// shoots the state.
    explain: &'static [&'static str],
    needs_attention: bool,
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

fn patch_cluster(world: &World, namespace: &str, spec: Value) {
    let clusters = "clusters.extensions.gardener.cloud";
    let patch = json!({ "spec": spec });
    let patched = world.seed.store().patch(clusters, "", namespace, &patch);
    patched.expect("a Cluster");
}

fn patch_shoot(world: &World, namespace: &str, shoot: Value) {
    patch_cluster(world, namespace, json!({ "shoot": shoot }));
}

/// Belongs to this seed by its Cluster.
fn on_seed(world: &World, namespace: &str, seed: &str) {
    patch_cluster(
        world,
        namespace,
        json!({ "seed": { "metadata": { "name": seed } } }),
    );
}

/// Lets the prober ask for the shoot's API server by this kubeconfig.
fn renew_secret(world: &World, namespace: &str, kubeconfig: &str) {
    let secret = gardener::probe_secret(namespace, kubeconfig);
    let renew = |object: &mut Value| object["data"] = secret["data"].clone();
    let store = world.seed.store();
    let changed = store.update("secrets", namespace, PROBE_SECRET, renew);
    changed.expect("a Secret");
}

const ALL_THREE: &str =
    "probed 5 kube-controller-manager, machine-controller-manager, cluster-autoscaler";

const ROWS: [Row; 22] = [
    Row {
        namespace: "shoot--a--healthy",
        make: |_, _| {},
        status: &["probed 5 -"],
        explain: &[
            "scale_up: the nodes reach their API server",
            "Machines: 5 that back nodes",
            "standbyProtects true (config)",
        ],
        needs_attention: false,
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
        needs_attention: true,
        metric: "dwd_probes_total{stage=\"kubeconfig\"",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--unauthorized",
        make: |world, namespace| answer(world, namespace, 401),
        status: &["probed 5 - probes fail (unauthorized at ", ", since "],
        explain: &["(unauthorized at ", "so nothing is concluded: "],
        needs_attention: true,
        metric: "dwd_probes_total{stage=\"version\",result=\"unauthorized\"}",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--forbidden",
        make: |world, namespace| answer(world, namespace, 403),
        status: &["probed 5 - probes fail (forbidden at version): access is denied (403)"],
        explain: &["(forbidden at version), so nothing is concluded: access is denied (403)"],
        needs_attention: true,
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
            renew_secret(world, namespace, &wrong);
        },
        status: &["probed 5 - probes fail (", "nobody.example.org"],
        explain: &["so nothing is concluded: ", "nobody.example.org"],
        needs_attention: true,
        metric: "dwd_probes_total{stage=",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--dns",
        make: |world, namespace| {
            // A name that is never resolved (RFC 6761), and that no proxy is asked for.
            let host = "https://kube-apiserver.invalid:443";
            let kubeconfig = world.shoots[namespace].0.kubeconfig_at(host, "probe");
            renew_secret(world, namespace, &kubeconfig);
        },
        status: &[
            "probed 5 - probes fail (dns at ",
            "there is no such name, since ",
        ],
        explain: &[
            "(dns at ",
            "so nothing is concluded: the host name cannot be resolved: ",
        ],
        needs_attention: true,
        metric: "dwd_probes_total{stage=\"version\",result=\"dns\"}",
        alert: Some("ProbesFailing"),
    },
    Row {
        namespace: "shoot--a--unreachable",
        make: |world, namespace| world.shoots[namespace].0.set_network(Network::Refused),
        status: &["probed 5 - probes fail (", ", since "],
        explain: &["so nothing is concluded: "],
        needs_attention: true,
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
        needs_attention: true,
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
        needs_attention: true,
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
        needs_attention: false,
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
        needs_attention: false,
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
        needs_attention: true,
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
        needs_attention: false,
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
        needs_attention: false,
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
        needs_attention: false,
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
        needs_attention: true,
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
        needs_attention: true,
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
        needs_attention: true,
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
        needs_attention: true,
        metric: "dwd_scale_operations_total{direction=\"down\",kind=\"Deployment\",name=\"kube-controller-manager\",result=\"forbidden\"}",
        alert: Some("ProtectionBlocked"),
    },
    Row {
        namespace: "shoot--a--held",
        make: |world, namespace| {
            answer(world, namespace, 503);
            world.hold_down(namespace);
        },
        status: &[ALL_THREE, "probes fail (server at "],
        explain: &[
            "so nothing is concluded: the API server failed (503)",
            "held down by the watchdog while too few leases are renewed; it comes back with 2 replicas (since ",
        ],
        needs_attention: true,
        metric: "dwd_held_down_seconds{kind=\"Deployment\",name=\"kube-controller-manager\"}",
        alert: Some("ProtectionActiveTooLong"),
    },
    Row {
        namespace: "shoot--a--restoring",
        make: |world, namespace| {
            refuse(world, namespace, CA, 503);
            world.hold_down(namespace);
        },
        status: &["probed 5 cluster-autoscaler being restored"],
        explain: &["it could not be scaled: "],
        needs_attention: true,
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
        needs_attention: true,
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

/// States of the whole seed, and of shoots whose owner is asked for.
const SEED_ROWS: [Row; 4] = [
    Row {
        namespace: "shoot--b--rights",
        make: |world, namespace| {
            on_seed(world, namespace, "here");
            let readable = "deployments.apps,secrets,namespaces,machines.machine.sapcloud.io,clusters.extensions.gardener.cloud";
            let rules = [
                Rule::new("get,list,watch", readable),
                Rule::new(
                    "create,get,update,patch",
                    "leases.coordination.k8s.io,events",
                ),
            ];
            let reader = User::limited("reader", rules.into());
            world.seed.access().grant("prober", reader);
        },
        status: &[
            "probed 5 -",
            "the right to patch deployments.apps kube-controller-manager is missing",
        ],
        explain: &["right to patch deployments.apps kube-controller-manager is missing"],
        needs_attention: true,
        metric: "dwd_missing_rights",
        alert: Some("RightMissing"),
    },
    Row {
        namespace: "shoot--b--unscalable",
        make: |world, namespace| on_seed(world, namespace, "here"),
        status: &["probed 5 - cannot be scaled: nobody-scales-it"],
        explain: &["its kind does not exist or cannot be scaled on this seed: it is not protected"],
        needs_attention: false,
        metric: "dwd_missing_resources{name=\"nobody-scales-it\"}",
        alert: Some("ControllerMissing"),
    },
    Row {
        namespace: "shoot--b--elsewhere",
        make: |world, namespace| on_seed(world, namespace, "there"),
        status: &[
            "not known to be ours: shoot--b--elsewhere.example.org says \"here\", not \"there\"",
        ],
        explain: &[
            "another seed: shoot--b--elsewhere.example.org says \"here\", not \"there\"; the prober neither probes nor writes it",
        ],
        needs_attention: true,
        metric: "dwd_owner_shoots{standing=\"elsewhere\"}",
        alert: None,
    },
    Row {
        namespace: "shoot--b--ownerless",
        make: |_, _| {},
        status: &["not known to be ours: its name cannot be resolved: "],
        explain: &["for longer than is tolerated, the prober leaves the shoot alone"],
        needs_attention: true,
        metric: "dwd_owner_shoots{standing=\"unresolved\"}",
        alert: Some("OwnerUnresolved"),
    },
];

#[tokio::test]
async fn each_state_is_shown_with_its_cause_to_whoever_may_only_ask_the_prober() {
    let world = World::probed(&namespaces(&ROWS)).await;
    for row in &ROWS {
        (row.make)(&world, row.namespace);
    }
    all_are_shown(&world, &ROWS).await;
    // The rows of other shoots are none of its business.
    let asleep = world.json(&["explain", "shoot--a--asleep"]).await;
    assert_eq!(asleep["seed"]["shoots"], json!([]), "{asleep}");
}

#[tokio::test]
async fn states_of_the_seed_and_of_owner_records_are_shown_with_their_causes() {
    let dns = Dns::start(Reply::text("here")).await.expect("a DNS server");
    let unscalable = dependent("apps/v1", "Unknown", "nobody-scales-it", 0, 0);
    let with_it = format!("- {unscalable}\nkubeConfigSecretName");
    let config = world::config().replace("kubeConfigSecretName", &with_it);
    let owner = format!(
        "ownerCheck: {{name: '{{{{namespace}}}}.example.org', value: '{{{{seed}}}}', servers: ['{}'], interval: 1s, timeout: 300ms, tolerance: 2s}}\n",
        dns.address()
    );
    let mut world = World::configured(&namespaces(&SEED_ROWS), config + &owner).await;
    for row in &SEED_ROWS {
        (row.make)(&world, row.namespace);
    }
    world.join("prober-a").await;
    all_are_shown(&world, &SEED_ROWS).await;
}

fn namespaces(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().map(|row| row.namespace).collect()
}

async fn all_are_shown(world: &World, rows: &[Row]) {
    world.may(&[asking()]);
    let rules = project("deploy/kustomize/components/monitoring/prometheus-rule.yaml");
    let rules = std::fs::read_to_string(rules).expect("the rules");
    for row in rows {
        shows(row.status, async || {
            let text = world.text(&["status"]).await;
            let above = text.split("\nNAMESPACE").next().unwrap_or_default();
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(row.namespace));
            words(&format!("{above} {}", line.unwrap_or_default()))
        })
        .await;
        shows(row.explain, async || {
            words(&world.text(&["explain", row.namespace]).await)
        })
        .await;
        let on_page = if row.needs_attention {
            row.explain
        } else {
            &[]
        };
        shows(on_page, async || on_page_of(&world.page().await, row)).await;
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
    let asked = world.asked();
    let beyond: Vec<_> = asked
        .iter()
        .filter(|record| record.is_write() || record.status == Some(403))
        .collect();
    assert!(beyond.is_empty(), "{beyond:?}");
}

/// What the page says above all shoots, and of this one, which is a card or else a row with its
/// state.
fn on_page_of(page: &str, row: &Row) -> String {
    let above = page.split("<section").next().unwrap_or_default();
    let card = format!("<h3>{}</h3>", row.namespace);
    let mut cards = page.split("<section").skip(1);
    let card = cards.find(|section| section.contains(&card));
    let shown = match card {
        Some(card) => card.split("</section>").next(),
        None => {
            let state = row.status[0].split(' ').next().unwrap_or_default();
            let mut lines = page
                .split("<tr>")
                .filter(|line| line.contains(row.namespace));
            let line = lines.next().expect(row.namespace);
            // A card is awaited.
            assert!(row.needs_attention || line.contains(state), "{line}");
            Some(line)
        }
    };
    text_of(&format!("{above} {}", shown.unwrap_or_default()))
}

/// Text of a page without its marks.
fn text_of(html: &str) -> String {
    let pieces = html.split('<').enumerate();
    let texts = pieces.map(|(number, piece)| match piece.split_once('>') {
        Some((_, text)) if number > 0 => text,
        _ => piece,
    });
    let text: String = texts.collect();
    let text = text
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">");
    words(&text.replace("&amp;", "&"))
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
