//! Machines that have failed and are preserved: machine-controller-manager keeps them for their
//! owner to look at.

use anyhow::{Context, Result, ensure};
use testbed::scenario;

use crate::journal::{FAILED, GONE};
use crate::world::{MachineWorld, seed};

/// machine-controller-manager's annotation.
const PRESERVE: &str = "node.machine.sapcloud.io/preserve";

#[test]
fn preserved_machine_is_no_candidate() -> Result<()> {
    scenario(async |bed| {
        let (seed, _prober) = seed(bed).await?;
        let world = MachineWorld::create(bed, &seed, "preserved").await?;
        let begin = world.shoot.history().len();
        let mut names = world.names().into_iter();
        let preserved = names.next().context("no machine")?;
        let other = names.next().context("no other machine")?;
        let (api, path) = (seed.api(), world.path(&preserved));
        api.annotate(&path, PRESERVE, Some("when-failed")).await?;
        world.cloud.break_down(&preserved).await;
        let is_preserved = async || {
            let status = api.get(&path).await?["status"]["currentStatus"].take();
            let expires = status["preserveExpiryTime"].is_string();
            ensure!(status["phase"] == FAILED && expires, "{status}");
            Ok(())
        };
        let what = "it has failed and is preserved";
        world.eventually(what, is_preserved).await?;

        // Two of three leases are expired for some seconds now, and would be an outage if both were
        // candidates.
        world.cloud.break_down(&other).await;
        let is_replaced = async || {
            let gone = world.machines.ever(0, &[GONE]);
            ensure!(gone.contains(&other), "{gone:?}");
            Ok(())
        };
        world
            .eventually("the other one is replaced", is_replaced)
            .await?;
        world.shoot.untouched_since(begin)?;
        let phase = world.machines.phases().remove(&preserved);
        let is_kept = world.cloud.names()?.contains(&preserved);
        ensure!(phase.as_deref() == Some(FAILED) && is_kept, "{phase:?}");
        world.shoot.end().await
    })
}
