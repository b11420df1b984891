//! A machine: name spaces of its own, in which containerd and a kubelet run, and a cable.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use testbed::kube_api::kubeconfig;
use testbed::process::{Process, Program};
use testbed::{eventually, reaper};
use tokio::process::Command;

use crate::commands::{run, said};

/// The bridge between all machines, and the control planes' address on it.
pub const CONTROL_PLANES: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const BRIDGE: &str = "machines";

/// What a machine is.
pub struct Spec<'a> {
    /// Its name, and its node's.
    pub name: &'a str,
    /// The last number of its address, and the third of its pods'.
    pub number: u8,
    /// The API server that its kubelet registers with.
    pub server: &'a str,
    /// That server's authority, as PEM.
    pub authority: &'a str,
    /// Archives of the images that it has.
    pub images: Vec<PathBuf>,
}

/// A running machine.
pub struct NodeMachine {
    name: String,
    _process: Process,
    pid: String,
}

/// Makes the bridge.
pub async fn bridge() -> Result<()> {
    for command in [
        format!("link add {BRIDGE} type bridge"),
        format!("address add {CONTROL_PLANES}/24 dev {BRIDGE}"),
        format!("link set {BRIDGE} up"),
        // Service addresses are routed on every machine; the kernel wants a route before it looks
        // at a packet.
        format!("route add default dev {BRIDGE}"),
    ] {
        ip(&command).await?;
    }
    Ok(())
}

async fn ip(command: &str) -> Result<()> {
    run(&format!("ip {command}")).await.map(drop)
}

impl NodeMachine {
    /// Starts one. Its node is registered, not yet ready.
    pub async fn start(spec: Spec<'_>, programs: &Path) -> Result<Self> {
        let Spec {
            name,
            number,
            server,
            authority,
            images,
        } = spec;
        let folder = reaper::folder(name)?;
        let write = |file: &str, text: &str| {
            std::fs::write(folder.join(file), text).with_context(|| file.to_owned())
        };
        std::fs::create_dir(folder.join("cni"))?;
        write("cni/pods.conflist", &network(number))?;
        write("containerd.toml", &containerd(&folder))?;
        write("kubelet.yaml", &kubelet(&folder, name, number))?;
        write(
            "kubeconfig",
            &kubeconfig(
                server,
                authority,
                &testbed::control_plane::kubelet_token(name),
            ),
        )?;
        let lines = images.iter().map(|image| format!("{}\n", image.display()));
        write("images", &lines.collect::<String>())?;
        let file = |file: &str| folder.join(file).display().to_string();
        let args = [
            programs.join("kubelet").display().to_string(),
            format!("--config={}", file("kubelet.yaml")),
            format!("--kubeconfig={}", file("kubeconfig")),
            format!("--hostname-override={name}"),
            format!("--node-ip=10.77.0.{number}"),
            "--node-labels=worker.gardener.cloud/pool=worker".into(),
        ];
        write("kubelet.args", &(args.join("\n") + "\n"))?;

        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nodes/machine");
        let isolated =
            "--net --mount --uts --ipc --pid --fork --kill-child --propagation=private --";
        let mut words: Vec<String> = isolated.split(' ').map(Into::into).collect();
        words.extend([
            script.display().to_string(),
            folder.display().to_string(),
            name.into(),
        ]);
        let program = Program {
            name: name.into(),
            path: "unshare".into(),
            args: words,
            environment: Vec::new(),
            log: folder.join("log"),
        };
        let mut process = program.start()?;
        let is_ready = eventually("the machine is ready for its cable", async || {
            let ended = process.ended()?;
            anyhow::ensure!(
                ended.is_some() || folder.join("ready").exists(),
                "not ready"
            );
            Ok(ended.is_none())
        });
        anyhow::ensure!(is_ready.await?, "{name} has ended: {}", process.tail(5));
        let children = format!("/proc/{0}/task/{0}/children", process.id());
        let pid = std::fs::read_to_string(children)?.trim().to_owned();
        let machine = Self {
            name: name.into(),
            _process: process,
            pid,
        };
        machine.wire(number).await?;
        write("plugged", "")?;
        Ok(machine)
    }

    async fn wire(&self, number: u8) -> Result<()> {
        let (name, pid, address) = (&self.name, &self.pid, format!("10.77.0.{number}"));
        ip(&format!(
            "link add {name} type veth peer name cable netns {pid}"
        ))
        .await?;
        ip(&format!("link set {name} master {BRIDGE} up")).await?;
        for command in [
            format!("ip address add {address}/24 dev cable"),
            "ip link set cable up".into(),
            format!("ip route add default via {CONTROL_PLANES}"),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            self.run(&words).await?;
        }
        ip(&format!("route add 10.77.{number}.0/24 via {address}")).await
    }

    /// Its name, and its node's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes its network away, or gives it back: the cable is pulled at the bridge's end.
    pub async fn plug(&self, plugged: bool) -> Result<()> {
        let state = if plugged { "up" } else { "down" };
        ip(&format!("link set {} {state}", self.name)).await
    }

    /// What a command prints that runs in this machine.
    pub async fn run(&self, command: &[&str]) -> Result<String> {
        let mut enter = Command::new("nsenter");
        Ok(said(enter.args(self.enter()).args(command)).await?.0)
    }

    /// The arguments of `nsenter` before a command in this machine.
    pub fn enter(&self) -> [&str; 8] {
        [
            "--target", &self.pid, "--net", "--mount", "--uts", "--ipc", "--pid", "--",
        ]
    }
}

fn containerd(folder: &Path) -> String {
    format!(
        r#"version = 2
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{tool}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"#,
        tool = crate::images::TOOL,
        folder = folder.display(),
    )
}

fn network(number: u8) -> String {
    serde_json::json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [{
        "type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
        "ipam": {"type": "host-local", "dataDir": "/run/pods",
            "ranges": [[{"subnet": format!("10.77.{number}.0/24")}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }]})
    .to_string()
}

/// As Gardener's operating system configuration has it, where it matters here: a Lease of 40 s,
/// renewed every 10 s.
fn kubelet(folder: &Path, name: &str, number: u8) -> String {
    serde_json::json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "address": format!("10.77.0.{number}"),
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs", "cgroupRoot": format!("/dwd-nodes/{name}"), "failCgroupV1": false,
        "failSwapOn": false, "imageGCHighThresholdPercent": 100,
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "memory.available": "0%"},
        "podLogsDir": folder.join("pods"), "resolvConf": "", "maxPods": 60,
        "volumePluginDir": folder.join("plugins"),
    })
    .to_string()
}
