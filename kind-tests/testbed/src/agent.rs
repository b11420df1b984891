//! The watchdog's agents: the real binary as a process, with the arguments and the configuration
//! that Gardener gives it (rules 86 and 87).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::page::SERVED;
use crate::process::{Process, Program};
use crate::reaper;

/// One of the two agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// The prober.
    Prober,
    /// The weeder.
    Weeder,
}

impl AgentKind {
    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prober => "prober",
            Self::Weeder => "weeder",
        }
    }

    /// Gardener's own configuration.
    pub fn config(self) -> &'static str {
        match self {
            Self::Prober => include_str!("../../../config/prober.yaml"),
            Self::Weeder => include_str!("../../../config/weeder.yaml"),
        }
    }

    /// Gardener's arguments but for the config file.
    pub fn args(self) -> &'static [&'static str] {
        match self {
            Self::Prober => &[
                "--kube-api-qps=20.0",
                "--kube-api-burst=100",
                "--zap-log-level=INFO",
                "--enable-leader-election=true",
            ],
            Self::Weeder => &["--enable-leader-election=true"],
        }
    }
}

/// The binary under test: DEPENDENCY_WATCHDOG_BIN, or the one that cargo has built beside this
/// program, or beside the folder with this test.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("DEPENDENCY_WATCHDOG_BIN") {
        return Ok(path.into());
    }
    let this = std::env::current_exe()?;
    let places = this.ancestors().skip(1).take(2);
    let mut places = places.map(|folder| folder.join("dependency-watchdog"));
    let found = places.find(|path| path.is_file());
    found.context("no dependency-watchdog: build it, or name it in DEPENDENCY_WATCHDOG_BIN")
}

/// How an agent is started, once or again and again.
#[derive(Clone, Debug)]
pub struct AgentStart {
    /// Which one.
    pub kind: AgentKind,
    /// The program; none: [`binary`].
    pub binary: Option<PathBuf>,
    /// Its config file.
    pub config: PathBuf,
    /// Its way to the seed.
    pub kubeconfig: PathBuf,
    /// Where its log goes.
    pub log: PathBuf,
    /// Arguments after Gardener's; what is given twice counts as given last.
    pub args: Vec<String>,
    /// Environment variables that only this process has.
    pub environment: Vec<(String, String)>,
}

impl AgentStart {
    /// Writes the files of an agent into a folder, each under its name.
    pub fn new(
        kind: AgentKind,
        folder: &Path,
        name: &str,
        kubeconfig: &str,
        config: &str,
    ) -> Result<Self> {
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        let start = Self {
            kind,
            binary: None,
            config: file("yaml"),
            kubeconfig: file("kubeconfig"),
            log: file("log"),
            args: Vec::new(),
            environment: Vec::new(),
        };
        std::fs::write(&start.config, config)?;
        std::fs::write(&start.kubeconfig, kubeconfig)?;
        Ok(start)
    }

    /// With more arguments.
    pub fn with(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// All that is on its command line behind the program.
    pub fn arguments(&self) -> Vec<String> {
        let mut args = vec![
            self.kind.name().to_owned(),
            format!("--config-file={}", self.config.display()),
        ];
        args.extend(self.kind.args().iter().copied().map(str::to_owned));
        // Gardener's arguments end here.
        args.push(format!("--kubeconfig={}", self.kubeconfig.display()));
        args.extend(SERVED.map(str::to_owned));
        args.extend(self.args.iter().cloned());
        args
    }

    /// Starts it.
    pub fn run(&self) -> Result<RunningAgent> {
        Program {
            name: self.kind.name().to_owned(),
            path: self.binary.clone().map_or_else(binary, Ok)?,
            args: self.arguments(),
            environment: self.environment.clone(),
            log: self.log.clone(),
        }
        .start()
    }
}

/// A running agent. Dropping it kills it.
pub type RunningAgent = Process;

impl RunningAgent {
    /// Starts an agent with files of its own and this config, Gardener's if none is given.
    pub fn alone(
        kind: AgentKind,
        kubeconfig: &str,
        config: Option<&str>,
        args: &[String],
    ) -> Result<Self> {
        let (folder, config) = (
            reaper::folder(kind.name())?,
            config.unwrap_or(kind.config()),
        );
        let start = AgentStart::new(kind, &folder, kind.name(), kubeconfig, config)?;
        start.with(args).run()
    }
}
