//! A real Prometheus on loopback.

use std::net::TcpListener;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::objects::{Manifests, get, items};
use testbed::process::Process;
use tokio::process::Command;

/// The rules as Prometheus reads them; the operator takes them out of their object in the same way.
///
/// # Errors
/// When there is no PrometheusRule.
pub fn rules(objects: &Manifests) -> Result<&Value> {
    Ok(&get(objects, "PrometheusRule garden/dependency-watchdog")?["spec"])
}

/// Every alert among them.
///
/// # Errors
/// When there is no PrometheusRule.
pub fn alerts(objects: &Manifests) -> Result<Vec<&Value>> {
    let groups = items(&rules(objects)?["groups"]);
    let alerts: Vec<&Value> = groups.flat_map(|group| items(&group["rules"])).collect();
    ensure!(!alerts.is_empty(), "no alerts");
    Ok(alerts)
}

/// A running Prometheus. Dropping it kills it.
pub struct Prometheus {
    process: Process,
    server: String,
}

impl Prometheus {
    /// Starts one that scrapes these targets, by job, every second, and evaluates these rules as
    /// often.
    ///
    /// # Errors
    /// When it is not installed or cannot be started.
    pub fn start(folder: &Path, targets: &[(&str, String)], rules: &Value) -> Result<Self> {
        // A ServiceMonitor gives each target these labels, which win over those of the series.
        let job = |(job, address): &(&str, String)| {
            format!(
                "- {{job_name: {job}, static_configs: [{{targets: ['{address}'], labels: {{namespace: garden,
                    service: {job}, pod: a, container: dependency-watchdog, endpoint: metrics}}}}]}}\n"
            )
        };
        let jobs: String = targets.iter().map(job).collect();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yaml]\nscrape_configs:\n{jobs}"
        );
        std::fs::write(folder.join("prometheus.yaml"), config)?;
        // JSON is YAML.
        std::fs::write(folder.join("rules.yaml"), rules.to_string())?;
        // A port that is free now; were it taken in a moment, Prometheus would end and say so.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let args = [
            format!("--config.file={}", folder.join("prometheus.yaml").display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let log = folder.join("prometheus.log");
        let process = Process::start("prometheus", "prometheus".as_ref(), &args, &log)?;
        let server = format!("http://{address}");
        Ok(Self { process, server })
    }

    /// Asks a query now; returns the series of a vector.
    ///
    /// # Errors
    /// When it is wrong, or Prometheus does not answer (yet).
    pub async fn query(&self, query: &str) -> Result<Vec<Value>> {
        let mut promtool = Command::new("promtool");
        promtool.args(["query", "instant", "--format=json", &self.server, query]);
        let output = promtool.output().await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{query}: {errors}{}",
            self.process.tail(5)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
