//! A real Chromium without a window, driven over WebDriver.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use serde_json::{Value, json};
use testbed::eventually_within;
use testbed::process::Process;

use crate::tools::system;

/// A busy machine may take long to start a browser.
const ANSWER: Duration = Duration::from_secs(60);

/// A browser with one window. Dropping it kills it.
pub struct Browser {
    http: reqwest::Client,
    session: String,
    _driver: Process,
}

impl Browser {
    /// Starts one; its files go to `folder`.
    ///
    /// # Errors
    /// When chromium or its driver is not installed, or cannot be started.
    pub async fn start(folder: &Path) -> Result<Self> {
        // Chromium's own command line wants neither a sandbox, which root may not have, nor any
        // talk with its maker.
        let chromium = system("chromium", "chromium")?;
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            &profile,
        ];
        let (driver, port) = start_driver(folder).await?;
        // Also what never connects by TLS wants to know by what it would.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let http = reqwest::Client::builder()
            .timeout(ANSWER)
            .no_proxy()
            .build()?;
        let root = format!("http://127.0.0.1:{port}/session");
        let options = json!({ "binary": chromium, "args": flags });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "goog:chromeOptions": options } } });
        let answer = post(&http, &root, &wanted).await?;
        let session = answer["sessionId"].as_str().context("no session")?;
        Ok(Self {
            http,
            session: format!("{root}/{session}"),
            _driver: driver,
        })
    }

    /// A window of this size.
    ///
    /// # Errors
    /// When the browser refuses.
    pub async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
            .await
    }

    /// What the reader's system prefers: `dark` or `light`.
    ///
    /// # Errors
    /// When the browser refuses.
    pub async fn prefer(&self, scheme: &str) -> Result<()> {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features).await
    }

    async fn devtools(&self, command: &str, params: Value) -> Result<()> {
        let body = json!({ "cmd": command, "params": params });
        self.post("goog/cdp/execute", &body).await.map(drop)
    }

    async fn post(&self, command: &str, body: &Value) -> Result<Value> {
        post(&self.http, &format!("{}/{command}", self.session), body).await
    }

    /// Loads a page.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn open(&self, url: &str) -> Result<()> {
        self.post("url", &json!({ "url": url })).await.map(drop)
    }

    /// The value of an expression in the page.
    ///
    /// # Errors
    /// When it has none.
    pub async fn value(&self, expression: &str) -> Result<Value> {
        let body = json!({ "script": format!("return {expression};"), "args": [] });
        self.post("execute/sync", &body).await
    }

    /// Keeps what is shown as a picture.
    ///
    /// # Errors
    /// When there is none, or it cannot be written.
    pub async fn picture(&self, file: &Path) -> Result<()> {
        let answer = self
            .http
            .get(format!("{}/screenshot", self.session))
            .send()
            .await?
            .text()
            .await?;
        let answer: Value = serde_json::from_str(&answer)?;
        let picture = base64::prelude::BASE64_STANDARD
            .decode(answer["value"].as_str().context("no picture")?)?;
        std::fs::create_dir_all(file.parent().context("no folder")?)?;
        Ok(std::fs::write(file, picture)?)
    }
}

/// Starts chromedriver, at most three times: now and then one never comes to serve.
async fn start_driver(folder: &Path) -> Result<(Process, String)> {
    let program = system("chromedriver", "chromium-driver")?;
    let mut said = String::new();
    for attempt in 1..=3 {
        let log = folder.join(format!("chromedriver-{attempt}.log"));
        let mut driver = Process::start("chromedriver", &program, &["--port=0".to_owned()], &log)?;
        let port = eventually_within("chromedriver serves or has ended", ANSWER, async || {
            let text = std::fs::read_to_string(&log)?;
            if let Some((_, rest)) = text.split_once("successfully on port ")
                && let Some((port, _)) = rest.split_once('.')
            {
                return Ok(Some(port.to_owned()));
            }
            ensure!(driver.ended()?.is_some(), "no port yet");
            Ok(None)
        });
        match port.await {
            Ok(Some(port)) => return Ok((driver, port)),
            other => said = format!("{other:?}: {}", driver.tail(20)),
        }
    }
    bail!("chromedriver does not serve: {said}")
}

async fn post(http: &reqwest::Client, url: &str, body: &Value) -> Result<Value> {
    let answer = http
        .post(url)
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await?;
    let (status, text) = (answer.status(), answer.text().await?);
    ensure!(status.is_success(), "{url}: {status}: {text}");
    Ok(serde_json::from_str::<Value>(&text)?["value"].take())
}
