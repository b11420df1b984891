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
use testbed::page::{self, ScrapedMetrics};
use testbed::{ProberConfig, eventually};
use tokio::process::Command;

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
    probers: Vec<(String, RunningAgent)>,
    _kubelets: Kubelets,
    pub files: TempDir,
    /// The prober's config file.
    pub config: String,
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
            probers: Vec::new(),
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
        let probed = async || {
            let status = self.page("prober-a", "/statusz.json").await;
            let status: Value = serde_json::from_str(&status).expect("JSON");
            let shoots = status["shoots"].as_array().expect("shoots");
            let is_up = |shoot: &Value| shoot["probe"]["found"]["verdict"] == "scale_up";
            shoots.len() == self.shoots.len() && shoots.iter().all(is_up)
        };
        until("every verdict", probed).await;
    }

    /// Starts a replica of the prober in a pod of this name, and waits until it serves.
    pub async fn join(&mut self, pod: &str) {
        let kubeconfig = self.seed.kubeconfig_at(&self.seed_url, "prober");
        let folder = self.files.path();
        let start = AgentStart::new(AgentKind::Prober, folder, pod, &kubeconfig, &self.config);
        let mut start = start.expect("its files");
        start.binary = Some(env!("CARGO_BIN_EXE_dependency-watchdog").into());
        start.environment = vec![("HOSTNAME".to_owned(), pod.to_owned())];
        let agent = start.run().expect("it starts");
        let serves = async || page::address(agent.log_file(), "/statusz").is_ok();
        until("the status page", serves).await;
        self.probers.push((pod.to_owned(), agent));
        let address = self.address(pod);
        let (_, port) = address.rsplit_once(':').expect("a port");
        self.apply(&POD.replace("POD", pod).replace("PORT", port));
    }

    /// Applies an object, given as YAML.
    pub fn apply(&self, object: &str) {
        let object = serde_saphyr::from_str(object).expect("YAML");
        self.seed.store().apply(object).expect("an object");
    }

    fn log(&self, pod: &str) -> &Path {
        let mut probers = self.probers.iter();
        let (_, agent) = probers.find(|(name, _)| name == pod).expect("it runs");
        agent.log_file()
    }

    /// Address of a replica's status page.
    pub fn address(&self, pod: &str) -> String {
        page::address(self.log(pod), "/statusz").expect("it serves")
    }

    /// A page of a replica.
    pub async fn page(&self, pod: &str, path: &str) -> String {
        let page = page::page(self.log(pod), path).await;
        page.expect("it serves").1
    }

    /// Metrics of the first replica.
    pub async fn metrics(&self) -> ScrapedMetrics {
        let metrics = page::metrics(self.log("prober-a")).await;
        metrics.expect("metrics")
    }

    /// Grants the operator the rights of these parts of the manual, and no others.
    pub fn may(&self, parts: &[&str]) {
        let manual = file("docs/cli.md");
        let (_, list) = manual
            .split_once("### Permissions\n\n```yaml\n")
            .expect("a list");
        let list = list.split("```").next().unwrap_or_default().split("# ");
        let list = list.filter(|part| parts.iter().any(|begin| part.starts_with(begin)));
        let rules: String = list
            .filter_map(|part| Some(part.split_once('\n')?.1))
            .collect();
        let rules: Value = serde_saphyr::from_str(&rules).expect("YAML");
        let operator = User::limited("operator", Rule::of_role(&rules, None));
        self.seed.access().grant("operator", operator);
        let kubeconfig = self.seed.kubeconfig_at(&self.seed_url, "operator");
        self.write("operator", &kubeconfig);
    }

    /// Writes a file; returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let file = self.files.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file.to_str().expect("UTF-8").to_owned()
    }

    /// Runs the binary with these words as the operator.
    pub async fn run(&self, words: &str) -> Output {
        let kubeconfig = self.files.path().join("operator");
        run(&format!("{words} --kubeconfig {}", kubeconfig.display())).await
    }

    /// What is written to stdout.
    pub async fn text(&self, words: &str) -> String {
        text(&self.run(words).await)
    }

    /// What is written to stderr by a command that fails.
    pub async fn refused(&self, words: &str) -> String {
        let output = self.run(words).await;
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        stderr(&output)
    }

    pub async fn json(&self, words: &str) -> Value {
        let output = self.run(&format!("{words} -o json")).await;
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Changes an object by a merge patch, given as YAML.
    pub fn patch(&self, resource: &str, namespace: &str, name: &str, patch: &str) {
        let patch = serde_saphyr::from_str(patch).expect("YAML");
        let patched = self.seed.store().patch(resource, namespace, name, &patch);
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
            match annotations[PROTECTED].is_string() {
                true => format!("{} from {from}", object["spec"]["replicas"]),
                false => format!("{}{from}", object["spec"]["replicas"]),
            }
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
        let of = |record: &Record| record.namespace == namespace || record.name == namespace;
        let written = self.asked().into_iter();
        let written = written.filter(|record| record.is_write() && of(record));
        written.map(|record| record.name).collect()
    }
}

/// Waits until it is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let reached = eventually(what, async || {
        ensure!(is_so().await, "not yet");
        Ok(())
    });
    reached.await.expect(what);
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

/// Runs the binary with these words.
pub async fn run(words: &str) -> Output {
    run_in(&[], words).await
}

pub async fn run_in(environment: &[(&str, &str)], words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dependency-watchdog"));
    command.env_clear().envs(environment.iter().copied());
    let output = command
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .output();
    output.await.expect("the binary runs")
}

/// What a command that succeeds writes to stdout.
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    stdout(output)
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

/// Text of a file of this project.
pub fn file(path: &str) -> String {
    std::fs::read_to_string(project(path)).expect("a text")
}
