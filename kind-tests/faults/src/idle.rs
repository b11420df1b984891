//! Between two rounds: all faults are over, everything must become idle, and what the processes use
//! is measured.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::{PATIENCE, eventually_within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::agents::Agents;
use crate::agents::replica::AgentReplica;
use crate::agents::vitals::Vitals;
use crate::life::Life;
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
/// More connections than any process has at one idle time more than at another.
const CONNECTIONS: usize = 12;

/// Waits until everything is idle, or finds that it is not.
pub async fn become_idle(world: &SoakWorld) {
    let begin = Instant::now();
    let mut quiet_since = begin;
    loop {
        let now = Instant::now();
        if let Some((place, why, story)) = world.oracle.why_not_idle(now) {
            quiet_since = now;
            if now - begin > LIMIT + world.oracle.snapshot(now).leeway {
                let (kind, text) = (ViolationKind::NotAtRest, format!("after {LIMIT:?}: {why}"));
                return world.oracle.violations.found(kind, place, &text, &story);
            }
        } else if now - quiet_since >= QUIET {
            return;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Measures what all processes use, and searches their logs and the servers' for what must not be
/// there.
pub async fn measure(life: &Life, usage: &mut MeasuredUsage) {
    let (world, oracle) = (&life.world, &life.world.oracle);
    // After a burst of writes its connections are kept for a minute and a half: what is not needed
    // goes with this.
    oracle.disturbances().seed.begin();
    world.seed.cut_connections();
    sleep(RECOVERY).await;
    oracle.disturbances().seed.end(Instant::now());
    let found = |kind, place: &str, text: &str| oracle.violations.found(kind, place, text, &[]);
    for replica in &life.agents.0 {
        replica.search_log();
        // One that ends meanwhile is judged where its end is noticed; the next one is measured
        // then.
        let measure = async || least(replica).await;
        let measured = eventually_within("it can be measured", HAND_OVER, measure).await;
        let failure = match measured {
            Ok(vitals) => {
                let first = vitals.used.clone();
                let known = usage
                    .entry(vitals.process)
                    .or_insert([first, vitals.used.clone()]);
                known[1] = vitals.used;
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
        for (what, used) in &mut least.used {
            *used = vitals.used[what].min(*used);
        }
    }
    Ok(least)
}

/// Asks each agent for a page, again and again, and keeps the connections.
pub async fn leak(agents: &Agents) -> Result<Vec<TcpStream>> {
    let mut held = Vec::new();
    for replica in &agents.0 {
        let address = replica.metrics_address()?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(&address).await?;
            stream.write_all(request.as_bytes()).await?;
            let answer = timeout(PATIENCE, stream.read_u8()).await;
            answer.context("no answer")??;
            held.push(stream);
        }
    }
    Ok(held)
}
