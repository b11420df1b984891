//! etcd: one member, its data in memory where the machine has a memory file system.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Config;
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};

use super::reserve_port;
use crate::kube_api::KubeApi;
use crate::process::Process;
use crate::reaper;
use crate::wait::eventually;

/// A running etcd.
pub struct Etcd {
    address: SocketAddr,
    process: Process,
    /// For clients and for peers. Nobody else gets them, also while it is away.
    _ports: [TcpSocket; 2],
}

impl Etcd {
    /// Starts etcd from the folder with the programs.
    pub async fn start(programs: &Path) -> Result<Self> {
        let ports = [reserve_port(0)?, reserve_port(0)?];
        let [address, peer] = [ports[0].local_addr()?, ports[1].local_addr()?];
        let folder = reaper::folder("etcd")?;
        let args = [
            // Nothing here outlives the test: waiting for the disk would protect nothing.
            "--unsafe-no-fsync".into(),
            "--log-level=warn".into(),
            // As kubeadm sets it: without it an API server has no bookmarks for kinds of which
            // nothing changes.
            "--watch-progress-notify-interval=5s".into(),
            format!("--data-dir={}", folder.join("data").display()),
            format!("--listen-client-urls=http://{address}"),
            format!("--advertise-client-urls=http://{address}"),
            format!("--listen-peer-urls=http://{peer}"),
            format!("--initial-advertise-peer-urls=http://{peer}"),
            format!("--initial-cluster=default=http://{peer}"),
        ];
        let process = Process::start("etcd", &programs.join("etcd"), &args, &folder.join("log"))?;
        let mut etcd = Self {
            address,
            process,
            _ports: ports,
        };
        etcd.accepts_connections().await?;
        Ok(etcd)
    }

    async fn accepts_connections(&mut self) -> Result<()> {
        eventually("etcd accepts connections", async || {
            ensure!(self.process.is_running(), "{}", self.process.tail(5));
            TcpStream::connect(self.address).await?;
            Ok(())
        })
        .await
    }

    /// Kills it. What was written stays on its disk.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.signal(Signal::SIGKILL)?;
        self.process.end(Duration::from_secs(5)).await.map(drop)
    }

    /// Starts it again with what it knew, after [`Etcd::kill`].
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process = self.process.again()?;
        self.accepts_connections().await
    }

    /// Forgets all that was before now, as the API server lets it do every five minutes.
    ///
    /// # Errors
    /// When it does not do so.
    pub async fn compact(&self) -> Result<()> {
        // Its gateway speaks JSON.
        let gateway = KubeApi::of(Config::new(self.url().parse()?))?;
        let key = json!({"key": "AA=="});
        let now = gateway.post("/v3/kv/range", &key).await?;
        let revision = now["header"]["revision"].as_str().context("no revision")?;
        let all_before = json!({"revision": revision, "physical": true});
        let compacted = gateway.post("/v3/kv/compaction", &all_before).await;
        compacted.map(drop)
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}
