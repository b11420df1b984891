//! What a process uses: tasks, connections, file descriptors, threads, memory.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::page::{ScrapedMetrics, get};
use testbed::usage::status;

use super::replica::AgentReplica;
use crate::oracle::leaks::{ProcessKey, Used};

/// The pages are made from memory, at once.
const ANSWER: Duration = Duration::from_secs(10);

/// A process at one moment.
#[derive(Clone, Debug)]
pub struct Vitals {
    pub process: ProcessKey,
    /// Tasks of shoots that have panicked.
    pub panics: u64,
    pub used: Used,
}

impl Vitals {
    /// Reads them.
    ///
    /// # Errors
    /// When the process does not run or does not answer.
    pub async fn read(replica: &AgentReplica) -> Result<Self> {
        let id = replica.id().context("it does not run")?;
        let (code, text) = get(&replica.metrics_address()?, "/metrics", ANSWER).await?;
        ensure!(code == 200, "/metrics: {code}");
        let values = ScrapedMetrics::read(&text)?.values;
        let value = |series: &str| values.get(series).map_or(0, |value| *value as u64);
        let files = std::fs::read_dir(format!("/proc/{id}/fd"))?
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let files: Vec<_> = files.collect();
        let sockets = files
            .iter()
            .filter(|target| target.to_string_lossy().starts_with("socket:"));
        let used = [
            ("tasks", value("dwd_tasks")),
            ("sockets", sockets.count() as u64),
            ("files", files.len() as u64),
            ("threads", status(id, "Threads")?),
            ("resident_kib", status(id, "VmRSS")?),
        ];
        let leads = values.iter().any(|(series, value)| {
            series.starts_with("leader_election_master_status") && *value == 1.0
        });
        let process = (replica.name, replica.serial(), leads);
        Ok(Self {
            process,
            panics: value("dwd_panics_total"),
            used: used.into(),
        })
    }
}
