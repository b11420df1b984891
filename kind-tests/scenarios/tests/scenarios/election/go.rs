//! A replica in Go, which leaves its election to client-go.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use nix::sys::signal::Signal;
use testbed::log::tail;
use testbed::process::Process;
use testbed::{PATIENCE, SeedCluster, Testbed, eventually};

use super::LEASE;

/// A running replica with the times of ours.
pub struct GoReplica {
    process: Process,
    log: PathBuf,
}

impl GoReplica {
    pub async fn start(bed: &Testbed, seed: &SeedCluster, identity: &str) -> Result<Self> {
        let program = bed.programs().await?.join("client-go-election");
        let kubeconfig = seed.folder().join(format!("kubeconfig-{identity}"));
        std::fs::write(&kubeconfig, seed.prober_kubeconfig().await?)?;
        let log = seed.folder().join(format!("log-{identity}"));
        let args = [
            format!("-kubeconfig={}", kubeconfig.display()),
            format!("-name={LEASE}"),
            format!("-identity={identity}"),
            "-lease-duration=6s".into(),
            "-renew-deadline=4s".into(),
            "-retry-period=1s".into(),
        ];
        Ok(Self {
            process: Process::start(identity, &program, &args, &log)?,
            log,
        })
    }

    /// When it said so.
    pub fn said(&self, what: &str) -> Option<DateTime<Utc>> {
        let text = tail(&self.log, 1, &format!(" {what} "));
        DateTime::from_timestamp_micros(text.split(' ').next()?.parse().ok()?)
    }

    pub async fn leading(&self) -> Result<DateTime<Utc>> {
        eventually("the replica in Go leads", async || {
            self.said("leading").context("it does not say so")
        })
        .await
    }

    /// Ends it as a kubelet does; when it stopped to lead.
    pub async fn terminate(mut self) -> Result<DateTime<Utc>> {
        self.process.signal(Signal::SIGTERM)?;
        let status = self.process.end(PATIENCE).await?;
        ensure!(status.success(), "{status}: {}", self.process.tail(5));
        self.said("stopped")
            .context("it does not say that it stopped")
    }

    /// Kills it; the last moment at which it may have led.
    pub async fn kill(mut self) -> Result<DateTime<Utc>> {
        self.process.signal(Signal::SIGKILL)?;
        self.process.end(PATIENCE).await?;
        Ok(Utc::now())
    }
}
