//! An API server that stands still: not knowing is never evidence of an outage.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::{ShootPlan, own_scenario};
use tokio::time::Instant;

use crate::{UP, healthy};

/// Twice the grace: every lease would have been expired for long.
const LONG: Duration = Duration::from_secs(12);

#[test]
fn an_api_server_that_stands_still_is_no_outage() -> Result<()> {
    own_scenario("needs an API server that may be stopped", async |bed| {
        let shoot = healthy(bed, "server-stands", ShootPlan::default()).await?;
        let server = shoot.plane.server().context("own")?.process();
        let since = Instant::now();
        // Nobody reaches it: neither the prober, nor the nodes, nor a controller that could give
        // them up.
        server.signal(Signal::SIGSTOP)?;
        shoot
            .eventually("a long stop", async || {
                ensure!(since.elapsed() > LONG, "{:?}", since.elapsed());
                Ok(())
            })
            .await?;
        server.signal(Signal::SIGCONT)?;
        shoot.leases_younger_than(Duration::from_secs(3)).await?;
        shoot.after_probes(3).await?;
        // Its first answers tell of old leases: whatever was done about them is undone.
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}
