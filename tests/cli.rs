//! The commands for operators of the real binary: `status`, `explain`, `probe`, `check-config`,
//! `completions`, `man`. The seed and its shoot are in memory; no watchdog runs.

use std::path::Path;
use std::process::{Output, Stdio};

use api_server::{Authority, Fault, MemoryApi, Network, Options, Rule, User, When};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::dns::{Dns, Reply};
use testbed::gardener::{self, KCM};
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use tokio::process::Command;

const NAMESPACE: &str = "shoot--dev--one";
const DEPLOYMENTS: &str = "deployments.apps";
const PROTECTED: &str = "dependency-watchdog.gardener.cloud/meltdown-protection-active";
const REMEMBERED: &str = "dependency-watchdog.gardener.cloud/replicas";

/// A seed with one healthy shoot.
struct OneShootSeed {
    seed: MemoryApi,
    shoot: MemoryApi,
    nodes: MemoryNodes,
    files: TempDir,
}

impl OneShootSeed {
    /// With three nodes.
    async fn new() -> Self {
        Self::with_nodes(3).await
    }

    async fn with_nodes(nodes: usize) -> Self {
        let authority = Authority::new().expect("an authority");
        let options = Options {
            resources: gardener::resources(),
            ..Options::default()
        };
        let seed = MemoryApi::start(&authority, options).await.expect("a seed");
        let shoot = MemoryApi::start(&authority, Options::default())
            .await
            .expect("a shoot");
        let plan = MemoryShootPlan {
            namespace: NAMESPACE,
            nodes,
            ..MemoryShootPlan::default()
        };
        let nodes = plan.furnish(seed.store(), &shoot).expect("an empty seed");
        let files = tempfile::tempdir().expect("a folder");
        std::fs::write(files.path().join("kubeconfig"), seed.kubeconfig("admin")).expect("a file");
        Self {
            seed,
            shoot,
            nodes,
            files,
        }
    }

    async fn run(&self, words: &[&str]) -> Output {
        let kubeconfig = self.files.path().join("kubeconfig");
        run(words
            .iter()
            .copied()
            .chain(["--kubeconfig", kubeconfig.to_str().expect("UTF-8")]))
        .await
    }

    async fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["-o", "json"]].concat()).await;
        let read = serde_json::from_slice(&output.stdout);
        assert!(read.is_ok(), "{output:?}");
        read.expect("just asserted")
    }

    fn hold_down(&self, name: &str) {
        let changed = self
            .seed
            .store()
            .update(DEPLOYMENTS, NAMESPACE, name, |object| {
                object["spec"]["replicas"] = 0.into();
                object["status"]["readyReplicas"] = 0.into();
                object["metadata"]["annotations"] = json!({ PROTECTED: "", REMEMBERED: "2" });
            });
        changed.expect("a Deployment");
    }

    fn writes(&self) -> u64 {
        self.seed.requests().count(|record| record.is_write()) as u64
    }
}

async fn run<'a>(words: impl IntoIterator<Item = &'a str>) -> Output {
    run_in(&[], words).await
}

async fn run_in<'a>(
    environment: &[(&str, &str)],
    words: impl IntoIterator<Item = &'a str>,
) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"));
    command.env_clear().envs(environment.iter().copied());
    command
        .args(words)
        .stdin(Stdio::null())
        .output()
        .await
        .expect("the binary runs")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(
        !text.contains('\u{1b}'),
        "no colours where no terminal is: {text}"
    );
    text
}

/// The line that begins so.
fn line<'a>(shown: &'a str, name: &str) -> &'a str {
    let mut lines = shown.lines();
    lines.find(|line| line.starts_with(name)).expect(shown)
}

#[tokio::test]
async fn status_lists_every_shoot_with_what_is_held_down() {
    let world = OneShootSeed::new().await;
    world
        .seed
        .store()
        .apply(gardener::cluster("shoot--dev--two", None))
        .expect("a Cluster");
    world.hold_down(KCM);
    let shown = text(&world.run(&["status"]).await);
    let line = |name| line(&shown, name);
    assert_eq!(
        line(NAMESPACE).split_whitespace().collect::<Vec<_>>(),
        [NAMESPACE, "probed", "3", KCM]
    );
    assert_eq!(
        line("shoot--dev--two")
            .split_whitespace()
            .collect::<Vec<_>>(),
        ["shoot--dev--two", "probed", "0", "-"]
    );
    assert!(line("Prober leads").contains("nobody"), "{shown}");
    let json = world.json(&["status"]).await;
    assert_eq!(json["shoots"][0]["heldDown"], json!([KCM]));
    let yaml = text(&world.run(&["status", "-o", "yaml"]).await);
    assert!(yaml.contains("heldDown:") && yaml.contains(KCM), "{yaml}");
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_for_the_seed_unless_no_proxy_names_it() {
    let world = OneShootSeed::new().await;
    let kubeconfig = world.files.path().join("kubeconfig");
    let words = [
        "status",
        "--kubeconfig",
        kubeconfig.to_str().expect("UTF-8"),
    ];
    // Nobody listens there.
    let proxy = ("HTTPS_PROXY", "http://127.0.0.1:1");
    let output = run_in(&[proxy], words).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("refused"),
        "{said}"
    );
    assert_eq!(world.seed.connections().accepted, 0);
    text(&run_in(&[proxy, ("NO_PROXY", "127.0.0.0/8")], words).await);
}

#[tokio::test]
async fn status_in_the_probers_own_pod_shows_all_but_who_leads_the_weeders() {
    let world = OneShootSeed::new().await;
    world.hold_down(KCM);
    // What the pod has: its service account's rights, and the config as a file.
    world
        .seed
        .access()
        .grant("in-the-pod", gardener::seed_prober());
    let kubeconfig = world.files.path().join("in-the-pod");
    std::fs::write(&kubeconfig, world.seed.kubeconfig("in-the-pod")).expect("a file");
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/prober.yaml");
    let access = [
        "--kubeconfig",
        kubeconfig.to_str().expect("UTF-8"),
        "--config-file",
        config.to_str().expect("UTF-8"),
    ];
    let output = run(["status"].into_iter().chain(access)).await;
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let shown = text(&output);
    let explained = run(["explain", NAMESPACE].into_iter().chain(access)).await;
    let waited = format!("probing {NAMESPACE}, watching the leases until they can be judged\n");
    assert_eq!(
        String::from_utf8_lossy(&explained.stderr),
        waited,
        "what is held down wants nodes that are seen to renew"
    );
    assert!(
        text(&explained).contains("held down by the watchdog"),
        "{explained:?}"
    );
    let line = |name| line(&shown, name);
    assert_eq!(
        line(NAMESPACE).split_whitespace().collect::<Vec<_>>(),
        [NAMESPACE, "probed", "3", KCM]
    );
    assert!(
        line("Prober leads").contains("nobody") && line("Weeder leads").contains("unknown: "),
        "{shown}"
    );
    let refused = world
        .seed
        .requests()
        .all()
        .into_iter()
        .filter(|record| record.status == Some(403));
    assert_eq!(
        refused.map(|record| record.name).collect::<Vec<_>>(),
        ["dwd-weeder-leader-election"]
    );
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn status_reads_no_secrets_and_says_in_a_few_words_what_it_may_not_read() {
    let world = OneShootSeed::new().await;
    world.hold_down(KCM);
    let rules = json!([
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["clusters"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["machine.sapcloud.io"], "resources": ["machines"], "verbs": ["get", "list", "watch"]},
    ]);
    world.seed.access().grant(
        "no-secrets",
        User::limited("operator", Rule::of_role(&rules, None)),
    );
    let kubeconfig = world.files.path().join("no-secrets");
    std::fs::write(&kubeconfig, world.seed.kubeconfig("no-secrets")).expect("a file");
    let output = run([
        "status",
        "--kubeconfig",
        kubeconfig.to_str().expect("UTF-8"),
    ])
    .await;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !errors.contains("Secrets") && !errors.contains("Status {"),
        "{errors}"
    );
    let shown = text(&output);
    let line = |name| line(&shown, name);
    assert_eq!(
        line(NAMESPACE).split_whitespace().collect::<Vec<_>>(),
        [NAMESPACE, "probed", "3", KCM]
    );
    let leads = line("Prober leads");
    assert!(
        leads.contains("forbidden") && !leads.contains("Status {"),
        "{leads}"
    );
    assert_eq!(
        world
            .seed
            .requests()
            .count(|record| record.resource == "secrets"),
        0
    );
}

#[tokio::test]
async fn explain_says_why_a_controller_is_at_0_and_what_the_leases_say() {
    let world = OneShootSeed::new().await;
    world.hold_down(KCM);
    let shown = text(&world.run(&["explain", NAMESPACE]).await);
    assert!(
        shown.contains("held down by the watchdog while too few leases are renewed; it comes back with 2 replicas"),
        "{shown}"
    );
    assert!(
        shown.contains("probed: its control plane is there"),
        "{shown}"
    );
    assert!(
        shown.contains("Would be written: Deployment/kube-controller-manager from 0 to 2 replicas"),
        "{shown}"
    );
    let json = world.json(&["explain", NAMESPACE]).await;
    assert_eq!(json["dependents"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["probe"]["found"]["candidates"], 3);
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn status_and_explain_say_which_setting_comes_from_where() {
    let world = OneShootSeed::new().await;
    let set = |namespace: &str, settings: &[(&str, &str)]| {
        let mut object = gardener::namespace(namespace);
        for (setting, value) in settings {
            object["metadata"]["annotations"]
                [format!("dependency-watchdog.gardener.cloud/{setting}")] = json!(value);
        }
        world.seed.store().apply(object).expect("a namespace");
    };
    set(
        "garden",
        &[
            ("pause", "true"),
            ("scale-up-stabilization", "5m"),
            ("standby-protects", "no"),
        ],
    );
    set(
        NAMESPACE,
        &[("pause", "false"), ("restore-only-held-down", "true")],
    );
    world
        .seed
        .store()
        .apply(gardener::cluster("shoot--dev--two", None))
        .expect("a Cluster");
    world
        .seed
        .store()
        .update(DEPLOYMENTS, NAMESPACE, KCM, |object| {
            object["spec"]["replicas"] = 0.into()
        })
        .expect("changed");

    let shown = text(&world.run(&["status"]).await);
    let refused = "namespace garden: dependency-watchdog.gardener.cloud/standby-protects: \"no\" is refused, expected true or false";
    for expected in [
        "Settings: pause true (garden), scaleUpStabilization 5m0s (garden)\n",
        refused,
        "pause false (namespace); restoreOnlyHeldDown true (namespace); at 0, not by the watchdog: kube-controller-manager\n",
    ] {
        assert!(shown.contains(expected), "no {expected:?} in {shown}");
    }
    let other = shown
        .lines()
        .find(|line| line.starts_with("shoot--dev--two"));
    assert!(
        other.is_some_and(|line| line.ends_with("paused (garden)")),
        "{shown}"
    );

    let shown = text(&world.run(&["explain", NAMESPACE]).await);
    for expected in [
        "pause false (namespace), restoreOnlyHeldDown true (namespace), scaleUpStabilization 5m0s (garden), standbyProtects true (config)",
        refused,
        "with restoreOnlyHeldDown it stays so",
    ] {
        assert!(shown.contains(expected), "no {expected:?} in {shown}");
    }
    let json = world.json(&["explain", "shoot--dev--two"]).await;
    assert_eq!(
        json["settings"][0],
        json!({ "setting": "pause", "value": "true", "from": "garden" })
    );
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn explain_looks_until_the_verdict_is_decided_and_once_where_that_is_asked_for() {
    let world = OneShootSeed::new().await;
    world.hold_down(KCM);
    world.nodes.cut_all();
    let verdict = |json: &Value| {
        json["probe"]["found"]["verdict"]
            .as_str()
            .map(str::to_owned)
    };
    // Until the leases are old enough every look finds them valid; then one look cannot believe
    // their stamps.
    let once = loop {
        let json = world.json(&["explain", NAMESPACE, "--once"]).await;
        if verdict(&json).as_deref() != Some("scale_up") {
            break json;
        }
    };
    assert_eq!(verdict(&once).as_deref(), Some("hold_undecided"), "{once}");
    let shown = text(&world.run(&["explain", NAMESPACE, "--once"]).await);
    assert!(
        shown.contains("Would be written: nothing before that is decided"),
        "{shown}"
    );
    let output = world.run(&["explain", NAMESPACE]).await;
    let (shown, errors) = (
        text(&output),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        shown.contains("scale_down: the nodes have lost the way to their API server"),
        "{shown}"
    );
    assert_eq!(
        errors
            .matches("watching the leases until they can be judged")
            .count(),
        1,
        "{errors}"
    );
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn explain_names_a_zone_that_is_lost_while_the_shoot_is_not() {
    let world = OneShootSeed::with_nodes(5).await;
    for (number, node) in world.nodes.names().iter().enumerate() {
        let zone = if number < 2 { "eu-1a" } else { "eu-1b" };
        let labelled = |object: &mut Value| {
            object["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone.into()
        };
        world
            .shoot
            .store()
            .update("nodes", "", node, labelled)
            .expect("a node");
    }
    world.nodes.cut([0, 1]);
    // Until the leases are old enough.
    let found = loop {
        let found = world.json(&["explain", NAMESPACE]).await["probe"]["found"].take();
        if found["lostZones"].is_array() {
            break found;
        }
    };
    assert_eq!(
        found["lostZones"],
        json!([{ "zone": "eu-1a", "candidates": 2, "expired": 2 }])
    );
    assert_eq!(found["verdict"], "scale_up");
    let shown = text(&world.run(&["explain", NAMESPACE]).await);
    assert!(
        shown.contains("eu-1a is lost: 2 of its 2 leases expired; nothing is scaled for that"),
        "{shown}"
    );
    assert!(shown.contains("Would be written: nothing"), "{shown}");
}

#[tokio::test]
async fn status_and_explain_show_outages_as_the_replica_that_leads_has_observed_them() {
    let world = OneShootSeed::new().await;
    let apply = |object: Value| world.seed.store().apply(object).expect("an object");
    let config = world.files.path().join("config.yaml");
    let gardeners = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/prober.yaml");
    std::fs::copy(gardeners, &config).expect("a file");
    let words = ["status", "--config-file", config.to_str().expect("UTF-8")];
    let labels = json!({ "app": "dependency-watchdog-prober" });
    let garden = |name: &str| json!({ "name": name, "namespace": "garden", "labels": labels });
    let container =
        json!({ "name": "prober", "image": "i", "args": ["prober", "--health-bind-addr=:9000"] });
    let pod = json!({ "containers": [container] });
    apply(
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": garden("dependency-watchdog-prober"),
                  "spec": { "selector": { "matchLabels": labels }, "template": { "spec": pod } } }),
    );
    for name in ["first", "second", "third"] {
        apply(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": garden(name), "spec": pod }));
    }
    let spec = json!({ "holderIdentity": "second_0123", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z" });
    apply(
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
                  "metadata": { "name": "dwd-prober-leader-election", "namespace": "garden" } }),
    );

    let nobody = text(&world.run(&words).await);
    assert!(
        nobody.contains("Outages: unknown, no replica of the prober could be asked"),
        "{nobody}"
    );
    let outage = |namespace: &str| {
        json!({ "namespace": namespace, "began": "2026-01-02T03:04:05Z", "foundHeldDown": true, "writes": [], "heldDown": [],
                "nodes": [], "overdueNodes": 0 })
    };
    let entries = json!({ "outages": [outage(NAMESPACE), outage("shoot--dev--other")] });
    let page = |pod: &str| format!("/api/v1/namespaces/garden/pods/{pod}:9000/proxy/statusz.json");
    for pod in ["second", "third"] {
        let answer = Fault::Answer {
            code: 200,
            headers: Vec::new(),
            body: entries.to_string().into(),
        };
        world
            .seed
            .faults()
            .add(When::request("GET", &page(pod)), answer);
    }
    let shown = text(&world.run(&words).await);
    assert!(
        shown.contains("The last outages, as second has observed them"),
        "{shown}"
    );
    let row = "begun before this process could tell; not over yet";
    assert!(
        shown.contains(&format!("2026-01-02 03:04:05 UTC  {NAMESPACE}")) && shown.contains(row),
        "{shown}"
    );
    let json = world.json(&words).await;
    assert_eq!(
        (&json["outages"]["observedBy"], &json["outages"]["records"]),
        (&"second".into(), &entries["outages"])
    );
    let words = ["explain", NAMESPACE, "--once", words[1], words[2]];
    let shown = text(&world.run(&words).await);
    assert!(
        shown.contains("begun before this process could tell")
            && !shown.contains("shoot--dev--other"),
        "{shown}"
    );
    assert_eq!(
        world.json(&words).await["outages"]["records"],
        json!([outage(NAMESPACE)])
    );
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn explain_works_when_the_shoot_is_out_of_reach_and_when_there_is_none() {
    let world = OneShootSeed::new().await;
    world.shoot.set_network(Network::Refused);
    let shown = text(&world.run(&["explain", NAMESPACE]).await);
    assert!(shown.contains("nothing is concluded"), "{shown}");
    let missing = world.run(&["explain", "shoot--dev--nope"]).await;
    assert_eq!(missing.status.code(), Some(1));
    let error = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        error.contains("there is no Cluster \"shoot--dev--nope\""),
        "{error}"
    );
}

#[tokio::test]
async fn a_seed_that_cannot_be_read_is_an_error_and_not_a_seed_without_shoots() {
    let world = OneShootSeed::new().await;
    world.seed.set_network(Network::Refused);
    for words in [
        &["status"][..],
        &["explain", NAMESPACE],
        &["probe", NAMESPACE],
    ] {
        let output = world.run(words).await;
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(1), &b""[..]),
            "{output:?}"
        );
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            error.starts_with("error: the seed's Clusters cannot be listed: "),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_exec_plugin_that_fails_is_reported_without_its_credentials() {
    let folder = tempfile::tempdir().expect("a folder");
    for (script, expected) in [
        (
            "echo secret-answer; echo no login >&2; exit 3",
            "exec plugin failed (exit status: 3): no login",
        ),
        (
            "echo secret-answer: [",
            "exec plugin printed no ExecCredential",
        ),
    ] {
        let plugin = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script],
                             "env": [{ "name": "TOKEN", "value": "secret-word" }], "interactiveMode": "Never" });
        let kubeconfig = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "seed",
                                 "clusters": [{ "name": "seed", "cluster": { "server": "https://127.0.0.1:1" } }],
                                 "users": [{ "name": "seed", "user": { "exec": plugin } }],
                                 "contexts": [{ "name": "seed", "context": { "cluster": "seed", "user": "seed" } }] });
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, kubeconfig.to_string()).expect("a file");
        let output = run(["status", "--kubeconfig", file.to_str().expect("UTF-8")]).await;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.contains(expected) && !error.contains("secret"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn probe_says_the_verdict_of_a_healthy_shoot_and_of_an_outage_and_writes_nothing() {
    let world = OneShootSeed::new().await;
    let shown = text(&world.run(&["probe", NAMESPACE]).await);
    assert!(
        shown.contains("scale_up: the nodes reach their API server")
            && shown.contains("Would be written: nothing"),
        "{shown}"
    );
    world.nodes.cut_all();
    let mut json = Value::Null;
    // Until the leases are old enough every look finds them valid.
    while json["found"]["verdict"] != "scale_down" {
        json = world.json(&["probe", NAMESPACE]).await;
    }
    let names: Vec<_> = json["wouldWrite"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(names.len(), 3, "{json}");
    assert_eq!(json["found"]["expired"], 3, "{json}");
    assert_eq!(world.writes(), 0);
}

#[tokio::test]
async fn the_config_is_that_of_the_prober_on_the_seed_unless_another_is_given() {
    let world = OneShootSeed::new().await;
    let config = "kubeConfigSecretName: shoot-access-dependency-watchdog-probe\nrestoreOnlyHeldDown: true\ndependentResourceInfos:\n\
                  - ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}\n  scaleUp: {level: 0}\n  scaleDown: {level: 0}\n";
    let metadata = |name: &str| json!({ "name": name, "namespace": "garden" });
    let apply = |object: Value| world.seed.store().apply(object).expect("an object");
    apply(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("prober-config-1"), "data": { "dep-config.yaml": config } }),
    );
    let pod = json!({ "containers": [], "volumes": [{ "name": "config", "configMap": { "name": "prober-config-1" } }] });
    apply(
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("dependency-watchdog-prober"),
                  "spec": { "selector": {}, "template": { "spec": pod } } }),
    );
    let json = world.json(&["explain", NAMESPACE]).await;
    assert_eq!(
        json["configFrom"],
        "ConfigMap garden/prober-config-1, key dep-config.yaml"
    );
    assert_eq!(json["dependents"].as_array().map(Vec::len), Some(1));
    let file = world.files.path().join("config.yaml");
    std::fs::write(&file, config).expect("a file");
    let json = world
        .json(&[
            "explain",
            NAMESPACE,
            "--config-file",
            file.to_str().expect("UTF-8"),
        ])
        .await;
    assert_eq!(json["configFrom"], file.to_str().expect("UTF-8"));
}

#[tokio::test]
async fn check_config_names_every_error_with_its_place_and_takes_gardeners_files() {
    for name in ["prober", "weeder"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("config/{name}.yaml"));
        let shown = text(&run(["check-config", file.to_str().expect("UTF-8")]).await);
        assert!(
            shown.contains(&format!("valid as the {name}'s config")),
            "{shown}"
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.yaml");
    std::fs::write(
        &file,
        "kubeConfigSecretName: ''\nprobeInterval: 30\ndependantResourceInfos: []\n",
    )
    .expect("a file");
    let output = run(["check-config", file.to_str().expect("UTF-8")]).await;
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.contains("wrong.yaml:1:23: error: kubeConfigSecretName"),
        "{shown}"
    );
    assert!(
        shown.contains("wrong.yaml:2:16: error: probeInterval: 30: expected a duration"),
        "{shown}"
    );
    assert!(shown.contains("dependentResourceInfos: missing"), "{shown}");
    // Why it is missing, and what a warning is for.
    assert!(
        shown.contains("warning: dependantResourceInfos: unknown key, ignored (line 3"),
        "{shown}"
    );
    assert!(
        shown.ends_with("refused as the prober's config, 1 warning\n"),
        "{shown}"
    );
    std::fs::write(&file, "a: [\n").expect("a file");
    let shown = String::from_utf8(
        run(["check-config", file.to_str().expect("UTF-8")])
            .await
            .stdout,
    )
    .expect("text");
    assert!(
        shown.contains("wrong.yaml: error: unclosed bracket '[' at line 1, column 4\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn check_config_knows_manifests_and_files_of_former_versions() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dep-config.yaml");
    for (content, said, agent) in [
        (
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  dep-config.yaml: |\n    servicesAndDependantSelectors: {}\n",
            "error: it is the manifest of a \"ConfigMap\"",
            "weeder",
        ),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"a\": \"dependentResourceInfos: []\"}}",
            "error: it is the manifest of a \"ConfigMap\"",
            "prober",
        ),
        (
            "kind: List\nitems: []\n---\nkind: ConfigMap\n",
            "error: it is the manifest of a \"List\"",
            "prober",
        ),
        (
            "namespace: default\nservices:\n  etcd-main-client:\n    dependantPods: []\n",
            "warning: services: a key of versions before 1.0, which servicesAndDependantSelectors replaced, ignored (line 3, column 3)",
            "weeder",
        ),
        (
            "probes:\n- name: shoot-kube-apiserver\n",
            "warning: probes: a key of versions before 1.0, which ",
            "prober",
        ),
        (
            "internalKubeConfigSecretName: a\nexternalKubeConfigSecretName: b\ndependentResourceInfos: []\n",
            "warning: internalKubeConfigSecretName: a key of versions before 1.2, which kubeConfigSecretName replaced, ignored (line 1",
            "prober",
        ),
    ] {
        std::fs::write(&file, content).expect("a file");
        let output = run(["check-config", file.to_str().expect("UTF-8")]).await;
        assert_eq!(output.status.code(), Some(1), "{content}");
        let shown = String::from_utf8(output.stdout).expect("text");
        assert!(shown.contains(said), "{shown}");
        let verdict = format!("refused as the {agent}'s config, ");
        let last = shown.lines().last().expect("a line");
        assert!(last.contains(&verdict), "{shown}");
    }
}

#[tokio::test]
async fn completions_and_manual_pages_know_agents_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(["completions", shell]).await);
        assert!(
            script.contains("check-config") && script.contains("enable-leader-election"),
            "{shell}: {script}"
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Into a folder that is there, and into one that is not.
    for pages in [folder.path().to_owned(), folder.path().join("man/man1")] {
        let output = run(["man", pages.to_str().expect("UTF-8")]).await;
        assert!(output.status.success(), "{output:?}");
        let page =
            std::fs::read_to_string(pages.join("dependency-watchdog-prober.1")).expect("a page");
        assert!(page.contains("enable\\-leader\\-election"), "{page}");
    }
}

#[tokio::test]
async fn help_of_an_operators_command_is_shown_like_that_of_an_agent() {
    for words in [["help", "explain"], ["explain", "--help"]] {
        let shown = text(&run(words).await);
        assert!(
            shown.contains("The shoot's namespace on the seed"),
            "{shown}"
        );
    }
    assert_eq!(
        text(&run(["--version"]).await),
        format!("dependency-watchdog {}\n", env!("CARGO_PKG_VERSION"))
    );
    let wrong = run(["explain"]).await;
    assert_eq!(wrong.status.code(), Some(2));
    let listed = text(&run([]).await);
    assert!(
        listed.contains("check-config") && listed.contains("prober"),
        "{listed}"
    );
}

#[tokio::test]
async fn status_explain_and_restore_ask_for_the_owner_record_where_the_config_wants_it() {
    let world = OneShootSeed::new().await;
    world.hold_down(KCM);
    let dns = Dns::start(Reply::text("here")).await.expect("a DNS server");
    let check = format!(
        "{{name: 'owner.{{{{namespace}}}}', value: here, servers: ['{}']}}",
        dns.address()
    );
    let config = format!(
        "{}ownerCheck: {check}\n",
        include_str!("../config/prober.yaml")
    );
    let file = world.files.path().join("config.yaml");
    std::fs::write(&file, config).expect("a file");
    let with = ["--config-file", file.to_str().expect("UTF-8")];
    let explain = [&["explain", NAMESPACE, "--once"][..], &with].concat();
    let (status, restore) = (
        [&["status"][..], &with].concat(),
        [&["restore", NAMESPACE][..], &with].concat(),
    );

    let shown = text(&world.run(&explain).await);
    assert!(
        shown.contains("Owner:     this seed: owner.shoot--dev--one says \"here\""),
        "{shown}"
    );
    assert!(!text(&world.run(&status).await).contains("not known to be ours"));

    dns.say(Reply::text("there"));
    let shown = text(&world.run(&explain).await);
    assert!(
        shown.contains("another seed: owner.shoot--dev--one says \"there\", not \"here\""),
        "{shown}"
    );
    assert_eq!(world.json(&explain).await["owner"]["elsewhere"], "there");
    let shown = text(&world.run(&status).await);
    assert!(
        shown.contains("not known to be ours: owner.shoot--dev--one says \"there\""),
        "{shown}"
    );
    let refused = world.run(&restore).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("it is not known to be ours"),
        "{said}"
    );

    dns.say(Reply::NoName);
    assert_eq!(world.json(&explain).await["owner"]["category"], "no_name");
    assert_eq!(world.writes(), 0);
}
