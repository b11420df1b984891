//! What a process uses: tasks, connections, file descriptors, threads, memory.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::page::{Metrics, get};
use testbed::usage::status;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::replica::Replica;

/// The pages are made from memory, at once.
const ANSWER: Duration = Duration::from_secs(10);

/// What a process uses at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vitals {
    /// Which of the replica's processes.
    pub serial: usize,
    pub tasks: u64,
    pub files: u64,
    pub sockets: u64,
    pub threads: u64,
    pub resident_kib: u64,
    /// Whether it leads.
    pub leads: bool,
    /// Tasks of shoots that have panicked.
    pub panics: u64,
}

impl Vitals {
    /// The least of two measurements, and what the later one says of the process itself.
    pub fn least(self, later: Self) -> Self {
        Self {
            tasks: self.tasks.min(later.tasks),
            files: self.files.min(later.files),
            sockets: self.sockets.min(later.sockets),
            threads: self.threads.min(later.threads),
            resident_kib: self.resident_kib.min(later.resident_kib),
            ..later
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// When the process does not run or does not answer.
    pub async fn read(replica: &Replica) -> Result<Self> {
        let id = replica.id().context("it does not run")?;
        let address = replica.metrics_address().context("it does not say where it serves metrics")?;
        let (code, text) = get(&address, "/metrics", ANSWER).await?;
        ensure!(code == 200, "/metrics: {code}");
        let metrics = Metrics::read(&text)?;
        let value = |series: &str| metrics.values.get(series).map_or(0, |value| *value as u64);
        let files = std::fs::read_dir(format!("/proc/{id}/fd"))?.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let files: Vec<String> = files.map(|target| target.to_string_lossy().into_owned()).collect();
        Ok(Self {
            serial: replica.log().1,
            tasks: value("dwd_tasks"),
            files: files.len() as u64,
            sockets: files.iter().filter(|file| file.starts_with("socket:")).count() as u64,
            threads: status(id, "Threads")?,
            resident_kib: status(id, "VmRSS")?,
            leads: metrics
                .values
                .iter()
                .any(|(series, value)| series.starts_with("leader_election_master_status") && *value == 1.0),
            panics: value("dwd_panics_total"),
        })
    }
}

/// A connection to a process that it has answered on and keeps open.
pub async fn hold(address: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    timeout(ANSWER, stream.read_u8()).await.context("no answer")??;
    Ok(stream)
}
