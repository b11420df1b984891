//! A seed on which the agents are installed, and an operator's shell there, with the real kubectl
//! and helm.
//!
//! ```text
//! page --> command --> sh --> kubectl, helm, dependency-watchdog --> API server --> kubelet: a stand-in that has the agents' logs
//!                                                    '--------------------> agents: processes, each with its pod
//! ```

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use api_server::{Authority, Fault, MemoryApi, Options, When};
use serde_json::{Value, json};
use testbed::agent::{RunningAgent, binary};
use testbed::objects::{Manifests, get};
use testbed::page::address;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{SeedCluster, ShootCluster, ShootPlan, Testbed, eventually, gardener, reaper};
use tokio::process::Command;

use crate::book::{blocks, commands, patterns};
use crate::cluster::{furnish, pod};
use crate::tools::{PATH, chart, quick};

/// What the kubelet says where it would have to join streams.
const NO_STREAMS: &str = "no streams in this bed";
/// The commands, which so ask a prober without a port-forward: at the address in a file.
const COMMANDS: &str = r#"#!/bin/sh
case $1 in
status | explain | restore) exec BINARY "$@" --address "$(cat FOLDER/prober)" ;;
*) exec BINARY "$@" ;;
esac
"#;

/// The installation, a shoot beside it, and the operator's shell.
pub struct Site {
    pub seed: Arc<SeedCluster>,
    pub shoot: ShootCluster,
    /// Replicas of the agents, by their pods.
    pub agents: BTreeMap<String, RunningAgent>,
    objects: Manifests,
    kubelet: MemoryApi,
    /// Where the shell is. It has the config of each replica in a folder of its pod's name.
    folder: PathBuf,
    /// Blocks that were not run yet, by page.
    pub left: BTreeMap<String, Vec<String>>,
    /// What stands for something else, and that.
    words: Vec<(&'static str, String)>,
}

impl Site {
    /// Makes ready to install the chart, with short times, beside a shoot.
    pub async fn new(bed: &'static Testbed) -> Result<Self> {
        let seed = bed.own_seed().await?;
        furnish(seed.api()).await?;
        let plan = ShootPlan {
            nodes: 5,
            deployments: vec![(KCM, 2), (MCM, 1), (CA, 1), ("kube-apiserver", 1)],
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "pages", plan).await?;
        let kubelet = MemoryApi::start(&Authority::new()?, Options::default()).await?;
        let folder = reaper::folder("operator")?;
        let commands = COMMANDS.replace("BINARY", &binary()?.display().to_string());
        let commands = commands.replace("FOLDER", &folder.display().to_string());
        for name in ["dependency-watchdog", "kubectl-dependency_watchdog"] {
            let file = folder.join(name);
            std::fs::write(&file, &commands)?;
            std::fs::set_permissions(file, Permissions::from_mode(0o755))?;
        }
        let config = quick();
        let former = config.replacen("optional: false", "optional: true", 2);
        let former = former.replace("cluster-autoscaler", "former");
        let all: Value = serde_saphyr::from_str(&config)?;
        let values = format!("{{monitoring: {{enabled: true}}, prober: {{config: {all}}}}}");
        // Pages call some of them by these names.
        for (name, text) in [
            ("FILE", &*config),
            ("FORMER-CONFIG", &former),
            ("values.yaml", &values),
            ("SHOOT", shoot.plane.admin_kubeconfig()),
            ("kubeconfig", seed.plane().admin_kubeconfig()),
        ] {
            std::fs::write(folder.join(name), text)?;
        }
        std::os::unix::fs::symlink("FILE", folder.join("dep-config.yaml"))?;
        let words = vec![
            ("NAMESPACE", shoot.namespace.clone()),
            ("shoot--project--name", shoot.namespace.clone()),
            ("POD", format!("{}-0", gardener::PROBER)),
            ("KUBELET", kubelet.address().port().to_string()),
            (" NAME ", format!(" {MCM} ")),
            ("=N", "=1".to_owned()),
        ];
        Ok(Self {
            objects: chart(&values)?,
            agents: BTreeMap::new(),
            left: blocks()?,
            seed,
            shoot,
            kubelet,
            folder,
            words,
        })
    }

    /// Starts a replica of an agent, in the pod of this number.
    pub async fn start(&mut self, deployment: &str, number: &str) -> Result<()> {
        let (seed, objects) = (&self.seed, &self.objects);
        let agent = RunningAgent::installed(seed, objects, deployment);
        let agent = agent.await?;
        let served = async || address(agent.log_file(), "/statusz");
        let served = eventually("it serves", served).await?;
        if deployment == gardener::PROBER {
            std::fs::write(self.folder.join("prober"), &served)?;
        }
        let mut pod = pod(get(objects, &format!("Deployment garden/{deployment}"))?);
        let name = format!("{deployment}-{number}");
        pod["metadata"]["name"] = name.as_str().into();
        pod["spec"]["nodeName"] = "pages".into();
        let path = format!("/api/v1/namespaces/garden/pods/{name}");
        let api = self.seed.api();
        api.delete(&path).await?;
        api.create(&pod).await?;
        let status = json!({"status": {"phase": "Running"}});
        api.merge(&format!("{path}/status"), &status).await?;
        let config = agent.log_file().parent().context("no folder")?;
        std::fs::remove_file(self.folder.join(&name)).ok();
        std::os::unix::fs::symlink(config, self.folder.join(&name))?;
        self.agents.insert(name, agent);
        Ok(())
    }

    /// Runs the next blocks of a page in the state for which it is written: every command soon ends
    /// well and prints something. What they print.
    pub async fn page(&mut self, page: &str, blocks: usize) -> Result<String> {
        let left = self.left.get_mut(page).context("no such page")?;
        ensure!(left.len() >= blocks, "there is no more than {left:?}");
        let blocks: Vec<_> = left.drain(..blocks).collect();
        let mut printed = String::new();
        for command in blocks.iter().flat_map(|block| commands(block)) {
            printed += &eventually(&command, async || self.run(&command).await).await?;
        }
        Ok(printed)
    }

    /// A text in the words of this site.
    pub fn worded(&self, text: &str) -> String {
        let words = self.words.iter();
        words.fold(text.to_owned(), |text, (word, is)| text.replace(word, is))
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
        for (pod, agent) in &self.agents {
            let path = format!("/containerLogs/garden/{pod}/dependency-watchdog");
            let log = std::fs::read(agent.log_file())?;
            faults.add(When::request("GET", &path), answer(200, log));
        }
        faults.add(When::any(), answer(501, NO_STREAMS.into()));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &self.worded(command)])
            .current_dir(&self.folder);
        shell.stdin(Stdio::null()).kill_on_drop(true);
        shell.env("PATH", format!("{}:{}", self.folder.display(), *PATH));
        shell
            .env("HOME", &self.folder)
            .env("KUBECONFIG", "kubeconfig");
        let output = shell.output().await?;
        let [printed, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let is_stream = command.contains(" exec ") || command.contains(" port-forward ");
        let is_well = match is_stream {
            true => errors.contains(NO_STREAMS),
            // Where the answer of `auth can-i` is no, its exit code is not 0.
            false => {
                let ended = output.status.success() || printed.ends_with("no\n");
                let is_empty = printed.trim().is_empty() || printed.contains("\nitems: []");
                ended && !is_empty && !errors.contains("Warning")
            }
        };
        ensure!(is_well, "{}: {printed}{errors}", output.status);
        for pattern in patterns(command) {
            let is_found = printed.to_lowercase().contains(&pattern.to_lowercase());
            ensure!(is_found, "no {pattern} in {printed}");
        }
        Ok(printed)
    }
}
