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
        let gardeners = AgentKind::Prober.config();
        if self.unchanged {
            return gardeners.to_owned();
        }
        let Self {
            interval,
            initial_delay,
            timeout,
            machine_delay,
            dependents,
            ..
        } = self;
        let text = gardeners.replace(
            "initialDelay: 30s",
            &format!("initialDelay: {machine_delay}"),
        );
        let text = text.replace("probeInterval: 30s", &format!("probeInterval: {interval}"));
        let text = match (dependents.as_slice(), text.find("kubeConfigSecretName")) {
            // JSON is YAML.
            ([_, ..], Some(rest)) => format!(
                "dependentResourceInfos: {}\n{}",
                json!(dependents),
                &text[rest..]
            ),
            _ => text,
        };
        format!("{text}initialDelay: {initial_delay}\nprobeTimeout: {timeout}\n")
    }
}

/// One entry of dependentResourceInfos with its levels.
pub fn dependent(api_version: &str, kind: &str, name: &str, up: i64, down: i64) -> Value {
    json!({
        "ref": {"apiVersion": api_version, "kind": kind, "name": name},
        "optional": false, "scaleUp": {"level": up}, "scaleDown": {"level": down},
    })
}

/// A running prober. Dropping it kills it.
pub type Prober = RunningAgent;

impl Prober {
    /// Starts a prober on a seed.
    pub async fn start(seed: &SeedCluster, config: ProberConfig) -> Result<Self> {
        let name = format!("prober-{}", SERIAL.fetch_add(1, Ordering::Relaxed));
        let kubeconfig = seed.prober_kubeconfig().await?;
        let start = AgentStart::new(
            AgentKind::Prober,
            seed.folder(),
            &name,
            &kubeconfig,
            &config.text(),
        )?
        .with(config.args);
        seed.set_log(start.log.clone());
        start.run()
    }
}
