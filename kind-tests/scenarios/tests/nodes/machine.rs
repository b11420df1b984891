//! A machine: name spaces of its own, in which containerd and a kubelet run, and a cable.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use testbed::control_plane::{ControlPlane, kubelet_token};
use testbed::process::{Process, words};
use testbed::{eventually, reaper};
use tokio::process::Command;

use crate::commands::{said, shell};
use crate::images::TOOL;

/// The control planes' address on the bridge between all machines.
pub const CONTROL_PLANES: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// A running machine.
pub struct NodeMachine {
    name: String,
    _process: Process,
    pid: String,
}

/// Makes the bridge. Service addresses are routed on every machine; the kernel wants a route before
/// it looks at a packet.
pub async fn bridge() -> Result<()> {
    shell(
        "ip link add machines type bridge
         ip address add 10.77.0.1/24 dev machines
         ip link set machines up
         ip route add default dev machines",
    )
    .await
    .map(drop)
}

impl NodeMachine {
    /// Starts one with these images, archives, whose kubelet registers with this control plane. Its
    /// node is registered, not yet ready. `number` is the last one of its address, and the third of
    /// its pods'.
    pub async fn start(
        name: &str,
        number: u8,
        plane: &ControlPlane,
        images: &[&PathBuf],
        programs: &Path,
    ) -> Result<Self> {
        let folder = reaper::folder(name)?;
        let write = |file: &str, text: &str| std::fs::write(folder.join(file), text);
        std::fs::create_dir(folder.join("cni"))?;
        let place = folder.display();
        let fill = |text: &str| {
            let text = text.replace("FOLDER", &place.to_string());
            let text = text.replace("TOOL", TOOL).replace("NAME", name);
            text.replace("NUMBER", &number.to_string())
        };
        let fill_in = |file, text| write(file, &fill(text));
        fill_in("cni/pods.conflist", NETWORK)?;
        fill_in("containerd.toml", CONTAINERD)?;
        fill_in("kubelet.yaml", KUBELET)?;
        let kubelet = programs.join("kubelet");
        let args = format!("{}\n{}", kubelet.display(), fill(KUBELET_ARGS));
        write("kubelet.args", &args)?;
        let kubeconfig = plane.kubeconfig(&kubelet_token(name));
        write("kubeconfig", &kubeconfig)?;
        let lines = images.iter().map(|image| format!("{}\n", image.display()));
        write("images", &lines.collect::<String>())?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nodes/machine");
        let isolated = format!(
            "--net --mount --uts --ipc --pid --fork --kill-child --propagation=private -- {} {place} {name}",
            script.display()
        );
        let (unshare, log) = (Path::new("unshare"), folder.join("log"));
        let mut process = Process::start(name, unshare, &words(&isolated), &log)?;
        eventually("the machine is ready for its cable", async || {
            let (runs, said) = (process.is_running(), process.tail(5));
            ensure!(runs && folder.join("ready").exists(), "{name}: {said}");
            Ok(())
        })
        .await?;
        let children = format!("/proc/{0}/task/{0}/children", process.id());
        let pid = std::fs::read_to_string(children)?.trim().to_owned();
        shell(&fill(WIRE).replace("PID", &pid)).await?;
        write("plugged", "")?;
        Ok(Self {
            name: name.into(),
            _process: process,
            pid,
        })
    }

    /// Its name, and its node's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes its network away, or gives it back: the cable is pulled at the bridge's end.
    pub async fn plug(&self, plugged: bool) -> Result<()> {
        let state = if plugged { "up" } else { "down" };
        let plug = format!("ip link set {} {state}", self.name);
        shell(&plug).await.map(drop)
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

/// Plugs a machine in.
const WIRE: &str = "
ip link add NAME type veth peer name cable netns PID
ip link set NAME master machines up
nsenter --target PID --net -- ip address add 10.77.0.NUMBER/24 dev cable
nsenter --target PID --net -- ip link set cable up
nsenter --target PID --net -- ip route add default via 10.77.0.1
ip route add 10.77.NUMBER.0/24 via 10.77.0.NUMBER
";

const KUBELET_ARGS: &str = "--config=FOLDER/kubelet.yaml
--kubeconfig=FOLDER/kubeconfig
--hostname-override=NAME
--node-ip=10.77.0.NUMBER
--node-labels=worker.gardener.cloud/pool=worker
";

const CONTAINERD: &str = r#"version = 2
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "TOOL"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "FOLDER/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"#;

const NETWORK: &str = r#"{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "/run/pods",
    "ranges": [[{"subnet": "10.77.NUMBER.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}"#;

/// As Gardener's operating system configuration has it, where it matters here: a Lease of 40 s,
/// renewed every 10 s.
const KUBELET: &str = r#"
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: 10.77.0.NUMBER
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /dwd-nodes/NAME
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard: {imagefs.available: 0%, nodefs.available: 0%, memory.available: 0%}
podLogsDir: FOLDER/pods
resolvConf: ""
maxPods: 60
volumePluginDir: FOLDER/plugins
"#;
