//! Probers on a seed, and their configuration.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use serde_json::{Value, json};

use crate::agent::{AgentKind, AgentStart, RunningAgent};
use crate::seed::SeedCluster;

static SERIAL: AtomicUsize = AtomicUsize::new(0);

/// The prober's configuration file. The default is Gardener's with shorter times, for shoots with a
/// short grace.
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
    /// Whether all but the arguments is Gardener's.
    pub unchanged: bool,
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
            unchanged: false,
        }
    }
}

impl ProberConfig {
    /// Gardener's own configuration.
    pub fn gardener() -> Self {
        Self {
            unchanged: true,
            ..Self::default()
        }
    }

    /// The file's content: Gardener's with these times and dependents.
    pub fn text(&self) -> String {
        let mut text = AgentKind::Prober.config().to_owned();
        if self.unchanged {
            return text;
        }
        for (key, time) in [
            ("initialDelay: ", self.machine_delay),
            ("probeInterval: ", self.interval),
        ] {
            text = text.replace(&format!("{key}30s"), &format!("{key}{time}"));
        }
        if !self.dependents.is_empty()
            && let Some(rest) = text.find("kubeConfigSecretName")
        {
            // JSON is YAML.
            let dependents = json!(self.dependents);
            text = format!("dependentResourceInfos: {dependents}\n{}", &text[rest..]);
        }
        let (delay, timeout) = (self.initial_delay, self.timeout);
        format!("{text}initialDelay: {delay}\nprobeTimeout: {timeout}\n")
    }
}

/// One entry of dependentResourceInfos with its levels.
pub fn dependent(api_version: &str, kind: &str, name: &str, up: i64, down: i64) -> Value {
    json!({
        "ref": {"apiVersion": api_version, "kind": kind, "name": name},
        "optional": false, "scaleUp": {"level": up}, "scaleDown": {"level": down},
    })
}

/// Starts a prober on a seed.
pub async fn start_prober(seed: &SeedCluster, config: ProberConfig) -> Result<RunningAgent> {
    let name = format!("prober-{}", SERIAL.fetch_add(1, Ordering::Relaxed));
    let kubeconfig = seed.prober_kubeconfig().await?;
    let (kind, text) = (AgentKind::Prober, config.text());
    let start = AgentStart::new(kind, seed.folder(), &name, &kubeconfig, &text)?;
    seed.set_log(start.log.clone());
    start.with(config.args).run()
}
