//! What the watchdog is for: the nodes of two shoots lose their way, and only where it may act no
//! machine is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::gardener::PAUSE;
use testbed::scenario;

use crate::journal::{FAILED, GONE, UNKNOWN};
use crate::story::MachineStory;
use crate::world::{DOWN, MachineWorld, UP};

const COUNT: usize = 3;
/// Over when machine-controller-manager looks at an unhealthy machine for the second time: 5 s
/// after the first, sometimes a minute.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

#[test]
fn outage_costs_machines_only_unwatched() -> Result<()> {
    scenario(async |bed| {
        println!(
            "\nTwo clusters of three machines each, every part real but the VMs, start. This takes most of a minute."
        );
        let (watched, paused) = tokio::try_join!(
            MachineWorld::create(bed, "watched", COUNT, HEALTH_TIMEOUT),
            MachineWorld::create(bed, "paused", COUNT, HEALTH_TIMEOUT)
        )?;
        let shoot = &paused.shoot;
        shoot
            .seed
            .annotate(&shoot.namespace, PAUSE, Some("true"))
            .await?;
        // The annotation is known when the prober next looks.
        shoot.after_probes(1).await?;
        let (serving, failing) = tokio::try_join!(watched.service(), paused.service())?;
        let (ours, theirs) = (watched.names(), paused.names());
        let [from, from_there] = [&watched, &paused].map(|world| world.machines.steps().len());
        let harmed = || watched.machines.ever(from, &[UNKNOWN, FAILED, GONE]);

        let mut story = MachineStory::begin([("watched", &watched), ("paused", &paused)]);
        story.tell(
            "\"watched\" is protected by dependency-watchdog; in \"paused\" it may only look on.",
        );
        story.tell("The way from the nodes to their API servers is cut. Every machine is healthy, and stays so.");
        watched.cloud.cut().await;
        paused.cloud.cut().await;
        story
            .until(
                "where the watchdog is paused no pod is left in its Service",
                async || {
                    let ready = failing.endpoints().ready();
                    ensure!(ready == 0, "{ready} of {COUNT} are");
                    Ok(())
                },
            )
            .await?;
        story.tell(&format!(
            "Every pod runs, but of a Service's {COUNT} endpoints \"paused\" has {} that are ready, \"watched\" has {}.",
            failing.endpoints().ready(),
            serving.endpoints().ready(),
        ));
        story
            .until(
                "where the watchdog is paused a healthy machine is deleted and another one ordered",
                async || {
                    let (now, vms) = (paused.names(), paused.cloud.names()?);
                    ensure!(
                        !theirs.is_subset(&vms) && !now.is_subset(&theirs),
                        "VMs: {vms:?}, Machines: {now:?}"
                    );
                    Ok(())
                },
            )
            .await?;
        watched.shoot.held_down(&DOWN).await?;
        story
            .until("nobody is left to replace a machine", async || {
                ensure!(
                    watched.controllers_run().await == (false, false),
                    "they still run"
                );
                Ok(())
            })
            .await?;
        ensure!(
            harmed().is_empty() && watched.cloud.names()? == ours,
            "harmed: {:?}\n{}",
            harmed(),
            watched.story().await
        );
        let lost = serving.endpoints().lost.clone();
        ensure!(
            lost.is_empty(),
            "endpoints that were not ready: {lost:?}\n{}",
            watched.story().await
        );

        let broken = ours.first().context("no machine")?;
        story.tell(&format!(
            "One VM of \"watched\" really breaks, unseen: {broken}."
        ));
        watched.cloud.break_down(broken).await;
        story.tell("The way is open again.");
        watched.cloud.heal().await;
        paused.cloud.heal().await;
        story
            .until("whoever is broken is replaced", async || {
                ensure!(
                    !watched.cloud.names()?.contains(broken),
                    "{broken} is still there"
                );
                watched.all_run(COUNT)?;
                paused.all_run(COUNT)
            })
            .await?;
        watched.shoot.free_at(&UP).await?;
        ensure!(
            harmed() == BTreeSet::from([broken.clone()]),
            "harmed: {:?}\n{}",
            harmed(),
            watched.story().await
        );
        let replaced = paused.machines.ever(from_there, &[FAILED]);
        story.tell(&format!(
            "Healthy machines replaced: {} of {COUNT} in \"paused\", 0 in \"watched\", where the broken one alone was replaced.",
            replaced.len(),
        ));
        watched.end().await?;
        paused.end().await
    })
}
