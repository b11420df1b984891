//! etcd: one member, its data in memory where the machine has a memory file system.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{TRIES, free_ports};
use crate::leash;
use crate::process::Process;
use crate::wait::eventually;

/// A running etcd.
pub struct Etcd {
    url: String,
    _process: Process,
}

impl Etcd {
    /// Starts etcd from the folder with the programs.
    pub async fn start(programs: &Path) -> Result<Self> {
        let mut last = String::new();
        for _ in 0..TRIES {
            let [client, peer] = free_ports()?;
            let (url, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
            let folder = leash::folder("etcd")?;
            let args = [
                // Nothing here outlives the test: waiting for the disk would protect nothing.
                "--unsafe-no-fsync".into(),
                "--log-level=warn".into(),
                format!("--data-dir={}", folder.join("data").display()),
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
            ];
            let mut process = Process::start("etcd", &programs.join("etcd"), &args, &folder.join("log"))?;
            let ready = eventually("etcd accepts connections", Duration::from_secs(30), async || {
                let ended = process.ended()?;
                match TcpStream::connect(("127.0.0.1", client)).await {
                    _ if ended.is_some() => Ok(false),
                    Ok(_) => Ok(true),
                    Err(error) => Err(error.into()),
                }
            })
            .await?;
            if ready {
                return Ok(Self { url, _process: process });
            }
            last = process.tail(5);
        }
        bail!("etcd does not start: {last}")
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
