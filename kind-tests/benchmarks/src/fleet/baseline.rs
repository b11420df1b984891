//! The least cost of the same work: a process that makes the same requests with the same
//! libraries and does nothing with the answers.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::Args;
use futures::future::try_join_all;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use testbed::process::Process;
use testbed::reaper;
use testbed::shoot::LEASES;
use tokio::time::{Instant, interval_at};

use super::synthetic::SyntheticShoots;

/// Bytes that a connection of a probe reads at once.
const READ_AT_ONCE: usize = 16 << 10;

/// Arguments of a bare loop.
#[derive(Args)]
pub struct BaselineOptions {
    /// Seconds between two requests to the same shoot.
    #[arg(long)]
    period: f64,
    #[arg(long)]
    authority: String,
    urls: Vec<String>,
}

/// Starts a process that lists the leases of synthetic shoots again and again, as often as a prober
/// may, each shoot's on a connection that is kept.
pub fn start(shoots: &SyntheticShoots) -> Result<Process> {
    let name = "bare-loop";
    let period = shoots.plan.grace().as_seconds_f64() / 2.0 - 1.0;
    let mut args = vec![
        name.to_owned(),
        format!("--period={period}"),
        format!("--authority={}", shoots.authority.pem()),
    ];
    args.extend(shoots.urls());
    let log = reaper::folder(name)?.join("log");
    Process::start(name, &std::env::current_exe()?, &args, &log)
}

/// That process.
pub async fn run(options: BaselineOptions) -> Result<()> {
    let client = BareClient::new(&options.authority)?;
    let (begin, period) = (Instant::now(), Duration::from_secs_f64(options.period));
    let count = options.urls.len() as f64;
    let loops = (0..)
        .zip(options.urls)
        .map(async |(place, url)| -> Result<()> {
            let first = begin + period.mul_f64(f64::from(place) / count);
            let mut ticks = interval_at(first, period);
            loop {
                ticks.tick().await;
                // What fails is seen as a request that is missing at the server.
                let _ = client.get(format!("{url}{LEASES}")).await;
            }
        });
    try_join_all(loops).await.map(drop)
}

/// Makes requests and drops the answers.
pub struct BareClient(Client<HttpsConnector<HttpConnector>, Empty<Bytes>>);

impl BareClient {
    /// A client for API servers whose certificates this authority has issued.
    pub fn new(authority: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(None)
            .http1_max_buf_size(READ_AT_ONCE)
            .build(https);
        Ok(Self(client))
    }

    /// Reads the whole answer, and drops it.
    pub async fn get(&self, url: String) -> Result<()> {
        let request = Request::get(url)
            .header(ACCEPT, "application/vnd.kubernetes.protobuf")
            .header(AUTHORIZATION, "Bearer admin")
            .body(Empty::<Bytes>::new())?;
        let mut body = self.0.request(request).await?.into_body();
        while let Some(frame) = body.frame().await {
            frame?;
        }
        Ok(())
    }
}
