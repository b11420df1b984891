//! A replica in Go, which leaves its election to client-go.

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use nix::sys::signal::Signal;
use testbed::log::tail;
use testbed::process::Process;
use testbed::{PATIENCE, SeedCluster, Testbed, eventually};

use super::LEASE;

/// A running replica with the times of ours.
pub struct GoReplica(Process);

impl GoReplica {
    pub async fn start(bed: &Testbed, seed: &SeedCluster, identity: &str) -> Result<Self> {
        let program = bed.programs().await?.join("client-go-election");
        let kubeconfig = seed.folder().join(format!("kubeconfig-{identity}"));
        std::fs::write(&kubeconfig, seed.prober_kubeconfig().await?)?;
        let args = [
            format!("-kubeconfig={}", kubeconfig.display()),
            format!("-name={LEASE}"),
            format!("-identity={identity}"),
            "-lease-duration=6s".into(),
            "-renew-deadline=4s".into(),
            "-retry-period=1s".into(),
        ];
        let log = seed.folder().join(format!("log-{identity}"));
        Process::start(identity, &program, &args, &log).map(Self)
    }

    /// When it said so.
    pub fn said(&self, what: &str) -> Option<DateTime<Utc>> {
        let text = tail(self.0.log_file(), 1, &format!(" {what} "));
        DateTime::from_timestamp_micros(text.split(' ').next()?.parse().ok()?)
    }

    pub async fn leading(&self) -> Result<DateTime<Utc>> {
        eventually("the replica in Go leads", async || {
            self.said("leading").context("it does not say so")
        })
        .await
    }

    /// Asks it to end, or kills it; the last moment at which it may have led.
    pub async fn end(mut self, signal: Signal) -> Result<DateTime<Utc>> {
        self.0.signal(signal)?;
        self.0.end(PATIENCE).await?;
        match signal {
            Signal::SIGKILL => Ok(Utc::now()),
            _ => self.said("stopped").context("it does not say so"),
        }
    }
}
