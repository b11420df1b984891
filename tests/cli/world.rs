//! A seed with healthy shoots, probers in its pods, and an operator with the rights that the manual
//! names: without that to read Secrets only a prober gets to a shoot.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use api_server::{Authority, MemoryApi, Options, Record, Rule, User};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::agent::{AgentKind, AgentStart, RunningAgent};
use testbed::gardener::{self, CA, KCM, MCM, PROTECTED, REPLICAS};
use testbed::kubelets::Kubelets;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use testbed::objects::object;
use testbed::page;
use testbed::{ProberConfig, eventually};
use tokio::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_dependency-watchdog");
pub const ONE: &str = "shoot--dev--one";
pub const TWO: &str = "shoot--dev--two";
pub const DEPLOYMENTS: &str = "deployments.apps";
/// The three Deployments in the order in which they come back.
pub const ORDER: [&str; 3] = [KCM, MCM, CA];

/// Parts of the manual's list of permissions, by how their comments begin.
pub const ASKING: &[&str] = &["In garden: to ask"];
pub const RESTORING: &[&str] = &["In garden", "On the seed"];

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: prober-config, namespace: garden}
data: {dep-config.yaml: CONFIG}";
const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: dependency-watchdog-prober, namespace: garden}
spec:
  selector: {matchLabels: {app: dependency-watchdog-prober}}
  template: {spec: {containers: [], volumes: [{name: config, configMap: {name: prober-config}}]}}";
const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: POD, namespace: garden, labels: {app: dependency-watchdog-prober}}
spec: {containers: [{name: prober, image: it, ports: [{name: health, containerPort: PORT}]}]}
status: {phase: Running, podIP: 127.0.0.1}";
/// The seed's own namespace, by which all is paused.
pub const PAUSED: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: garden, annotations: {dependency-watchdog.gardener.cloud/pause: 'true'}}";
const HELD: &str = "
metadata: {annotations: {dependency-watchdog.gardener.cloud/replicas: 'MEMORY', dependency-watchdog.gardener.cloud/meltdown-protection-active: ''}}
spec: {replicas: 0}
status: {readyReplicas: 0}";

pub struct World {
    pub seed: MemoryApi,
    /// How probers and the operator reach it.
    pub seed_url: String,
    pub shoots: BTreeMap<String, (MemoryApi, MemoryNodes)>,
    /// By their pods.
    probers: BTreeMap<String, RunningAgent>,
    _kubelets: Kubelets,
    files: TempDir,
    /// The prober's config file.
    config: String,
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
            seed_url: seed.url(),
            seed,
            shoots: apis,
            probers: BTreeMap::new(),
            _kubelets: kubelets,
            files: tempfile::tempdir().expect("a folder"),
            config,
        };
        world.may(RESTORING);
        let config = json!(world.config).to_string();
        world.apply(&CONFIG.replace("CONFIG", &config));
        world.apply(DEPLOYMENT);
        world
    }

    /// The same with a prober that knows the verdict on every shoot.
    pub async fn probed(shoots: &[&str]) -> Self {
        let mut world = Self::new(shoots).await;
        world.join_and_probe().await;
        world
    }

    /// Starts a prober, and waits until it knows the verdict on every shoot.
    pub async fn join_and_probe(&mut self) {
        self.join("prober-a").await;
        let probed = eventually("every verdict", async || {
            let status = self.page("prober-a", "/statusz.json").await;
            let up = status.matches("\"verdict\":\"scale_up\"").count();
            ensure!(up == self.shoots.len(), "{status}");
            Ok(())
        });
        probed.await.expect("every verdict");
    }

    /// Starts a replica of the prober in a pod of this name, and waits until it serves.
    pub async fn join(&mut self, pod: &str) {
        let kubeconfig = self.seed.kubeconfig_at(&self.seed_url, "prober");
        let folder = self.files.path();
        let start = AgentStart::new(AgentKind::Prober, folder, pod, &kubeconfig, &self.config);
        let mut start = start.expect("its files");
        start.binary = Some(BINARY.into());
        start.environment = vec![("HOSTNAME".to_owned(), pod.to_owned())];
        let agent = start.run().expect("it starts");
        let address = async || page::address(agent.log_file(), "/statusz");
        let address = eventually("the status page", address).await;
        self.probers.insert(pod.to_owned(), agent);
        let address = address.expect("it serves");
        let (_, port) = address.rsplit_once(':').expect("a port");
        self.apply(&POD.replace("POD", pod).replace("PORT", port));
    }

    /// Applies an object, given as YAML.
    pub fn apply(&self, yaml: &str) {
        self.seed.store().apply(object(yaml)).expect("an object");
    }

    /// Address of a replica's status page.
    pub fn address(&self, pod: &str) -> String {
        let address = page::address(self.probers[pod].log_file(), "/statusz");
        address.expect("it serves")
    }

    /// A page of a replica.
    pub async fn page(&self, pod: &str, path: &str) -> String {
        let page = page::page(self.probers[pod].log_file(), path).await;
        page.expect("it serves").1
    }

    /// Series of the first replica that are not 0, one a line.
    pub async fn metrics(&self) -> String {
        let text = self.page("prober-a", "/metrics").await;
        let counts =
            |line: &&str| !line.starts_with('#') && !line.trim_end_matches(".0").ends_with(" 0");
        text.lines().filter(counts).collect::<Vec<_>>().join("\n")
    }

    /// Grants the operator the rights of these parts of the manual, and no others.
    pub fn may(&self, parts: &[&str]) {
        let manual = file("docs/cli.md");
        let list = manual.split("### Permissions\n\n```yaml\n").nth(1);
        let list = list.expect("a list").split("```").next();
        let mut rules = String::new();
        for part in list.unwrap_or_default().split("# ") {
            if parts.iter().any(|begin| part.starts_with(begin)) {
                rules += part.split_once('\n').expect("rules").1;
            }
        }
        let operator = User::limited("operator", Rule::of_role(&object(&rules), None));
        self.seed.access().grant("operator", operator);
        let kubeconfig = self.seed.kubeconfig_at(&self.seed_url, "operator");
        self.write("operator", &kubeconfig);
    }

    /// Path of a file of this world.
    fn path(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    /// Writes a file; returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }

    /// Runs the binary with these words as the operator.
    pub async fn run(&self, words: &str) -> Output {
        let mut command = Command::new(BINARY);
        command.env_clear().stdin(Stdio::null());
        command.args(words.split_whitespace());
        command.args(["--kubeconfig", &self.path("operator")]);
        command.output().await.expect("the binary runs")
    }

    /// What is written to stdout by a command that succeeds.
    pub async fn text(&self, words: &str) -> String {
        let output = self.run(words).await;
        assert!(output.status.success(), "{words:?}: {output:?}");
        stdout(&output)
    }

    /// What is written to stderr by a command that fails.
    pub async fn refused(&self, words: &str) -> String {
        let output = self.run(words).await;
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        stderr(&output)
    }

    pub async fn json(&self, words: &str) -> Value {
        let text = self.text(&format!("{words} -o json")).await;
        serde_json::from_str(&text).expect("JSON")
    }

    /// Changes an object by a merge patch, given as YAML.
    pub fn patch(&self, resource: &str, namespace: &str, name: &str, patch: &str) {
        let store = self.seed.store();
        let patched = store.patch(resource, namespace, name, &object(patch));
        patched.expect("it exists");
    }

    /// Leaves all of a shoot as an outage does, from 2, 3 and 4 replicas.
    pub fn hold_down(&self, namespace: &str) {
        for (name, memory) in ORDER.into_iter().zip(["2", "3", "4"]) {
            let held = HELD.replace("MEMORY", memory);
            self.patch(DEPLOYMENTS, namespace, name, &held);
        }
    }

    /// The three Deployments: replicas, and what they are held down from.
    pub fn replicas(&self, namespace: &str) -> String {
        let states = ORDER.map(|name| {
            let object = self.seed.store().get(DEPLOYMENTS, namespace, name);
            let object = object.expect("a Deployment");
            let annotations = &object["metadata"]["annotations"];
            let from = annotations[REPLICAS].as_str().unwrap_or_default();
            let mark = match annotations[PROTECTED].is_string() {
                true => " from ",
                false => "",
            };
            format!("{}{mark}{from}", object["spec"]["replicas"])
        });
        states.join(", ")
    }

    /// Requests of the operator.
    pub fn asked(&self) -> Vec<Record> {
        let all = self.seed.requests().all().into_iter();
        all.filter(|record| record.user == "operator").collect()
    }

    /// What the operator has written in a shoot, in order.
    pub fn written(&self, namespace: &str) -> Vec<String> {
        let written = self.asked().into_iter();
        let written = written.filter(|one| one.is_write() && one.namespace == namespace);
        written.map(|record| record.name).collect()
    }
}

fn held(text: &str, parts: &[impl AsRef<str>]) -> Result<()> {
    for part in parts.iter().map(AsRef::as_ref) {
        ensure!(text.contains(part), "no {part:?} in {text}");
    }
    Ok(())
}

/// Fails unless a text holds all of these.
pub fn holds(text: &str, parts: &[impl AsRef<str>]) {
    held(text, parts).expect("all is said");
}

/// Waits until a text holds all of these.
pub async fn until_holds(parts: &[impl AsRef<str>], text: impl AsyncFn() -> String) {
    let shown = eventually("all is shown", async || held(&text().await, parts));
    shown.await.expect("all is shown");
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

/// Text of a file of this project.
pub fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).expect("a text")
}
