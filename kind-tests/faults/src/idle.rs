//! Between two rounds: all faults are over, everything must become idle, and what the processes use
//! is measured.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::eventually_within;
use tokio::time::{Instant, sleep};

use crate::agents::Agents;
use crate::agents::replica::AgentReplica;
use crate::agents::vitals::Vitals;
use crate::oracle::growth::Growths;
use crate::oracle::ledger::ViolationKind;
use crate::pace::HAND_OVER;
use crate::shoot::ShootApi;
use crate::world::SoakWorld;

/// Within this time all must be idle: the way back, and a hand-over before it.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it must last until it counts, so that flows, looks and deletions that were under way
/// are over.
const QUIET: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(200);

/// After connections were cut, all that are needed are there again within this time (D-27: watches
/// wait up to 2 s).
const RECOVERY: Duration = Duration::from_secs(5);
/// How often a process is measured at an idle time, and how long lies between.
const MEASUREMENTS: u32 = 6;
const BETWEEN: Duration = Duration::from_millis(500);

/// Waits until everything is idle, or finds that it is not.
pub async fn become_idle(world: &SoakWorld) -> Duration {
    let begin = Instant::now();
    let mut quiet_since = begin;
    loop {
        let now = Instant::now();
        if let Some((place, why, story)) = world.oracle.why_not_idle(now) {
            quiet_since = now;
            if now - begin > LIMIT + world.oracle.reading(now).lag {
                world.oracle.ledger.found(
                    ViolationKind::NotAtRest,
                    place,
                    &format!("after {LIMIT:?}: {why}"),
                    &story,
                );
                return now - begin;
            }
        } else if now - quiet_since >= QUIET {
            return now - begin;
        }
        sleep(LOOK).await;
    }
}

/// Measures what all processes use, and looks into their logs and the servers' for what must not be
/// there.
pub async fn measure(world: &SoakWorld, agents: &Agents, growths: &mut Growths) {
    // After a burst of writes its connections are kept for a minute and a half: what is not needed
    // goes with this.
    world.oracle.disturbances.lock().seed.begin();
    world.seed.cut_connections();
    sleep(RECOVERY).await;
    world.oracle.disturbances.lock().seed.end(Instant::now());
    let found = |kind, place: &str, text: &str| world.oracle.ledger.found(kind, place, text, &[]);
    for replica in &agents.0 {
        replica.inspect();
        // One that ends meanwhile is judged where its end is noticed; the next one is measured
        // then.
        match eventually_within("it can be measured", HAND_OVER, async || {
            least(replica).await
        })
        .await
        {
            Ok(Vitals {
                process,
                panics,
                used,
            }) => {
                if panics > 0 {
                    found(
                        ViolationKind::ProcessFailures,
                        replica.name,
                        &format!("{panics} panics"),
                    );
                }
                growths.measured(process, used);
            }
            Err(error) => found(
                ViolationKind::ProcessFailures,
                replica.name,
                &format!("{error:#}"),
            ),
        }
    }
    world.oracle.forbidden(&world.seed);
    for shoot in &world.shoots {
        let ShootApi::Memory(api) = &*shoot.api else {
            continue;
        };
        // Of each prober one; for a moment also that of one that has just ended.
        let few = async || {
            let open = api.connections().open;
            ensure!(open <= 2, "{open} connections to its API server");
            Ok(())
        };
        if let Err(error) = eventually_within("one connection of each prober", RECOVERY, few).await
        {
            found(
                ViolationKind::Leaks,
                &shoot.namespace,
                &format!("{error:#}"),
            );
        }
    }
}

/// The least that a process uses of each thing, in some measurements. A leak stays, however long
/// one waits; what is under way just then does not.
async fn least(replica: &AgentReplica) -> Result<Vitals> {
    let mut least = Vitals::read(replica).await?;
    for _ in 1..MEASUREMENTS {
        sleep(BETWEEN).await;
        let vitals = Vitals::read(replica).await?;
        ensure!(
            vitals.process == least.process,
            "it is another one or has taken or lost the lead"
        );
        least.panics = vitals.panics;
        least
            .used
            .iter_mut()
            .for_each(|(what, used)| *used = vitals.used[what].min(*used));
    }
    Ok(least)
}
