//! Machines that have failed and are preserved: machine-controller-manager keeps them for their
//! owner to look at.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::scenario;

use crate::journal::{FAILED, GONE};
use crate::story::MachineStory;
use crate::world::MachineWorld;

const COUNT: usize = 3;
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);
/// machine-controller-manager's annotation.
const PRESERVE: &str = "node.machine.sapcloud.io/preserve";

#[test]
fn preserved_machine_is_no_candidate() -> Result<()> {
    scenario(async |bed| {
        let world = MachineWorld::create(bed, "preserved", COUNT, HEALTH_TIMEOUT).await?;
        let (names, begin) = (world.names(), world.shoot.history().len());
        let mut names = names.iter();
        let (preserved, other) = (
            names.next().context("no machine")?,
            names.next().context("no other machine")?,
        );
        let mut story = MachineStory::begin([("preserved", &world)]);
        story.tell(&format!(
            "{preserved} is to be preserved when it fails, and breaks."
        ));
        world.annotate(preserved, PRESERVE, "when-failed").await?;
        world.cloud.break_down(preserved).await;
        story
            .until("it has failed and is preserved", async || {
                let status = world.machine(preserved).await?["status"]["currentStatus"].take();
                ensure!(
                    status["phase"] == FAILED && status["preserveExpiryTime"].is_string(),
                    "{status}"
                );
                Ok(())
            })
            .await?;

        // Two of three leases are expired for some seconds now, and would be an outage if both were
        // candidates.
        story.tell(&format!("{other} breaks, too."));
        world.cloud.break_down(other).await;
        story
            .until("the other one is replaced", async || {
                ensure!(
                    world.machines.ever(0, &[GONE]).contains(other),
                    "{:?}",
                    world.machines.phases()
                );
                Ok(())
            })
            .await?;
        world.shoot.untouched_since(begin)?;
        let phase = world.machines.phases().remove(preserved);
        ensure!(
            phase.as_deref() == Some(FAILED) && world.cloud.names()?.contains(preserved),
            "{phase:?}"
        );
        world.end().await
    })
}
