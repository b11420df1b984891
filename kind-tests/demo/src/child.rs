//! The real binary: two replicas of the prober, as processes with Gardener's own arguments.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::world::{REPLICAS, World};

/// Gardener's configuration of the prober (rule 87), but for three durations that are shortened to fit into two minutes.
const CONFIG: &str = "\
kubeConfigSecretName: shoot-access-dependency-watchdog-probe
probeInterval: 10s
initialDelay: 5s
dependentResourceInfos:
- ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}
  optional: false
  scaleUp: {level: 0}
  scaleDown: {level: 1}
- ref: {kind: Deployment, name: machine-controller-manager, apiVersion: apps/v1}
  optional: false
  scaleUp: {level: 1, initialDelay: 10s}
  scaleDown: {level: 0}
- ref: {kind: Deployment, name: cluster-autoscaler, apiVersion: apps/v1}
  optional: true
  scaleUp: {level: 2}
  scaleDown: {level: 0}
";

/// What of it is shortened, for the audience.
pub const SHORTENED: &str =
    "probeInterval 10s (30s in Gardener), initialDelay 5s (30s), machine-controller-manager's delay 10s (30s)";

/// Kubernetes grants a pod of Gardener's Deployment so long between SIGTERM and SIGKILL (rule 85).
const GRACE: Duration = Duration::from_secs(5);
/// How much of the log's end is worth showing.
const TAIL_BYTES: u64 = 64 * 1024;
const TAIL_LINES: usize = 25;

/// The replicas of the prober.
pub struct Probers(Vec<Prober>);

impl Probers {
    /// Starts all at once; whoever creates the Lease first leads. Configuration, kubeconfigs and logs are files in `folder`.
    pub fn start(binary: &Path, folder: &Path, world: &World) -> Result<Self> {
        let start = |name| Prober::start(binary, folder, name, &world.seed.kubeconfig(name));
        Ok(Self(REPLICAS.into_iter().map(start).collect::<Result<_>>()?))
    }

    /// Kills one as the kernel does when memory is short: it gets no chance to give up the Lease.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        let prober = self.0.iter_mut().find(|prober| prober.name == name).with_context(|| format!("there is no {name}"))?;
        prober.child.start_kill().with_context(|| format!("cannot kill {name}"))?;
        prober.killed = true;
        Ok(())
    }

    /// One that has ended, which it should not by itself.
    pub fn ended(&mut self) -> Result<Option<(&'static str, ExitStatus)>> {
        for prober in self.0.iter_mut().filter(|prober| !prober.killed) {
            if let Some(status) = prober.child.try_wait()? {
                return Ok(Some((prober.name, status)));
            }
        }
        Ok(None)
    }

    /// Ends all that still run. Returns each one's name and how it ended: `None` if it had to be killed for this.
    pub async fn end(&mut self) -> Result<Vec<(&'static str, Option<ExitStatus>)>> {
        let mut endings = Vec::new();
        for prober in &mut self.0 {
            endings.push((prober.name, prober.end().await?));
        }
        Ok(endings)
    }

    /// The last lines of each log, under its path.
    pub fn tails(&self) -> Vec<(String, Vec<String>)> {
        self.0.iter().map(|prober| (prober.log.display().to_string(), prober.tail())).collect()
    }
}

/// One running prober.
struct Prober {
    name: &'static str,
    child: Child,
    log: PathBuf,
    killed: bool,
}

impl Prober {
    fn start(binary: &Path, folder: &Path, name: &'static str, kubeconfig: &str) -> Result<Self> {
        let file = |end: &str| folder.join(format!("{name}{end}"));
        let (config_file, kubeconfig_file, log) = (file(".yaml"), file(".kubeconfig"), file(".log"));
        std::fs::write(&config_file, CONFIG)?;
        std::fs::write(&kubeconfig_file, kubeconfig)?;
        let mut command = Command::new(binary);
        command
            .arg("prober")
            .arg(format!("--config-file={}", config_file.display()))
            .arg(format!("--kubeconfig={}", kubeconfig_file.display()))
            .args(["--kube-api-qps=20.0", "--kube-api-burst=100", "--zap-log-level=INFO", "--enable-leader-election=true"])
            // In a pod, the pod's name: by it the replica is called in the Lease.
            .env("HOSTNAME", name)
            // Only loopback and free ports here, where another prober may be running.
            .args(["--metrics-bind-addr=127.0.0.1:0", "--health-bind-addr=127.0.0.1:0", "--pprof-bind-addr=0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            // Ctrl-C is for the demo, which ends its child in an orderly way.
            .process_group(0)
            .kill_on_drop(true);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        let child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        Ok(Self { name, child, log, killed: false })
    }

    /// Ends it as Kubernetes does, if it has not ended. `None` if it had to be killed.
    async fn end(&mut self) -> Result<Option<ExitStatus>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        if let Some(id) = self.child.id() {
            // It may have ended by itself just now.
            kill(Pid::from_raw(i32::try_from(id)?), Signal::SIGTERM).ok();
        }
        match tokio::time::timeout(GRACE, self.child.wait()).await {
            Ok(status) => Ok(Some(status?)),
            Err(_) => {
                self.child.kill().await?;
                Ok(None)
            }
        }
    }

    /// The last lines of its log.
    fn tail(&self) -> Vec<String> {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.log)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].iter().map(|line| (*line).to_owned()).collect()
    }
}
