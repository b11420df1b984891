//! What the same work costs at least: clients that make the same requests with the same libraries
//! and do nothing with the answers.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::Args;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use testbed::process::Process;
use testbed::reaper;
use testbed::shoot::LEASES;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::synthetic::{SyntheticShoots, TOKEN};

/// What a connection of a probe reads at once.
const READ_AT_ONCE: usize = 16 << 10;

type BaselineClient = HyperClient<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// What a bare loop is to do.
#[derive(Args, Clone, Debug)]
pub struct BaselineOptions {
    /// Seconds between two requests to the same shoot.
    #[arg(long)]
    period: f64,
    #[arg(long)]
    authority: String,
    urls: Vec<String>,
}

/// Starts a process that lists the leases of synthetic shoots again and again: one client and one
/// kept connection for each, one request in `period`.
pub fn start(shoots: &SyntheticShoots, period: Duration) -> Result<Process> {
    let name = "bare-loop";
    let mut args = vec![
        name.to_owned(),
        format!("--period={}", period.as_secs_f64()),
        format!("--authority={}", shoots.authority.pem()),
    ];
    args.extend(shoots.urls());
    let log = reaper::folder(name)?.join("log");
    Process::start(name, &std::env::current_exe()?, &args, &log)
}

/// That process.
pub async fn run(options: BaselineOptions) -> Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(
        options.authority.as_bytes(),
    )?)?;
    let (begin, period) = (Instant::now(), Duration::from_secs_f64(options.period));
    let mut tasks = JoinSet::<()>::new();
    let count = options.urls.len() as f64;
    for (place, url) in options.urls.into_iter().enumerate() {
        let client = client(&roots);
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
    tasks.join_all().await;
    Ok(())
}

/// The client of a probe.
fn client(authority: &RootCertStore) -> BaselineClient {
    let tls = ClientConfig::builder()
        .with_root_certificates(authority.clone())
        .with_no_client_auth();
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .build();
    HyperClient::builder(TokioExecutor::new())
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(None)
        .http1_max_buf_size(READ_AT_ONCE)
        .build(https)
}

async fn get(client: &BaselineClient, url: &str) -> Result<()> {
    let accepted = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
    let request = Request::get(format!("{url}{LEASES}"))
        .header(ACCEPT, accepted)
        .header(AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(Empty::new())?;
    let mut body = client.request(request).await?.into_body();
    while let Some(frame) = body.frame().await {
        drop(frame?);
    }
    Ok(())
}
