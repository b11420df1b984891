//! What the same work costs at least: clients that make the same requests with the same libraries and do nothing with the
//! answers.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::StreamExt;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::light::LightShoots;
use super::usage::Usage;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// What a connection of a probe reads at once.
const READ_AT_ONCE: usize = 16 << 10;

type Client = HyperClient<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// What a bare loop is told on standard input.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    urls: Vec<String>,
    authority: String,
    /// Seconds between two requests to the same shoot.
    period: f64,
}

/// A process that lists the leases of light shoots again and again. Dropping it ends it.
pub struct BareLoop {
    process: Child,
}

impl BareLoop {
    /// Starts it: one client and one kept connection for each shoot, one request in `period`.
    pub async fn start(shoots: &LightShoots, period: Duration) -> Result<Self> {
        let mut process = tokio::process::Command::new(std::env::current_exe()?)
            .arg("bare-loop")
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the bare loop")?;
        let orders = Orders {
            urls: (0..shoots.plan.shoots).map(|shoot| shoots.url(shoot)).collect(),
            authority: shoots.authority().into(),
            period: period.as_secs_f64(),
        };
        let mut input = process.stdin.take().context("no way in")?;
        input.write_all(&serde_json::to_vec(&orders)?).await?;
        // The end of its input is the end of the orders.
        drop(input);
        Ok(Self { process })
    }

    /// What it has used so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.process.id().and_then(|id| i32::try_from(id).ok()).context("the bare loop has ended")?)
    }
}

/// The process of [`BareLoop`]. It runs until it is killed, and never longer than this.
const LONGEST: Duration = Duration::from_secs(1800);

/// Runs the bare loop.
pub fn run() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let mut orders = Vec::new();
        tokio::io::stdin().read_to_end(&mut orders).await?;
        let orders: Orders = serde_json::from_slice(&orders)?;
        let mut authority = RootCertStore::empty();
        authority.add(CertificateDer::from_pem_slice(orders.authority.as_bytes())?)?;
        let (period, count) = (Duration::from_secs_f64(orders.period), orders.urls.len() as f64);
        let begin = Instant::now();
        let mut tasks = JoinSet::new();
        for (place, url) in orders.urls.into_iter().enumerate() {
            let client = client(&authority);
            let mut ticks = interval_at(begin + period.mul_f64(place as f64 / count), period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            tasks.spawn(async move {
                loop {
                    ticks.tick().await;
                    // What fails is seen as a request that is missing at the server.
                    let _ = get(&client, &url).await;
                }
            });
        }
        tokio::time::sleep(LONGEST).await;
        Ok(())
    })
}

/// The client of a probe.
fn client(authority: &RootCertStore) -> Client {
    let mut tls = ClientConfig::builder().with_root_certificates(authority.clone()).with_no_client_auth();
    tls.resumption = Resumption::disabled();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().wrap_connector(tcp);
    let mut builder = HyperClient::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(1).pool_idle_timeout(None).http1_max_buf_size(READ_AT_ONCE).build(https)
}

async fn get(client: &Client, url: &str) -> Result<()> {
    let request = Request::get(format!("{url}{LEASES}"))
        .header(ACCEPT, "application/vnd.kubernetes.protobuf,application/json;q=0.9")
        .header(AUTHORIZATION, format!("Bearer {}", super::TOKEN));
    let mut body = client.request(request.body(Empty::new())?).await?.into_body();
    while let Some(frame) = body.frame().await {
        drop(frame?);
    }
    Ok(())
}

/// Merges patches into objects, at most `in_flight` at a time, with nothing to wait for in between. Returns how many failed.
pub async fn patch_all(api: &testbed::KubeApi, patches: Vec<(String, serde_json::Value)>, in_flight: usize) -> usize {
    let failed = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    futures::stream::iter(patches)
        .for_each_concurrent(in_flight, |(path, patch)| {
            let failed = failed.clone();
            async move {
                if api.merge(&path, &patch).await.is_err() {
                    failed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
        })
        .await;
    failed.load(std::sync::atomic::Ordering::Relaxed)
}
