//! `restore` of the real binary. The seed and its shoots are in memory; no prober runs.

use std::process::{Output, Stdio};
use std::time::Duration;

use api_server::{Authority, Fault, MemoryApi, Network, Options, Record, Rule, User, When};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::gardener::{self, CA, IGNORE, KCM, MCM, PROTECTED, REPLICAS};
use testbed::kubelets::Kubelets;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use tokio::process::Command;

const ONE: &str = "shoot--dev--one";
const TWO: &str = "shoot--dev--two";
const DEPLOYMENTS: &str = "deployments.apps";
const PAUSE: &str = "dependency-watchdog.gardener.cloud/pause";
/// The three Deployments in the order in which they come back.
const ORDER: [&str; 3] = [KCM, MCM, CA];

/// A seed with two healthy shoots.
struct TwoShootSeed {
    seed: MemoryApi,
    shoots: [(MemoryApi, MemoryNodes); 2],
    _kubelets: Kubelets,
    files: TempDir,
}

impl TwoShootSeed {
    async fn new() -> Self {
        let authority = Authority::new().expect("an authority");
        let server = async || {
            let resources = gardener::resources();
            let options = Options {
                resources,
                ..Options::default()
            };
            MemoryApi::start(&authority, options)
                .await
                .expect("a server")
        };
        let seed = server().await;
        let mut shoots = Vec::new();
        for (namespace, token) in [(ONE, "probe-one"), (TWO, "probe-two")] {
            let shoot = server().await;
            seed.store()
                .create(gardener::namespace(namespace))
                .expect("a namespace");
            let plan = MemoryShootPlan {
                namespace,
                token,
                ..MemoryShootPlan::default()
            };
            let nodes = plan.furnish(seed.store(), &shoot).expect("an empty seed");
            shoots.push((shoot, nodes));
        }
        let kubelets = Kubelets::start(seed.store(), &[DEPLOYMENTS], Duration::from_millis(100));
        let files = tempfile::tempdir().expect("a folder");
        let config = include_str!("../config/prober.yaml")
            .replace("initialDelay: 30s", "initialDelay: 500ms");
        std::fs::write(files.path().join("config.yaml"), config).expect("a file");
        std::fs::write(files.path().join("kubeconfig"), seed.kubeconfig("admin")).expect("a file");
        let shoots = shoots
            .try_into()
            .unwrap_or_else(|_| unreachable!("there are two"));
        Self {
            seed,
            shoots,
            _kubelets: kubelets,
            files,
        }
    }

    async fn run(&self, words: &[&str]) -> Output {
        let file = |name: &str| self.files.path().join(name).display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"));
        command
            .env_clear()
            .stdin(Stdio::null())
            .arg("restore")
            .args(words);
        command.args([
            "--kubeconfig",
            &file("kubeconfig"),
            "--config-file",
            &file("config.yaml"),
        ]);
        command.output().await.expect("the binary runs")
    }

    async fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["-o", "json"]].concat()).await;
        let read = serde_json::from_slice(&output.stdout);
        assert!(read.is_ok(), "{output:?}");
        read.expect("just asserted")
    }

    fn change(&self, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.seed
            .store()
            .update(DEPLOYMENTS, namespace, name, change)
            .expect("a Deployment");
    }

    /// Leaves all of a shoot as an outage does, from 2, 3 and 4 replicas.
    fn hold_down(&self, namespace: &str) {
        for (name, memory) in ORDER.into_iter().zip(["2", "3", "4"]) {
            self.change(namespace, name, |object| {
                object["spec"]["replicas"] = 0.into();
                object["status"]["readyReplicas"] = 0.into();
                object["metadata"]["annotations"] = json!({ PROTECTED: "", REPLICAS: memory });
            });
        }
    }

    /// Replicas, marker and memory of the three Deployments.
    fn states(&self, namespace: &str) -> [(i64, bool, Option<String>); 3] {
        ORDER.map(|name| {
            let object = self
                .seed
                .store()
                .get(DEPLOYMENTS, namespace, name)
                .expect("a Deployment");
            let annotation = |key: &str| {
                object["metadata"]["annotations"][key]
                    .as_str()
                    .map(str::to_owned)
            };
            (
                object["spec"]["replicas"].as_i64().unwrap_or_default(),
                annotation(PROTECTED).is_some(),
                annotation(REPLICAS),
            )
        })
    }

    /// What was written in a shoot, in order.
    fn written(&self, namespace: &str) -> Vec<String> {
        let of = |record: &Record| record.namespace == namespace || record.name == namespace;
        let all = self
            .seed
            .requests()
            .all()
            .into_iter()
            .filter(|record| record.is_write() && of(record));
        all.map(|record| format!("{} {}", record.resource, record.name))
            .collect()
    }

    /// Waits until the leases of the first shoot say that its nodes have lost the way.
    async fn outage(&self) {
        self.shoots[0].1.cut_all();
        while self.json(&[ONE]).await["shoots"][0]["verdict"] != "scale_down" {}
    }
}

const HELD: [(i64, bool, Option<&str>); 3] = [
    (0, true, Some("2")),
    (0, true, Some("3")),
    (0, true, Some("4")),
];
const BACK: [(i64, bool, Option<&str>); 3] = [(2, false, None), (3, false, None), (4, false, None)];

fn are(states: [(i64, bool, Option<&str>); 3]) -> [(i64, bool, Option<String>); 3] {
    states.map(|(replicas, marked, memory)| (replicas, marked, memory.map(str::to_owned)))
}

/// The writes of a whole restore.
fn in_order() -> Vec<String> {
    ORDER.map(|name| format!("{DEPLOYMENTS} {name}")).into()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn it_shows_what_it_would_do_and_writes_nothing_before_it_is_asked_to() {
    let world = TwoShootSeed::new().await;
    let idle = world.run(&[ONE]).await;
    assert!(
        idle.status.success() && stdout(&idle).contains("Nothing to restore."),
        "{idle:?}"
    );
    world.hold_down(ONE);
    let shown = world.run(&[ONE]).await;
    assert!(
        shown.status.success() && stdout(&shown).contains("Nothing is written; --yes does it."),
        "{shown:?}"
    );
    let json = world.json(&[ONE]).await;
    let shoot = &json["shoots"][0];
    let steps: Vec<_> = shoot["steps"].as_array().into_iter().flatten().collect();
    let planned: Vec<_> = steps
        .iter()
        .map(|step| (step["name"].as_str(), step["restoredTo"].as_i64()))
        .collect();
    assert_eq!(
        planned,
        [
            (Some(KCM), Some(2)),
            (Some(MCM), Some(3)),
            (Some(CA), Some(4))
        ],
        "{json}"
    );
    assert_eq!(
        (&shoot["verdict"], &shoot["restored"]),
        (&json!("scale_up"), &json!(false)),
        "{json}"
    );
    assert_eq!((world.written(ONE), world.states(ONE)), (vec![], are(HELD)));
}

#[tokio::test]
async fn what_is_held_down_comes_back_in_order_and_to_what_is_remembered() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    let output = world.run(&[ONE, "--yes"]).await;
    assert!(output.status.success(), "{output:?}");
    assert!(
        stdout(&output).contains("Deployment/kube-controller-manager scaled from 0 to 2"),
        "{output:?}"
    );
    assert_eq!(
        (world.written(ONE), world.states(ONE)),
        (in_order(), are(BACK))
    );
    assert_eq!(world.written(TWO), Vec::<String>::new());
}

#[tokio::test]
async fn in_an_outage_it_refuses_unless_forced_and_then_pauses_the_shoot_first() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    world.outage().await;
    let refused = world.run(&[ONE, "--yes"]).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        stderr(&refused).contains(&format!("error: {ONE} is not restored: scale_down: ")),
        "{refused:?}"
    );
    assert!(stderr(&refused).contains("--force"), "{refused:?}");
    let shown = world.run(&[ONE, "--force"]).await;
    assert!(
        shown.status.success() && stdout(&shown).contains("--yes pauses the shoot and does it"),
        "{shown:?}"
    );
    assert_eq!((world.written(ONE), world.states(ONE)), (vec![], are(HELD)));
    let forced = world.run(&[ONE, "--force", "--yes"]).await;
    assert!(forced.status.success(), "{forced:?}");
    let command = format!("kubectl annotate namespace {ONE} {PAUSE}-");
    assert!(stderr(&forced).contains(&command), "{forced:?}");
    let all: Vec<_> = [format!("namespaces {ONE}")]
        .into_iter()
        .chain(in_order())
        .collect();
    assert_eq!((world.written(ONE), world.states(ONE)), (all, are(BACK)));
    let namespace = world
        .seed
        .store()
        .get("namespaces", "", ONE)
        .expect("a namespace");
    assert_eq!(namespace["metadata"]["annotations"][PAUSE], "true");
}

#[tokio::test]
async fn a_shoot_that_cannot_be_paused_is_not_restored() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    world
        .seed
        .faults()
        .add(When::verb("patch", "namespaces"), Fault::status(403));
    let output = world.run(&[ONE, "--force", "--yes"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr(&output).contains("cannot be annotated, and so not be paused"),
        "{output:?}"
    );
    assert_eq!(world.states(ONE), are(HELD));
}

#[tokio::test]
async fn of_all_shoots_one_that_cannot_be_asked_keeps_no_other_from_coming_back() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    world.hold_down(TWO);
    world.shoots[0].0.set_network(Network::Refused);
    let output = world.run(&["--all", "--yes"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr(&output).contains(&format!("error: {ONE}: it could not be probed")),
        "{output:?}"
    );
    assert!(
        stderr(&output).contains("error: 1 of 2 shoots are not restored"),
        "{output:?}"
    );
    assert_eq!(
        (world.states(ONE), world.states(TWO)),
        (are(HELD), are(BACK))
    );
}

#[tokio::test]
async fn a_controller_that_may_not_be_written_is_reported_and_left_behind() {
    let world = TwoShootSeed::new().await;
    let config = world.files.path().join("config.yaml");
    let text = std::fs::read_to_string(&config).expect("a config");
    let delay = "initialDelay: 500ms";
    let impatient = text.replace(delay, &format!("{delay}\n    timeout: 2s"));
    std::fs::write(&config, impatient).expect("a file");
    world.hold_down(ONE);
    let of_machines = |record: &Record| record.verb == "patch" && record.name == MCM;
    world
        .seed
        .faults()
        .add(When::matches(of_machines), Fault::status(403));
    let output = world.run(&[ONE, "--yes"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr(&output).contains(
            "Deployment/machine-controller-manager cannot be scaled: access is denied (403)"
        ),
        "{output:?}"
    );
    let said = String::from_utf8_lossy(&output.stdout);
    let left =
        "Deployment/machine-controller-manager could not be restored in time, going on without it";
    assert!(said.contains(left), "{said}");
    assert_eq!(world.states(ONE), are([BACK[0], HELD[1], BACK[2]]));
    // A second one continues where the first has ended.
    world.seed.faults().clear();
    assert!(world.run(&[ONE, "--yes"]).await.status.success());
    assert_eq!(world.states(ONE), are(BACK));
}

#[tokio::test]
async fn a_controller_that_was_changed_in_the_meantime_is_read_again_and_restored() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    world.seed.faults().add(
        When::verb("patch", DEPLOYMENTS).times(2),
        Fault::status(409),
    );
    let output = world.run(&[ONE, "--yes"]).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(world.states(ONE), are(BACK));
}

#[tokio::test]
async fn ignore_scaling_keeps_the_replicas_and_takes_the_marker() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    world.change(ONE, MCM, |object| {
        object["metadata"]["annotations"][IGNORE] = "true".into()
    });
    let output = world.run(&[ONE, "--yes"]).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        world.states(ONE),
        are([BACK[0], (0, false, Some("3")), BACK[2]])
    );
}

#[tokio::test]
async fn a_shoot_that_is_not_probed_comes_back_only_when_it_is_named_and_forced() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    // Not the watchdog's doing.
    world.change(ONE, CA, |object| {
        object["metadata"]["annotations"] = json!({})
    });
    let hibernated = json!({"spec": {"shoot": {"spec": {"hibernation": {"enabled": true}}}}});
    world
        .seed
        .store()
        .patch("clusters.extensions.gardener.cloud", "", ONE, &hibernated)
        .expect("a Cluster");
    for words in [
        &[ONE, "--yes"][..],
        &["--all", "--yes"],
        &["--all", "--force", "--yes"],
    ] {
        let output = world.run(words).await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            stderr(&output).contains("it hibernates or is about to"),
            "{output:?}"
        );
    }
    assert_eq!(
        (world.written(ONE), world.states(ONE)),
        (vec![], are([HELD[0], HELD[1], (0, false, None)]))
    );
    assert!(world.run(&[ONE, "--force", "--yes"]).await.status.success());
    assert_eq!(world.states(ONE), are([BACK[0], BACK[1], (0, false, None)]));
}

#[tokio::test]
async fn with_the_rights_that_the_document_names_nothing_is_forbidden() {
    let world = TwoShootSeed::new().await;
    world.hold_down(ONE);
    let read = json!(["get", "list", "watch"]);
    let rules = json!([
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["clusters"], "verbs": read},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machines"], "verbs": read},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": read},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch"]},
    ]);
    world.seed.access().grant(
        "person",
        User::limited("person", Rule::of_role(&rules, None)),
    );
    std::fs::write(
        world.files.path().join("kubeconfig"),
        world.seed.kubeconfig("person"),
    )
    .expect("a file");
    let output = world.run(&[ONE, "--force", "--yes"]).await;
    assert!(output.status.success(), "{output:?}");
    let forbidden = world
        .seed
        .requests()
        .count(|record| record.status == Some(403));
    assert_eq!((forbidden, world.states(ONE)), (0, are(BACK)));
}

#[tokio::test]
async fn it_needs_one_namespace_or_all_of_them() {
    let world = TwoShootSeed::new().await;
    for words in [&["--yes"][..], &[ONE, "--all"]] {
        assert_eq!(world.run(words).await.status.code(), Some(2), "{words:?}");
    }
    let nothing = world.run(&["--all"]).await;
    assert!(
        nothing.status.success() && stdout(&nothing).contains("Nothing is held down."),
        "{nothing:?}"
    );
    let missing = world.run(&["shoot--dev--nope"]).await;
    assert!(
        stderr(&missing).contains("there is no Cluster \"shoot--dev--nope\""),
        "{missing:?}"
    );
}
