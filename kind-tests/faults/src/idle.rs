//! Between two rounds: all faults are over, everything must become idle, and what the processes use
//! is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use testbed::eventually_within;
use testbed::page::metrics;
use testbed::usage::status;
use tokio::time::{Instant, sleep};

use crate::agents::replica::AgentReplica;
use crate::life::Life;
use crate::oracle::leaks::{MeasuredUsage, ProcessKey, Used};
use crate::oracle::violations::ViolationKind;
use crate::world::SoakWorld;

/// Within this time all must be idle: the way back, and a hand-over before it.
const LIMIT: Duration = Duration::from_secs(60);
/// Flows, probes and deletions that were under way are over after this time.
const QUIET: Duration = Duration::from_secs(4);

/// After connections were cut, all that are needed are there again within this time (D-27: watches
/// wait up to 2 s).
const RECOVERY: Duration = Duration::from_secs(5);
/// How often a process is measured at an idle time, and how long lies between.
const MEASUREMENTS: u32 = 6;
const BETWEEN: Duration = Duration::from_millis(500);

/// Waits until everything is idle, or finds that it is not.
pub async fn become_idle(world: &SoakWorld) {
    let idle = async || {
        let why_not = world.oracle.why_not_idle(Instant::now());
        why_not.map_or(Ok(()), |why_not| Err(anyhow!(why_not)))
    };
    if let Err(error) = eventually_within("all is idle", LIMIT, idle).await {
        let (kind, text) = (ViolationKind::NotRestored, format!("{error:#}"));
        world.oracle.violations.found(kind, "seed", &text);
    }
    sleep(QUIET).await;
}

/// Measures what all processes use, and searches their logs and the servers' for what must not be
/// there.
pub async fn measure(life: &Life, usage: &mut MeasuredUsage) -> Result<()> {
    let (world, oracle) = (&life.world, &life.world.oracle);
    // After a burst of writes its connections are kept for a minute and a half: what is not needed
    // goes with this.
    oracle.disturbances().seed = Some(Instant::now() + RECOVERY);
    world.seed.cut_connections();
    sleep(RECOVERY).await;
    // The least that each uses in some measurements: a leak stays, however long one waits; what is
    // under way just then does not.
    let mut least = BTreeMap::<_, Used>::new();
    for _ in 0..MEASUREMENTS {
        sleep(BETWEEN).await;
        for replica in &life.agents.0 {
            // One that has just ended is measured the next time.
            let Ok((process, used)) = vitals(replica).await else {
                continue;
            };
            let least = least.entry(process).or_insert_with(|| used.clone());
            for (what, least) in least {
                *least = used[what].min(*least);
            }
        }
    }
    ensure!(least.len() >= life.agents.0.len(), "measured {least:?}");
    for (process, used) in least {
        let first = used.clone();
        usage.entry(process).or_insert([first, Used::new()])[1] = used;
    }
    life.agents
        .0
        .iter()
        .for_each(|replica| replica.search_log());
    oracle.judge_requests(&world.seed);
    Ok(())
}

/// The process that runs, and what it uses at this moment.
async fn vitals(replica: &AgentReplica) -> Result<(ProcessKey, Used)> {
    let id = replica.id().context("it does not run")?;
    let values = metrics(&replica.log()).await?.values;
    let tasks = values.get("dwd_tasks").context("no tasks")?;
    let files = std::fs::read_dir(format!("/proc/{id}/fd"))?.count();
    let used = [
        ("tasks", *tasks as u64),
        ("files", files as u64),
        ("resident_kib", status(id, "VmRSS")?),
    ];
    let leads = values.iter().any(|(series, value)| {
        series.starts_with("leader_election_master_status") && *value == 1.0
    });
    Ok(((replica.name, replica.serial(), leads), used.into()))
}
