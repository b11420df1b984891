//! What the watchdog itself serves: `/metrics`, `/healthz`, `/readyz`, `/statusz`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::task::spawn_blocking;

use crate::log::{lines, tail};

/// Lets a process serve on ports that it chooses and tells in its log: several agents share this
/// machine. An address that is given twice counts as given last.
pub const SERVED: [&str; 3] = [
    "--metrics-bind-addr=127.0.0.1:0",
    "--health-bind-addr=127.0.0.1:0",
    "--pprof-bind-addr=0",
];

/// The pages are made from memory, at once.
const ANSWER: Duration = Duration::from_secs(10);

/// A page of the process that writes this log.
///
/// # Errors
/// When it does not serve it (yet), or does not answer.
pub async fn page(log: &Path, path: &str) -> Result<(u16, String)> {
    get(&address(log, path)?, path, ANSWER).await
}

/// What a server on loopback answers to a plain GET, if it never pauses for longer than this.
///
/// # Errors
/// When it does not answer, or not in HTTP.
pub async fn get(address: &str, path: &str, patience: Duration) -> Result<(u16, String)> {
    let (address, path) = (address.to_owned(), path.to_owned());
    let get = move || {
        let mut stream = TcpStream::connect_timeout(&address.parse()?, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, body.into()))
    };
    spawn_blocking(get).await?
}

/// Where the process that writes this log serves a page.
///
/// # Errors
/// When it does not serve it (yet).
pub fn address(log: &Path, path: &str) -> Result<String> {
    let what = match path {
        "/metrics" => "serving metrics",
        _ => "serving health",
    };
    let logged = lines(log, what);
    let address = logged.last().and_then(|line| line["address"].as_str());
    address
        .map(Into::into)
        .with_context(|| format!("not yet {what}: {}", tail(log, 5, "")))
}

/// `/metrics`, read.
#[derive(Debug, Default, PartialEq)]
pub struct ScrapedMetrics {
    /// Types by name, counters with their `_total`.
    pub types: BTreeMap<String, String>,
    /// Values by series, as they are written.
    pub values: BTreeMap<String, f64>,
}

impl ScrapedMetrics {
    /// Reads OpenMetrics, which describes a counter by its name without `_total`.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(text: &str) -> Result<Self> {
        let mut metrics = Self::default();
        for line in text.lines() {
            let wrong = || line.to_owned();
            if let Some(described) = line.strip_prefix("# TYPE ") {
                let (name, kind) = described.split_once(' ').with_context(wrong)?;
                let suffix = if kind == "counter" { "_total" } else { "" };
                metrics.types.insert(format!("{name}{suffix}"), kind.into());
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').with_context(wrong)?;
                let value = value.parse().with_context(wrong)?;
                metrics.values.insert(series.into(), value);
            }
        }
        Ok(metrics)
    }

    /// The value of a series.
    ///
    /// # Errors
    /// When there is no such series.
    pub fn value(&self, series: &str) -> Result<f64> {
        let value = self.values.get(series).copied();
        value.with_context(|| format!("no {series} among {:#?}", self.values.keys()))
    }
}

/// The metrics of the process that writes this log.
///
/// # Errors
/// When it serves none (yet).
pub async fn metrics(log: &Path) -> Result<ScrapedMetrics> {
    let (status, body) = page(log, "/metrics").await?;
    ensure!(status == 200, "{status}: {body}");
    ScrapedMetrics::read(&body)
}
