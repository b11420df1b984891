//! machine-controller-manager's health clock: it is the time since the Machine was found unhealthy,
//! and does not stop while machine-controller-manager is at 0.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::own_scenario;
use testbed::shoot::MCM;
use tokio::time::Instant;

use crate::journal::{FAILED, UNKNOWN};
use crate::story::MachineStory;
use crate::world::{DOWN, MachineWorld, UP};

const COUNT: usize = 5;
/// Long enough that machine-controller-manager's first look at its end, a minute after the one at
/// its beginning, comes after the outage has begun.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn unknown_before_is_given_up_after() -> Result<()> {
    own_scenario("needs control planes of the testbed's own", async |bed| {
        let world = MachineWorld::create(bed, "unknown", COUNT, HEALTH_TIMEOUT).await?;
        let (all, begin) = (world.names(), world.machines.steps().len());
        let mut names = all.iter();
        let (returning, broken) = (
            names.next().context("no machine")?,
            names.next().context("no other machine")?,
        );
        let mut story = MachineStory::begin([("unknown", &world)]);
        story.tell("Two of five nodes are silent: no outage.");
        world.cloud.break_down(returning).await;
        world.cloud.break_down(broken).await;
        let unknown = |machine: &str| {
            let phase = world.machines.phases().remove(machine);
            ensure!(phase.as_deref() == Some(UNKNOWN), "{machine}: {phase:?}");
            world.machines.since(machine, UNKNOWN).context("never")
        };
        story
            .until("both are Unknown", async || {
                unknown(returning)?;
                unknown(broken).map(drop)
            })
            .await?;
        let silent = BTreeSet::from([returning.clone(), broken.clone()]);
        ensure!(
            world.machines.ever(begin, &[UNKNOWN]) == silent,
            "{:?}",
            world.machines.phases()
        );

        story.tell("The way of all nodes is cut.");
        world.cloud.cut().await;
        world.shoot.held_down(&DOWN).await?;
        story
            .until("the health time-out is over for both", async || {
                for machine in [returning, broken] {
                    let age = unknown(machine)?.elapsed();
                    ensure!(age > HEALTH_TIMEOUT, "{machine}: {age:?}");
                }
                Ok(())
            })
            .await?;

        story.tell(&format!(
            "The way is open again. {broken} stays silent, {returning} does not."
        ));
        world.cloud.mend(returning).await;
        world.cloud.heal().await;
        story
            .until("the one that stays silent is marked Failed", async || {
                ensure!(
                    world.machines.ever(0, &[FAILED]).contains(broken),
                    "{:?}",
                    world.machines.phases()
                );
                Ok(())
            })
            .await?;
        let (back, given_up) = (
            returned(&world)?,
            world
                .machines
                .since(broken, FAILED)
                .context("not marked Failed")?,
        );
        let after = given_up.saturating_duration_since(back);
        story.tell(&format!("{broken} was marked Failed {after:.1?} after {MCM} was scaled up; its time-out is {HEALTH_TIMEOUT:?}."));
        // Half of it: if the clock had begun again, it would have been all of it.
        ensure!(
            after < HEALTH_TIMEOUT / 2,
            "{after:?}\n{}",
            world.story().await
        );
        story
            .until("it is replaced, and all are healthy", async || {
                ensure!(
                    !world.cloud.names()?.contains(broken),
                    "{broken} is still there"
                );
                world.all_run(COUNT)
            })
            .await?;
        world.shoot.free_at(&UP).await?;
        let failed = world.machines.ever(0, &[FAILED]);
        ensure!(
            failed.len() == 1,
            "marked Failed: {failed:?}\n{}",
            world.story().await
        );
        world.end().await
    })
}

/// When machine-controller-manager was scaled up last.
fn returned(world: &MachineWorld) -> Result<Instant> {
    let history = world.shoot.history();
    let mut states = history.iter().filter(|entry| entry.name == MCM).rev();
    let mut last = states.next().context("no machine-controller-manager")?;
    for entry in
        states.take_while(|entry| entry.state.as_ref().is_some_and(|state| state.replicas > 0))
    {
        last = entry;
    }
    Ok(last.at)
}
