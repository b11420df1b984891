//! Between two rounds: all faults are over, everything must become idle, and what the processes use
//! is measured.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::eventually_within;
use tokio::time::{Instant, sleep};

use crate::agents::Agents;
use crate::agents::replica::AgentReplica;
use crate::agents::vitals::Vitals;
use crate::oracle::leaks::MeasuredUsage;
use crate::oracle::violations::ViolationKind;
use crate::pace::HAND_OVER;
use crate::world::SoakWorld;

/// Within this time all must be idle: the way back, and a hand-over before it.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it must last until it counts, so that flows, probes and deletions that were under way
/// are over.
const QUIET: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

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
            if now - begin > LIMIT + world.oracle.snapshot(now).lag {
                world.oracle.violations.found(
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
        sleep(POLL_INTERVAL).await;
    }
}

/// Measures what all processes use, and searches their logs and the servers' for what must not be
/// there.
pub async fn measure(world: &SoakWorld, agents: &Agents, usage: &mut MeasuredUsage) {
    let oracle = &world.oracle;
    // After a burst of writes its connections are kept for a minute and a half: what is not needed
    // goes with this.
    oracle.disturbances().seed.begin();
    world.seed.cut_connections();
    sleep(RECOVERY).await;
    oracle.disturbances().seed.end(Instant::now());
    let found = |kind, place: &str, text: &str| oracle.violations.found(kind, place, text, &[]);
    for replica in &agents.0 {
        replica.search_log();
        // One that ends meanwhile is judged where its end is noticed; the next one is measured
        // then.
        let measure = async || least(replica).await;
        let measured = eventually_within("it can be measured", HAND_OVER, measure).await;
        let failure = match measured {
            Ok(vitals) => {
                usage.add(vitals.process, vitals.used);
                (vitals.panics > 0).then(|| format!("{} panics", vitals.panics))
            }
            Err(error) => Some(format!("{error:#}")),
        };
        if let Some(text) = failure {
            found(ViolationKind::ProcessFailures, replica.name, &text);
        }
    }
    oracle.forbidden(&world.seed);
    for shoot in &world.shoots {
        // Of each prober one; for a moment also that of one that has just ended.
        let few = async || {
            let open = shoot.api.connections().open;
            ensure!(open <= 2, "{open} connections to its API server");
            Ok(())
        };
        let few = eventually_within("one connection of each prober", RECOVERY, few);
        if let Err(error) = few.await {
            let text = format!("{error:#}");
            found(ViolationKind::Leaks, &shoot.namespace, &text);
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
        for (what, used) in &mut least.used {
            *used = vitals.used[what].min(*used);
        }
    }
    Ok(least)
}
