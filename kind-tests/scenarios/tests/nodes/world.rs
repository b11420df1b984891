//! The seed with one machine, and a shoot with three.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use anyhow::Result;
use futures::future::try_join_all;
use testbed::control_plane::{ControlPlane, ForNodes};
use testbed::gardener::{self, CLUSTERS, MACHINES};
use testbed::process::{Process, words};
use testbed::{KubeApi, Testbed, go_programs, reaper};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::try_join;

use crate::commands::said;
use crate::images;
use crate::machine::{self, CONTROL_PLANES, NodeMachine};
use crate::shoot::NodeShoot;

/// All of it.
pub struct NodeWorld {
    /// The seed.
    pub seed: ControlPlane,
    /// Its machine.
    pub seed_machine: NodeMachine,
    /// A kubeconfig file for its administrator.
    pub kubeconfig: PathBuf,
    /// The shoot that the watchdog protects.
    pub shoot: NodeShoot,
    kubectl: PathBuf,
    _processes: [Process; 3],
}

static WORLD: OnceCell<NodeWorld> = OnceCell::const_new();

impl NodeWorld {
    /// The world that all tests share.
    pub async fn get(bed: &Testbed) -> Result<&'static Self> {
        WORLD.get_or_try_init(async || Self::start(bed).await).await
    }

    async fn start(bed: &Testbed) -> Result<Self> {
        machine::bridge().await?;
        // The API servers' ports are those that the NetworkPolicies let the agents reach.
        let plane = async |role: &str, port: u16, services: u8, nodes: &[&str]| {
            let nodes = ForNodes {
                address: SocketAddrV4::new(CONTROL_PLANES, port),
                services: Ipv4Addr::new(10, services, 0, 0),
                nodes: nodes.iter().map(ToString::to_string).collect(),
            };
            bed.start_for_nodes(role, &nodes).await
        };
        let programs = go_programs::built("nodes")?;
        let controllers = bed.programs().await?;
        let product = images::product()?;
        let (seed, shoot, tool, controller_manager) = try_join!(
            plane("seed", 6443, 96, &["seed"]),
            plane("shoot", 8443, 97, &["w1", "w2", "w3"]),
            images::tool(),
            images::controller_manager(&controllers),
        )?;

        let folder = reaper::folder("seed")?;
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, seed.admin_kubeconfig())?;
        let authority = folder.join("authority.pem");
        std::fs::write(&authority, seed.authority())?;
        let controller = |name: &str, programs: &Path, more: &str| {
            let kubeconfig = kubeconfig.display();
            let args =
                format!("--kubeconfig={kubeconfig} --leader-elect=false --secure-port=0 {more}");
            let log = folder.join(format!("{name}.log"));
            Process::start(name, &programs.join(name), &words(&args), &log)
        };
        let root = format!("--root-ca-file={}", authority.display());

        let machine = async |name: &str, number: u8, plane: &ControlPlane, images: &[&PathBuf]| {
            NodeMachine::start(name, number, plane, images, &programs).await
        };
        let images = [&tool, &controller_manager, &product];
        let workers = [("w1", 11), ("w2", 12), ("w3", 13)];
        let workers = workers.map(async |(name, number)| {
            let images = [&tool];
            machine(name, number, &shoot, &images).await
        });
        let (seed_machine, workers) =
            try_join!(machine("seed", 10, &seed, &images), try_join_all(workers))?;
        prepare(seed.api()).await?;
        let processes = [
            controller("kube-controller-manager", &controllers, &root)?,
            controller("kube-scheduler", &programs, "")?,
            proxy(&programs, &folder, &seed_machine)?,
        ];
        Ok(Self {
            shoot: NodeShoot::create(seed.api(), "shoot--node--kept", shoot, workers).await?,
            seed,
            seed_machine,
            kubeconfig,
            kubectl: go_programs::built("deployment-tools")?.join("kubectl"),
            _processes: processes,
        })
    }

    /// What `kubectl` prints, at the seed, on standard output and on standard error; none of its words
    /// has a space.
    ///
    /// # Errors
    /// When it fails: with what it said.
    pub async fn kubectl(&self, words: &str) -> Result<(String, String)> {
        let mut kubectl = Command::new(&self.kubectl);
        kubectl.arg("--kubeconfig").arg(&self.kubeconfig);
        said(kubectl.args(words.split(' '))).await
    }
}

/// What the agents' installation needs in a seed.
async fn prepare(seed: &KubeApi) -> Result<()> {
    seed.create_all(&gardener::definitions()).await?;
    seed.create_yaml(
        "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: gardener-system-800}
value: 999998800
---
apiVersion: v1
kind: Namespace
metadata:
  name: garden
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
    pod-security.kubernetes.io/audit: restricted
",
    )
    .await?;
    seed.appears(CLUSTERS).await?;
    seed.appears(&format!("{MACHINES}/machines")).await
}

/// kube-proxy, in the machine's network.
fn proxy(programs: &Path, folder: &Path, machine: &NodeMachine) -> Result<Process> {
    let file = folder.join("kube-proxy.yaml");
    let config = format!(
        "
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.77.10.0/24
hostnameOverride: seed
clientConnection: {{kubeconfig: {}}}
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
",
        folder.join("kubeconfig").display()
    );
    std::fs::write(&file, config)?;
    let program = programs.join("kube-proxy").display().to_string();
    let mut args: Vec<String> = machine.enter().map(Into::into).into();
    args.extend([program, format!("--config={}", file.display())]);
    let log = folder.join("kube-proxy.log");
    Process::start("kube-proxy", Path::new("nsenter"), &args, &log)
}
