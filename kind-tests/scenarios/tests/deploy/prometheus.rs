//! A real Prometheus on loopback.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::Url;
use serde_json::{Value, json};
use testbed::objects::{Manifests, get, items};
use testbed::page;
use testbed::process::Process;

use crate::tools::system;

/// On loopback it answers at once; more than a minute means that it hangs.
const ANSWER: Duration = Duration::from_secs(60);

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
    address: String,
}

impl Prometheus {
    /// Starts one that scrapes these targets, by job, every second, and evaluates these rules as
    /// often.
    ///
    /// # Errors
    /// When it is not installed or cannot be started.
    pub fn start(folder: &Path, targets: &[(&str, Vec<String>)], rules: &Value) -> Result<Self> {
        // A ServiceMonitor gives each target these labels, which win over those of the series.
        let labels = |job| json!({"namespace": "garden", "service": job, "pod": "a", "container": "dependency-watchdog", "endpoint": "metrics"});
        let jobs: Vec<Value> = targets
            .iter()
            .map(|(job, addresses)| json!({"job_name": job, "static_configs": [{"targets": addresses, "labels": labels(job)}]}))
            .collect();
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yaml"], "scrape_configs": jobs,
        });
        // JSON is YAML.
        std::fs::write(folder.join("prometheus.yaml"), config.to_string())?;
        std::fs::write(folder.join("rules.yaml"), rules.to_string())?;
        // A port that is free now; were it taken in a moment, Prometheus would end and say so.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let args = [
            format!("--config.file={}", folder.join("prometheus.yaml").display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let process = Process::start(
            "prometheus",
            &system("prometheus", "prometheus")?,
            &args,
            &folder.join("prometheus.log"),
        )?;
        Ok(Self { process, address })
    }

    /// Asks a query now; returns the series of a vector.
    ///
    /// # Errors
    /// When it is wrong, or Prometheus does not answer (yet).
    pub async fn query(&self, query: &str) -> Result<Vec<Value>> {
        let url = Url::parse_with_params(
            &format!("http://{}/api/v1/query", self.address),
            [("query", query)],
        )?;
        let asked = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let (_, body) = page::get(&self.address, &asked, ANSWER)
            .await
            .with_context(|| self.process.tail(5))?;
        let answer: Value = serde_json::from_str(&body)?;
        ensure!(answer["status"] == "success", "{query}: {answer}");
        answer["data"]["result"]
            .as_array()
            .cloned()
            .with_context(|| format!("{query}: {answer}"))
    }

    /// The names of the alerts that are firing.
    ///
    /// # Errors
    /// When Prometheus does not answer (yet).
    pub async fn firing(&self) -> Result<Vec<String>> {
        let series = self.query("ALERTS{alertstate=\"firing\"}").await?;
        Ok(series
            .iter()
            .filter_map(|alert| alert["metric"]["alertname"].as_str().map(Into::into))
            .collect())
    }
}
