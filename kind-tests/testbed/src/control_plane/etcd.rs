//! etcd: one member, its data in memory where the machine has a memory file system.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};

use super::{TRIES, free_ports, reserve_port};
use crate::kube_api::KubeApi;
use crate::process::Process;
use crate::reaper;
use crate::wait::eventually;

/// A running etcd.
pub struct Etcd {
    url: String,
    /// For clients and for peers.
    ports: [u16; 2],
    /// Its ports while it is away.
    held: Vec<TcpSocket>,
    process: Process,
}

impl Etcd {
    /// Starts etcd from the folder with the programs.
    pub async fn start(programs: &Path) -> Result<Self> {
        let mut last = String::new();
        for _ in 0..TRIES {
            let ports = free_ports()?;
            let [url, peer] = ports.map(|port| format!("http://127.0.0.1:{port}"));
            let folder = reaper::folder("etcd")?;
            let args = [
                // Nothing here outlives the test: waiting for the disk would protect nothing.
                "--unsafe-no-fsync".into(),
                "--log-level=warn".into(),
                // As kubeadm sets it: without it an API server has no bookmarks for kinds of which
                // nothing changes.
                "--watch-progress-notify-interval=5s".into(),
                format!("--data-dir={}", folder.join("data").display()),
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
            ];
            let process =
                Process::start("etcd", &programs.join("etcd"), &args, &folder.join("log"))?;
            let mut etcd = Self {
                url,
                ports,
                held: vec![],
                process,
            };
            if etcd.accepts_connections().await? {
                return Ok(etcd);
            }
            last = etcd.process.tail(5);
        }
        bail!("etcd does not start: {last}")
    }

    /// Whether it comes so far; it does not where somebody else has taken its port.
    async fn accepts_connections(&mut self) -> Result<bool> {
        eventually("etcd accepts connections", async || {
            let ended = self.process.ended()?;
            match TcpStream::connect(("127.0.0.1", self.ports[0])).await {
                _ if ended.is_some() => Ok(false),
                Ok(_) => Ok(true),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    /// Kills it. What was written stays on its disk, and nobody else gets its ports.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.signal(Signal::SIGKILL)?;
        self.process.end(Duration::from_secs(5)).await?;
        self.held = self
            .ports
            .into_iter()
            .map(reserve_port)
            .collect::<Result<_>>()?;
        Ok(())
    }

    /// Starts it again with what it knew, after [`Etcd::kill`].
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process = self.process.again()?;
        ensure!(
            self.accepts_connections().await?,
            "etcd does not start again: {}",
            self.process.tail(5)
        );
        self.held.clear();
        Ok(())
    }

    /// Forgets all that was before now, as the API server lets it do every five minutes.
    ///
    /// # Errors
    /// When it does not do so.
    pub async fn compact(&self) -> Result<()> {
        // Its gateway speaks JSON.
        let gateway = KubeApi::without_tls(&self.url)?;
        let now = gateway
            .post("/v3/kv/range", &json!({"key": "AA=="}))
            .await?;
        let revision = now["header"]["revision"].as_str().context("no revision")?;
        gateway
            .post(
                "/v3/kv/compaction",
                &json!({"revision": revision, "physical": true}),
            )
            .await
            .map(drop)
    }

    /// Where clients reach it.
    pub fn url(&self) -> &str {
        &self.url
    }
}
