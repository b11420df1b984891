//! A seed on which the agents are installed, and an operator's shell there, with the real kubectl
//! and helm.
//!
//! ```text
//! page --> command --> sh --> kubectl, helm, dependency-watchdog --> API server --> kubelet: a stand-in that has the agents' logs
//!                                                                        '--------> agents: processes, each with its pod
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use api_server::{Authority, Fault, MemoryApi, Options, When};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testbed::agent::{AgentKind, RunningAgent, binary};
use testbed::objects::{Manifests, get};
use testbed::page::{address, outside};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{SeedCluster, ShootCluster, ShootPlan, Testbed, eventually, gardener, reaper};
use tokio::process::Command;

use crate::book::{blocks, commands, searches};
use crate::cluster::{furnish, pod};
use crate::repository;
use crate::tools::{CHART, chart, good, helm, tool};

/// The node of all pods.
const NODE: &str = "pages";
/// What the kubelet says where it would have to join streams.
const NO_STREAMS: &str = "no streams in this bed";
/// Commands that are not run here: page, words, and what they are about or need.
const ELSEWHERE: [(&str, &str, &str); 7] = [
    ("README", "make ", "recipes, which CI runs"),
    ("docs/cli", "kubectl krew ", "a release"),
    ("docs/releases", "", "a release"),
    (
        "docs/swap-image",
        "kubectl apply ",
        "objects that another test admits",
    ),
    ("docs/try-locally", "", "Gardener's local setup"),
    ("Panicked", "", "a defect"),
    ("OpenFiles", "", "a limit that is not everywhere"),
];

/// The installation, a shoot beside it, and the operator's shell.
pub struct Site {
    pub seed: Arc<SeedCluster>,
    pub shoot: ShootCluster,
    /// What helm said.
    pub notes: String,
    objects: Manifests,
    kubelet: MemoryApi,
    /// Paths of the kubelet, each with the log that it has there.
    logs: Mutex<BTreeMap<String, PathBuf>>,
    folder: PathBuf,
    /// Blocks that were not run yet, by page.
    left: Mutex<BTreeMap<String, Vec<String>>>,
    /// What stands for something else, and that.
    words: Vec<(&'static str, String)>,
}

impl Site {
    /// Installs the chart, with short times, beside a shoot.
    pub async fn install(bed: &'static Testbed) -> Result<Self> {
        let seed = bed.own_seed().await?;
        furnish(seed.api()).await?;
        let plan = ShootPlan {
            nodes: 5,
            deployments: vec![(KCM, 2), (MCM, 1), (CA, 1), ("kube-apiserver", 1)],
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "pages", plan).await?;
        let kubelet = MemoryApi::start(&Authority::new()?, Options::default()).await?;
        let port = kubelet.address().port();
        seed.api().create(&json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"bed": NODE}},
            "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}},
        })).await?;

        let folder = reaper::folder("operator")?;
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).map(|()| path.display().to_string())
        };
        for (name, program) in [
            ("kubectl", tool("kubectl")),
            ("helm", tool("helm")),
            ("dependency-watchdog", binary()?),
            ("kubectl-dependency_watchdog", binary()?),
        ] {
            std::os::unix::fs::symlink(program, folder.join(name))?;
        }
        let config = AgentKind::Prober.config().replace("30s", "1s");
        let former = config
            .replacen("optional: false", "optional: true", 2)
            .replace("cluster-autoscaler", "former");
        let words = vec![
            ("NAMESPACE", shoot.namespace.clone()),
            ("shoot--project--name", shoot.namespace.clone()),
            ("POD", format!("{}-0", gardener::PROBER)),
            ("SHOOT", file("shoot", shoot.plane.admin_kubeconfig())?),
            ("FORMER-CONFIG", file("former.yaml", &former)?),
            (" FILE", " dep-config.yaml".to_owned()),
            ("MACHINEDEPLOYMENT", "workers".to_owned()),
            (" NAME ", format!(" {} ", gardener::MCM)),
            ("=N", "=1".to_owned()),
        ];
        file("dep-config.yaml", &config)?;
        let config: Value =
            serde_saphyr::from_str(&format!("{config}initialDelay: 2s\nprobeTimeout: 4s\n"))?;
        let values = json!({"monitoring": {"enabled": true}, "prober": {"config": config}});
        let (values_file, kubeconfig) = (
            file("values.yaml", &values.to_string())?,
            file("kubeconfig", seed.plane().admin_kubeconfig())?,
        );
        let path = repository::path(CHART);
        let notes = good(helm(&[
            "upgrade",
            "--install",
            "dependency-watchdog",
            &path.to_string_lossy(),
            "--namespace=garden",
            "--take-ownership",
            "--values",
            &values_file,
            "--kubeconfig",
            &kubeconfig,
        ])?)?;
        let mut left = blocks()?;
        for (page, word, _) in ELSEWHERE {
            left.get_mut(page)
                .with_context(|| page.to_owned())?
                .retain(|block| !block.contains(word));
        }
        Ok(Self {
            objects: chart(&values)?,
            seed,
            shoot,
            notes,
            kubelet,
            folder,
            words,
            logs: Mutex::default(),
            left: Mutex::new(left),
        })
    }

    /// Starts a replica of an agent, in the pod of this number.
    pub async fn start(&self, deployment: &str, number: usize) -> Result<RunningAgent> {
        let serves = ["--health-bind-addr=0.0.0.0:0"];
        let agent = RunningAgent::installed(
            &self.seed,
            &self.objects,
            deployment,
            str::to_owned,
            &serves,
        )
        .await?;
        let served =
            eventually("it serves", async || address(agent.log_file(), "/statusz")).await?;
        let (_, port) = served.rsplit_once(':').context("no port")?;
        let mut pod = pod(get(
            &self.objects,
            &format!("Deployment garden/{deployment}"),
        )?);
        let name = format!("{deployment}-{number}");
        pod["metadata"]["name"] = name.as_str().into();
        pod["spec"]["nodeName"] = NODE.into();
        pod["spec"]["containers"][0]["args"] = json!([format!("--health-bind-addr=:{port}")]);
        let path = format!("/api/v1/namespaces/garden/pods/{name}");
        let api = self.seed.api();
        api.delete(&path).await?;
        api.create(&pod).await?;
        let ip = outside().context("this machine has no address outside of loopback")?;
        let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}});
        api.merge(&format!("{path}/status"), &status).await?;
        let path = format!("/containerLogs/garden/{name}/dependency-watchdog");
        self.logs.lock().insert(path, agent.log_file().to_owned());
        Ok(agent)
    }

    /// Pauses the shoot as an annotation says, or ends that.
    pub async fn pause(&self, pause: Option<&str>) -> Result<()> {
        let shoot = &self.shoot.namespace;
        self.seed.annotate(shoot, gardener::PAUSE, pause).await
    }

    /// Leaves a Deployment of the shoot as an outage does, from one replica.
    pub async fn hold_down(&self, name: &str) -> Result<()> {
        let marks = json!({gardener::REPLICAS: "1", gardener::PROTECTED: ""});
        let patch = json!({"metadata": {"annotations": marks}, "spec": {"replicas": 0}});
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{name}",
            self.shoot.namespace
        );
        self.seed.api().merge(&path, &patch).await
    }

    /// Runs the next blocks of a page in the state for which it is written: every command soon ends
    /// well and prints something. What they print.
    pub async fn runs(&self, page: &str, blocks: usize) -> Result<String> {
        let blocks: Vec<String> = {
            let mut left = self.left.lock();
            let left = left.get_mut(page).with_context(|| page.to_owned())?;
            ensure!(left.len() >= blocks, "{page} has no more than {left:?}");
            left.drain(..blocks).collect()
        };
        let mut printed = String::new();
        for command in blocks.iter().flat_map(|block| commands(block)) {
            for command in searches(&command) {
                let run = async || self.run(&command).await;
                printed += &eventually(&format!("{page}: {command}"), run).await?;
            }
        }
        Ok(printed)
    }

    /// Runs a command once.
    pub async fn run(&self, command: &str) -> Result<String> {
        let faults = self.kubelet.faults();
        faults.clear();
        let answer = |code, body: Vec<u8>| Fault::Answer {
            code,
            headers: Vec::new(),
            body: body.into(),
        };
        for (path, log) in &*self.logs.lock() {
            faults.add(When::request("GET", path), answer(200, std::fs::read(log)?));
        }
        faults.add(When::any(), answer(501, NO_STREAMS.into()));
        let command = self
            .words
            .iter()
            .fold(command.to_owned(), |command, (word, is)| {
                command.replace(word, is)
            });
        let path = std::env::var("PATH")?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &command])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        shell
            .env("PATH", format!("{}:{path}", self.folder.display()))
            .env("HOME", &self.folder)
            .env("KUBECONFIG", self.folder.join("kubeconfig"));
        let output = shell.output().await?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, errors) = (said(&output.stdout), said(&output.stderr));
        let is_stream = command.contains(" exec ") || command.contains(" port-forward ");
        let is_well = match is_stream {
            true => errors.contains(NO_STREAMS),
            // Where the answer of `auth can-i` is no, its exit code is not 0.
            false => {
                (output.status.success() || printed.ends_with("no\n"))
                    && !errors.contains("Warning")
            }
        };
        let is_empty = printed.trim().is_empty() || printed.contains("\nitems: []");
        ensure!(
            is_well && (is_stream || !is_empty),
            "{}: {printed}{errors}",
            output.status
        );
        Ok(printed)
    }

    /// Every command of every page was run.
    pub fn all_were_run(&self) -> Result<()> {
        let mut left = self.left.lock();
        left.retain(|_, blocks| !blocks.is_empty());
        ensure!(left.is_empty(), "{left:#?}");
        Ok(())
    }
}
