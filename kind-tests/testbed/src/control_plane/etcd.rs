//! etcd: one member, its data in memory where the machine has a memory file system.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{TRIES, free_ports, hold_port};
use crate::leash;
use crate::process::Process;
use crate::wait::eventually;

/// A running etcd.
pub struct Etcd {
    url: String,
    port: u16,
    peer_port: u16,
    /// Its ports while it is away.
    held: Vec<TcpSocket>,
    program: PathBuf,
    args: Vec<String>,
    log: PathBuf,
    process: Process,
}

impl Etcd {
    /// Starts etcd from the folder with the programs.
    pub async fn start(programs: &Path) -> Result<Self> {
        let mut last = String::new();
        for _ in 0..TRIES {
            let [client, peer_port] = free_ports()?;
            let (url, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer_port}"));
            let folder = leash::folder("etcd")?;
            let args = vec![
                // Nothing here outlives the test: waiting for the disk would protect nothing.
                "--unsafe-no-fsync".into(),
                "--log-level=warn".into(),
                // As kubeadm sets it: without it an API server has no bookmarks for kinds of which nothing changes.
                "--watch-progress-notify-interval=5s".into(),
                format!("--data-dir={}", folder.join("data").display()),
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
            ];
            let (program, log) = (programs.join("etcd"), folder.join("log"));
            let process = Process::start("etcd", &program, &args, &log)?;
            let mut etcd = Self { url, port: client, peer_port, held: vec![], program, args, log, process };
            if etcd.accepts_connections().await? {
                return Ok(etcd);
            }
            last = etcd.process.tail(5);
        }
        bail!("etcd does not start: {last}")
    }

    /// Whether it comes so far; it does not where somebody else has taken its port.
    async fn accepts_connections(&mut self) -> Result<bool> {
        eventually("etcd accepts connections", Duration::from_secs(30), async || {
            let ended = self.process.ended()?;
            match TcpStream::connect(("127.0.0.1", self.port)).await {
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
        self.held = [self.port, self.peer_port].into_iter().map(hold_port).collect::<Result<_>>()?;
        Ok(())
    }

    /// Starts it again with what it knew, after [`Etcd::kill`].
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process = Process::start("etcd", &self.program, &self.args, &self.log)?;
        ensure!(self.accepts_connections().await?, "etcd does not start again: {}", self.process.tail(5));
        self.held.clear();
        Ok(())
    }

    /// Forgets all that was before now, as the API server lets it do every five minutes. Returns what etcd answered.
    ///
    /// # Errors
    /// When it does not do so.
    pub async fn compact(&self) -> Result<String> {
        let now = self.ask("/v3/kv/range", r#"{"key": "AA=="}"#).await?;
        let revision = now.split_once(r#""revision":""#).and_then(|(_, rest)| rest.split('"').next()).context("no revision")?;
        self.ask("/v3/kv/compaction", &format!(r#"{{"revision": "{revision}", "physical": true}}"#)).await
    }

    /// Posts JSON to etcd's gateway.
    async fn ask(&self, path: &str, body: &str) -> Result<String> {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await?;
        let head = format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.contains(" 200 ") => Ok(body.into()),
            _ => bail!("etcd answered {answer}"),
        }
    }

    /// Where clients reach it.
    pub fn url(&self) -> &str {
        &self.url
    }
}
