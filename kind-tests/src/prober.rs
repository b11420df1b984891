//! The real binary, as a process, with the arguments that Gardener gives it.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::manifests::SECRET;
use crate::page::SERVED;
use crate::process::{Process, lines, tail};
use crate::seed::Seed;

static SERIAL: AtomicUsize = AtomicUsize::new(0);

/// The prober's configuration file. The default is Gardener's with shorter times, for shoots with a short grace.
#[derive(Clone, Debug)]
pub struct ProberConfig {
    /// probeInterval.
    pub interval: &'static str,
    /// initialDelay.
    pub initial_delay: &'static str,
    /// probeTimeout.
    pub timeout: &'static str,
    /// How long machine-controller-manager waits in a scale-up.
    pub machine_delay: &'static str,
    /// dependentResourceInfos; empty: Gardener's three.
    pub dependents: Vec<Value>,
    /// Arguments after Gardener's.
    pub args: Vec<String>,
    /// A file to take instead of all of the above but the arguments.
    pub file: Option<PathBuf>,
}

impl Default for ProberConfig {
    fn default() -> Self {
        Self {
            interval: "1s",
            initial_delay: "2s",
            timeout: "4s",
            machine_delay: "2s",
            dependents: Vec::new(),
            args: Vec::new(),
            file: None,
        }
    }
}

impl ProberConfig {
    /// Gardener's own configuration, as the file in config/ has it (rule 87).
    pub fn gardener() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prober.yaml");
        Self { file: Some(file), ..Self::default() }
    }

    /// The file's content.
    ///
    /// # Errors
    /// When it is to be read from a file that cannot be read.
    pub fn text(&self) -> Result<String> {
        if let Some(file) = &self.file {
            return std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        }
        let dependents = match self.dependents.as_slice() {
            [] => gardener_dependents(self.machine_delay),
            some => some.to_vec(),
        };
        // JSON is YAML.
        let config = json!({
            "kubeConfigSecretName": SECRET,
            "probeInterval": self.interval,
            "initialDelay": self.initial_delay,
            "probeTimeout": self.timeout,
            "dependentResourceInfos": dependents,
        });
        Ok(config.to_string())
    }
}

/// One entry of dependentResourceInfos with its levels.
pub fn dependent(api_version: &str, kind: &str, name: &str, up: i64, down: i64) -> Value {
    json!({
        "ref": {"apiVersion": api_version, "kind": kind, "name": name},
        "optional": false, "scaleUp": {"level": up}, "scaleDown": {"level": down},
    })
}

fn gardener_dependents(machine_delay: &str) -> Vec<Value> {
    let mut dependents = vec![
        dependent("apps/v1", "Deployment", "kube-controller-manager", 0, 1),
        dependent("apps/v1", "Deployment", "machine-controller-manager", 1, 0),
        dependent("apps/v1", "Deployment", "cluster-autoscaler", 2, 0),
    ];
    dependents[1]["scaleUp"]["initialDelay"] = machine_delay.into();
    dependents[2]["optional"] = true.into();
    dependents
}

/// The binary under test: DEPENDENCY_WATCHDOG_BIN, or the one that cargo has built beside this program, or beside the folder
/// with this test.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("DEPENDENCY_WATCHDOG_BIN") {
        return Ok(path.into());
    }
    let this = std::env::current_exe()?;
    let mut places = this.ancestors().skip(1).take(2).map(|folder| folder.join("dependency-watchdog"));
    let found = places.find(|path| path.is_file());
    found.with_context(|| {
        format!("no dependency-watchdog near {}: build it, or name it in DEPENDENCY_WATCHDOG_BIN", this.display())
    })
}

/// A running prober. Dropping it kills it.
pub struct Prober {
    process: Process,
    log: PathBuf,
}

impl Prober {
    /// Starts a prober on a seed.
    pub async fn start(seed: &Seed, config: ProberConfig) -> Result<Self> {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let file = |what: &str| seed.folder().join(format!("{what}-{serial}"));
        let (config_file, kubeconfig, log) = (file("dep-config.yaml"), file("kubeconfig"), file("log"));
        std::fs::write(&config_file, config.text()?)?;
        std::fs::write(&kubeconfig, seed.prober_kubeconfig().await?)?;
        let mut args = vec![
            "prober".into(),
            format!("--config-file={}", config_file.display()),
            "--kube-api-qps=20.0".into(),
            "--kube-api-burst=100".into(),
            "--zap-log-level=INFO".into(),
            "--enable-leader-election=true".into(),
            // Gardener's arguments end here. Several probers share this machine, so none takes a fixed port.
            format!("--kubeconfig={}", kubeconfig.display()),
            "--pprof-bind-addr=0".into(),
        ];
        args.extend(SERVED.map(Into::into));
        args.extend(config.args);
        let process = Process::start("prober", &binary()?, &args, &log)?;
        seed.set_log(log.clone());
        Ok(Self { process, log })
    }

    /// Kills it, as the kernel does when memory is short.
    pub async fn kill(mut self) -> Result<()> {
        self.process.signal(Signal::SIGKILL)?;
        self.process.end(Duration::from_secs(5)).await?;
        Ok(())
    }

    /// Asks it to end, as a kubelet does; Gardener grants 5 s.
    pub async fn terminate(mut self) -> Result<ExitStatus> {
        self.process.signal(Signal::SIGTERM)?;
        self.process.end(Duration::from_secs(5)).await
    }

    /// Holds it up, or lets it go on.
    pub fn pause(&self, paused: bool) -> Result<()> {
        self.process.signal(if paused { Signal::SIGSTOP } else { Signal::SIGCONT })
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        self.process.id()
    }

    /// Its exit status, or none while it runs.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.process.ended()
    }

    /// Its log lines that are JSON and speak of `needle`.
    pub fn log(&self, needle: &str) -> Vec<Value> {
        lines(&self.log, needle)
    }

    /// The file that it writes its log to.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    pub fn tail(&self, lines: usize) -> String {
        tail(&self.log, lines, "")
    }
}
