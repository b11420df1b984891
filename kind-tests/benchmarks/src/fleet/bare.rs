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
use testbed::leash;
use testbed::process::Process;
use testbed::shoot::LEASES;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::light::{LightShoots, TOKEN};

/// What a connection of a probe reads at once.
const READ_AT_ONCE: usize = 16 << 10;

type BareClient = HyperClient<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// What a bare loop is to do.
#[derive(Args, Clone, Debug)]
pub struct BareLoopOptions {
    /// Seconds between two requests to the same shoot.
    #[arg(long)]
    period: f64,
    #[arg(long)]
    authority: String,
    urls: Vec<String>,
}

/// Starts a process that lists the leases of light shoots again and again: one client and one kept
/// connection for each, one request in `period`.
pub fn start(shoots: &LightShoots, period: Duration) -> Result<Process> {
    let (period, authority) = (period.as_secs_f64(), &shoots.opened.authority);
    let mut args = vec![
        "bare-loop".to_owned(),
        format!("--period={period}"),
        format!("--authority={authority}"),
    ];
    args.extend((0..shoots.plan.shoots).map(|shoot| shoots.url(shoot)));
    Process::start(
        "bare-loop",
        &std::env::current_exe()?,
        &args,
        &leash::folder("bare-loop")?.join("log"),
    )
}

/// That process.
pub async fn run(order: BareLoopOptions) -> Result<()> {
    let BareLoopOptions {
        period,
        authority,
        urls,
    } = order;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
    let (begin, period, count) = (
        Instant::now(),
        Duration::from_secs_f64(period),
        urls.len() as f64,
    );
    let mut tasks = JoinSet::<()>::new();
    for (place, url) in urls.into_iter().enumerate() {
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
fn client(authority: &RootCertStore) -> BareClient {
    let tls = ClientConfig::builder()
        .with_root_certificates(authority.clone())
        .with_no_client_auth();
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .build();
    let mut builder = HyperClient::builder(TokioExecutor::new());
    builder
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(None)
        .http1_max_buf_size(READ_AT_ONCE)
        .build(https)
}

async fn get(client: &BareClient, url: &str) -> Result<()> {
    let request = Request::get(format!("{url}{LEASES}"))
        .header(
            ACCEPT,
            "application/vnd.kubernetes.protobuf,application/json;q=0.9",
        )
        .header(AUTHORIZATION, format!("Bearer {}", TOKEN));
    let mut body = client
        .request(request.body(Empty::new())?)
        .await?
        .into_body();
    while let Some(frame) = body.frame().await {
        drop(frame?);
    }
    Ok(())
}
