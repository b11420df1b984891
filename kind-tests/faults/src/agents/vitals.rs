//! What a process uses: tasks, file descriptors (its connections too), threads, memory.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::page::{ScrapedMetrics, get};
use testbed::usage::status;

use super::replica::AgentReplica;
use crate::oracle::leaks::{ProcessKey, Used};

/// The pages are made from memory, at once.
const ANSWER: Duration = Duration::from_secs(10);

/// Reads them: of which process, and what it uses at this moment.
///
/// # Errors
/// When the process does not run or does not answer.
pub async fn vitals(replica: &AgentReplica) -> Result<(ProcessKey, Used)> {
    let id = replica.id().context("it does not run")?;
    let (code, text) = get(&replica.metrics_address()?, "/metrics", ANSWER).await?;
    ensure!(code == 200, "/metrics: {code}");
    let values = ScrapedMetrics::read(&text)?.values;
    let tasks = values.get("dwd_tasks").context("no tasks")?;
    let files = std::fs::read_dir(format!("/proc/{id}/fd"))?.count();
    let used = [
        ("tasks", *tasks as u64),
        ("files", files as u64),
        ("threads", status(id, "Threads")?),
        ("resident_kib", status(id, "VmRSS")?),
    ];
    let leads = values.iter().any(|(series, value)| {
        series.starts_with("leader_election_master_status") && *value == 1.0
    });
    Ok(((replica.name, replica.serial(), leads), used.into()))
}
