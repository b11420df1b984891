//! The seed with one machine, a shoot with three, and one with two that the watchdog does not know.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::json;
use testbed::control_plane::{ControlPlane, ForNodes};
use testbed::gardener::{self, CLUSTERS, GARDEN, MACHINES};
use testbed::process::Process;
use testbed::{KubeApi, Testbed, eventually, go_programs, reaper};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::try_join;

use crate::commands::said;
use crate::images;
use crate::machine::{self, CONTROL_PLANES, NodeMachine, Spec};
use crate::shoot::NodeShoot;

/// The API servers' ports: those that the NetworkPolicies let the agents reach.
const PORTS: [u16; 3] = [6443, 8443, 9443];

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
    /// The same without its protection.
    pub unprotected: NodeShoot,
    kubectl: PathBuf,
    /// A machine beside the unprotected shoot's, which nothing is done to but to restart its
    /// kubelet.
    pub spare: NodeMachine,
    _processes: Vec<Process>,
}

static WORLD: OnceCell<NodeWorld> = OnceCell::const_new();

impl NodeWorld {
    /// The world that all tests share.
    pub async fn get(bed: &'static Testbed) -> Result<&'static Self> {
        WORLD.get_or_try_init(async || Self::start(bed).await).await
    }

    async fn start(bed: &'static Testbed) -> Result<Self> {
        machine::bridge().await?;
        let nodes = |port: usize, services: u8, nodes: &[&str]| ForNodes {
            address: SocketAddrV4::new(CONTROL_PLANES, PORTS[port]),
            services: Ipv4Addr::new(10, services, 0, 0),
            nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
        };
        let planes = [
            nodes(0, 96, &["seed"]),
            nodes(1, 97, &["w1", "w2", "w3"]),
            nodes(2, 98, &["u1", "u2", "spare"]),
        ];
        let programs = go_programs::built("nodes")?;
        let controllers = bed.programs().await?;
        let [product, _] = images::product()?;
        let (seed, shoot, unprotected, tool, controller_manager) = try_join!(
            bed.start_for_nodes("seed", &planes[0]),
            bed.start_for_nodes("shoot", &planes[1]),
            bed.start_for_nodes("unprotected", &planes[2]),
            images::tool(),
            images::controller_manager(&controllers),
        )?;

        let folder = reaper::folder("seed")?;
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, seed.admin_kubeconfig())?;
        std::fs::write(folder.join("authority.pem"), seed.authority())?;
        let flag = |name: &str, file: &str| format!("--{name}={}", folder.join(file).display());
        let mut processes = vec![
            Process::start(
                "kube-controller-manager",
                &controllers.join("kube-controller-manager"),
                &[
                    flag("kubeconfig", "kubeconfig"),
                    flag("root-ca-file", "authority.pem"),
                    "--leader-elect=false".into(),
                    "--secure-port=0".into(),
                ],
                &folder.join("kube-controller-manager.log"),
            )?,
            Process::start(
                "kube-scheduler",
                &programs.join("kube-scheduler"),
                &[
                    flag("kubeconfig", "kubeconfig"),
                    "--leader-elect=false".into(),
                    "--secure-port=0".into(),
                ],
                &folder.join("kube-scheduler.log"),
            )?,
        ];

        let machine =
            |name: &'static str, number: u8, plane: &ControlPlane, images: &[&PathBuf]| {
                let (server, authority) = (plane.url(), plane.authority().to_owned());
                let images = images.iter().map(|path| (*path).clone()).collect();
                let programs = programs.clone();
                async move {
                    let spec = Spec {
                        name,
                        number,
                        server: &server,
                        authority: &authority,
                        images,
                    };
                    NodeMachine::start(spec, &programs).await
                }
            };
        let (seed_machine, workers, others, spare) = try_join!(
            machine("seed", 10, &seed, &[&tool, &controller_manager, &product]),
            try_join_all(
                [("w1", 11), ("w2", 12), ("w3", 13)].map(|(name, number)| machine(
                    name,
                    number,
                    &shoot,
                    &[&tool]
                ))
            ),
            try_join_all([("u1", 14), ("u2", 15)].map(|(name, number)| machine(
                name,
                number,
                &unprotected,
                &[&tool]
            ))),
            machine("spare", 16, &unprotected, &[&tool]),
        )?;
        prepare(seed.api()).await?;
        processes.push(proxy(&programs, &folder, &seed_machine)?);
        Ok(Self {
            shoot: NodeShoot::create(seed.api(), "shoot--node--kept", shoot, workers).await?,
            unprotected: NodeShoot::create(seed.api(), "shoot--node--lost", unprotected, others)
                .await?,
            seed,
            seed_machine,
            kubeconfig,
            kubectl: go_programs::built("deployment-tools")?.join("kubectl"),
            spare,
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
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gardener-system-800"}, "value": 999_998_800});
    seed.create(&class).await?;
    let mut garden = gardener::namespace(GARDEN);
    for mode in ["enforce", "warn", "audit"] {
        garden["metadata"]["labels"][format!("pod-security.kubernetes.io/{mode}")] =
            "restricted".into();
    }
    seed.create(&garden).await?;
    for collection in [CLUSTERS, &format!("{MACHINES}/machines")] {
        eventually("the seed serves Gardener's resources", async || {
            seed.get(collection).await
        })
        .await?;
    }
    Ok(())
}

/// kube-proxy, in the machine's network.
fn proxy(programs: &Path, folder: &Path, machine: &NodeMachine) -> Result<Process> {
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": "nftables", "clusterCIDR": "10.77.10.0/24", "hostnameOverride": "seed",
        "clientConnection": {"kubeconfig": folder.join("kubeconfig")},
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    });
    let file = folder.join("kube-proxy.yaml");
    std::fs::write(&file, config.to_string())?;
    let mut args: Vec<String> = machine.enter().map(Into::into).into();
    args.extend([
        programs.join("kube-proxy").display().to_string(),
        format!("--config={}", file.display()),
    ]);
    Process::start(
        "kube-proxy",
        Path::new("nsenter"),
        &args,
        &folder.join("kube-proxy.log"),
    )
}
