//! A seed with healthy shoots, probers in its pods, and an operator with the rights that the manual
//! names: without that to read Secrets only a prober gets to a shoot.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use api_server::{Authority, MemoryApi, Options, Record, Rule, User};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::agent::{AgentKind, AgentStart, RunningAgent};
use testbed::gardener::{self, CA, KCM, MCM, PROBER, PROTECTED, REPLICAS};
use testbed::kubelets::Kubelets;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use testbed::page::ScrapedMetrics;
use testbed::{PATIENCE, ProberConfig, page};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

pub const ONE: &str = "shoot--dev--one";
pub const TWO: &str = "shoot--dev--two";
pub const DEPLOYMENTS: &str = "deployments.apps";
/// The three Deployments in the order in which they come back.
pub const ORDER: [&str; 3] = [KCM, MCM, CA];

pub struct World {
    pub seed: MemoryApi,
    pub shoots: BTreeMap<String, (MemoryApi, MemoryNodes)>,
    probers: Vec<(String, RunningAgent)>,
    _kubelets: Kubelets,
    pub files: TempDir,
    /// The prober's config file.
    config: String,
}

/// Rights of the manual to ask the prober.
pub fn asking() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    ])
}

/// Rights of the manual to read the seed, for where no prober answers.
pub fn reading() -> Value {
    let read = json!(["get", "list", "watch"]);
    json!([
        {"apiGroups": ["extensions.gardener.cloud"], "resources": ["clusters"], "verbs": read},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": read},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": read},
    ])
}

/// Rights of the manual to restore, with `--force` too.
pub fn restoring() -> Value {
    json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["patch"]},
    ])
}

/// Gardener's config with shorter times.
pub fn config() -> String {
    let config = ProberConfig {
        initial_delay: "0s",
        machine_delay: "500ms",
        ..ProberConfig::default()
    };
    config.text()
}

impl World {
    pub async fn new(shoots: &[&str]) -> Self {
        Self::configured(shoots, config()).await
    }

    pub async fn configured(shoots: &[&str], config: String) -> Self {
        let authority = Authority::new().expect("an authority");
        let server = async || {
            let options = Options {
                resources: gardener::resources(),
                ..Options::default()
            };
            let server = MemoryApi::start(&authority, options).await;
            server.expect("a server")
        };
        let seed = server().await;
        seed.access().grant("prober", gardener::seed_prober());
        let mut apis = BTreeMap::new();
        for namespace in shoots {
            let api = server().await;
            let object = gardener::namespace(namespace);
            seed.store().apply(object).expect("a namespace");
            let plan = MemoryShootPlan {
                namespace,
                nodes: 5,
                ..MemoryShootPlan::default()
            };
            let nodes = plan.furnish(seed.store(), &api).expect("an empty seed");
            apis.insert((*namespace).to_owned(), (api, nodes));
        }
        let kubelets = Kubelets::start(seed.store(), &[DEPLOYMENTS], Duration::from_millis(100));
        let world = Self {
            seed,
            shoots: apis,
            probers: Vec::new(),
            _kubelets: kubelets,
            files: tempfile::tempdir().expect("a folder"),
            config,
        };
        world.may(&[asking(), reading(), restoring()]);
        world.deploy();
        world
    }

    /// The same with a prober that knows the verdict on every shoot.
    pub async fn probed(shoots: &[&str]) -> Self {
        let mut world = Self::new(shoots).await;
        world.join("prober-a").await;
        for shoot in shoots {
            world.until_probed(shoot).await;
        }
        world
    }

    pub async fn until_probed(&self, shoot: &str) {
        let clear = async || {
            let checked = self.run(&["explain", shoot, "--check"]).await;
            checked.status.success()
        };
        until("a clear verdict", clear).await;
    }

    /// Starts a replica of the prober in a pod of this name, and waits until it serves.
    pub async fn join(&mut self, pod: &str) {
        let kubeconfig = self.seed.kubeconfig("prober");
        let folder = self.files.path();
        let start = AgentStart::new(AgentKind::Prober, folder, pod, &kubeconfig, &self.config);
        let mut start = start.expect("its files");
        start.binary = Some(env!("CARGO_BIN_EXE_dependency-watchdog").into());
        start.environment = vec![("HOSTNAME".to_owned(), pod.to_owned())];
        let agent = start.run().expect("it starts");
        let address = async || page::address(agent.log_file(), "/statusz").is_ok();
        until("the status page", address).await;
        let address = page::address(agent.log_file(), "/statusz").expect("just asserted");
        self.pod(pod, &address);
        self.probers.push((pod.to_owned(), agent));
    }

    /// Applies the prober's Deployment and its config.
    fn deploy(&self) {
        let metadata = |name: &str| json!({ "name": name, "namespace": "garden" });
        let volume = json!({ "name": "config", "configMap": { "name": "prober-config" } });
        let spec = json!({ "containers": [], "volumes": [volume] });
        let selector = json!({ "matchLabels": { "app": PROBER } });
        for object in [
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("prober-config"),
                    "data": { "dep-config.yaml": self.config } }),
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(PROBER),
                    "spec": { "selector": selector, "template": { "spec": spec } } }),
        ] {
            self.seed.store().apply(object).expect("an object");
        }
    }

    /// Applies a pod of the prober that listens there.
    pub fn pod(&self, name: &str, address: &str) {
        let serves = format!("--health-bind-addr={address}");
        let container = json!({ "name": "prober", "image": "it", "args": ["prober", serves] });
        let metadata = json!({ "name": name, "namespace": "garden", "labels": { "app": PROBER } });
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                          "spec": { "containers": [container] },
                          "status": { "phase": "Running", "podIP": "127.0.0.1" } });
        self.seed.store().apply(pod).expect("a pod");
    }

    /// Address of a replica's status page.
    pub fn address(&self, pod: &str) -> String {
        let mut probers = self.probers.iter();
        let (_, agent) = probers.find(|(name, _)| name == pod).expect("it runs");
        page::address(agent.log_file(), "/statusz").expect("it serves")
    }

    /// Status page of the first replica, as a person reads it.
    pub async fn page(&self) -> String {
        let (_, agent) = self.probers.first().expect("it runs");
        let (_, page) = page::page(agent.log_file(), "/statusz")
            .await
            .expect("it serves");
        page
    }

    /// Metrics of the first replica.
    pub async fn metrics(&self) -> ScrapedMetrics {
        let (_, agent) = self.probers.first().expect("it runs");
        page::metrics(agent.log_file()).await.expect("metrics")
    }

    /// Grants the operator these rights, and no others.
    pub fn may(&self, roles: &[Value]) {
        let rules = roles.iter().flat_map(|role| Rule::of_role(role, None));
        let operator = User::limited("operator", rules.collect());
        self.seed.access().grant("operator", operator);
        let file = self.files.path().join("operator");
        std::fs::write(file, self.seed.kubeconfig("operator")).expect("a file");
    }

    pub async fn run(&self, words: &[&str]) -> Output {
        let kubeconfig = self.files.path().join("operator");
        let access = ["--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
        run(words.iter().copied().chain(access)).await
    }

    /// What is written to stdout.
    pub async fn text(&self, words: &[&str]) -> String {
        text(&self.run(words).await)
    }

    pub async fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["-o", "json"]].concat()).await;
        let read = serde_json::from_slice(&output.stdout);
        assert!(read.is_ok(), "{output:?}");
        read.expect("just asserted")
    }

    pub fn annotate(&self, namespace: &str, annotations: &[(&str, &str)]) {
        let mut object = gardener::namespace(namespace);
        for (name, value) in annotations {
            let name = format!("dependency-watchdog.gardener.cloud/{name}");
            object["metadata"]["annotations"][name] = json!(value);
        }
        self.seed.store().apply(object).expect("a namespace");
    }

    pub fn change(&self, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let store = self.seed.store();
        let changed = store.update(DEPLOYMENTS, namespace, name, change);
        changed.expect("a Deployment");
    }

    /// Leaves all of a shoot as an outage does, from 2, 3 and 4 replicas.
    pub fn hold_down(&self, namespace: &str) {
        for (name, memory) in ORDER.into_iter().zip(["2", "3", "4"]) {
            self.change(namespace, name, |object| {
                object["spec"]["replicas"] = 0.into();
                object["status"]["readyReplicas"] = 0.into();
                object["metadata"]["annotations"] = json!({ PROTECTED: "", REPLICAS: memory });
            });
        }
    }

    /// States of the three Deployments: replicas, and what they are held down from.
    pub fn states(&self, namespace: &str) -> [String; 3] {
        ORDER.map(|name| {
            let object = self.seed.store().get(DEPLOYMENTS, namespace, name);
            let object = object.expect("a Deployment");
            let annotations = &object["metadata"]["annotations"];
            let held = match annotations[PROTECTED].is_string() {
                true => format!(" held from {}", annotations[REPLICAS]),
                false => annotations[REPLICAS]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            };
            format!("{}{held}", object["spec"]["replicas"])
        })
    }

    /// Requests of the operator.
    pub fn asked(&self) -> Vec<Record> {
        let all = self.seed.requests().all().into_iter();
        all.filter(|record| record.user == "operator").collect()
    }

    /// What the operator has written in a shoot, in order.
    pub fn written(&self, namespace: &str) -> Vec<String> {
        let of = |record: &Record| record.namespace == namespace || record.name == namespace;
        let written = self.asked().into_iter();
        written
            .filter(|record| record.is_write() && of(record))
            .map(|record| format!("{} {}", record.resource, record.name))
            .collect()
    }
}

/// Waits until it is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let reached = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(PATIENCE, reached).await.is_ok(), "{what}");
}

pub async fn run<'a>(words: impl IntoIterator<Item = &'a str>) -> Output {
    run_in(&[], words).await
}

pub async fn run_in<'a>(
    environment: &[(&str, &str)],
    words: impl IntoIterator<Item = &'a str>,
) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"));
    command.env_clear().envs(environment.iter().copied());
    let output = command.args(words).stdin(Stdio::null()).output();
    output.await.expect("the binary runs")
}

/// What a command that succeeds writes to stdout.
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    let text = stdout(output);
    let coloured = text.contains('\u{1b}');
    assert!(!coloured, "no colours where no terminal is: {text}");
    text
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The line that begins so.
pub fn line<'a>(shown: &'a str, name: &str) -> &'a str {
    let mut lines = shown.lines();
    lines.find(|line| line.starts_with(name)).expect(shown)
}

/// Path of a file of this project.
pub fn project(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    path.to_str().expect("UTF-8").to_owned()
}
