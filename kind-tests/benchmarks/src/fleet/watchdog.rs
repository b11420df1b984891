//! The program that is measured: the binary as a process, with the arguments and the configuration that Gardener gives it (rules
//! 86 and 87).

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};
use kind_tests::page::SERVED;
use kind_tests::process::Process;
use kind_tests::{leash, prober};
use nix::sys::signal::Signal;

use super::usage::Usage;

/// What Gardener grants it to end.
const GRACE: Duration = Duration::from_secs(5);

/// One of the two agents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Agent {
    /// The prober.
    Prober,
    /// The weeder.
    Weeder,
}

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Self::Prober => "prober",
            Self::Weeder => "weeder",
        }
    }

    /// Gardener's arguments but for the config file.
    fn args(self) -> &'static [&'static str] {
        match self {
            Self::Prober => {
                &["--kube-api-qps=20.0", "--kube-api-burst=100", "--zap-log-level=INFO", "--enable-leader-election=true"]
            }
            Self::Weeder => &["--enable-leader-election=true"],
        }
    }

    /// Gardener's configuration, as the file in config/ has it.
    fn config(self) -> Result<String> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../config/{}.yaml", self.name()));
        std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }
}

/// A running agent. Dropping it kills it.
pub struct Watchdog {
    process: Process,
    log: PathBuf,
}

impl Watchdog {
    /// Starts an agent with this kubeconfig. `config` stands in for Gardener's own where it is given, `more` are further
    /// arguments.
    pub fn start(agent: Agent, kubeconfig: &str, config: Option<&str>, more: &[String]) -> Result<Self> {
        let folder = leash::folder(agent.name())?;
        let file = |name: &str, text: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        };
        let config = match config {
            Some(config) => config.to_owned(),
            None => agent.config()?,
        };
        let (config, kubeconfig) = (file("dep-config.yaml", &config)?, file("kubeconfig", kubeconfig)?);
        let mut args = vec![agent.name().to_owned(), format!("--config-file={}", config.display())];
        args.extend(agent.args().iter().copied().map(str::to_owned));
        // Gardener's arguments end here: no fixed port is taken on this machine.
        args.push(format!("--kubeconfig={}", kubeconfig.display()));
        args.push("--pprof-bind-addr=0".into());
        args.extend(SERVED.map(str::to_owned));
        args.extend(more.iter().cloned());
        let log = folder.join("log");
        let process = Process::start(agent.name(), &prober::binary()?, &args, &log)?;
        Ok(Self { process, log })
    }

    /// What it has used so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.process.id())
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Kills it, as the kernel does when memory is short. One that has ended already is fine.
    pub async fn kill(mut self) -> Result<()> {
        if self.process.ended()?.is_none() {
            self.process.signal(Signal::SIGKILL)?;
        }
        self.process.end(GRACE).await.map(drop)
    }

    /// Asks it to end, as a kubelet does.
    pub async fn terminate(mut self) -> Result<ExitStatus> {
        self.process.signal(Signal::SIGTERM)?;
        self.process.end(GRACE).await
    }
}
