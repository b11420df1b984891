//! Whoever makes a write is killed before or after it, or cut off until all is over: one outage and
//! its end for each write of another one.

use std::time::Duration;

use anyhow::Result;
use api_server::{Fault, Record, When};
use faults::agents::running::{ProcessFault, Ways};
use faults::life::{Life, on_paused_clock};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How long the nodes are silent: more than it takes to expire leases, and to scale down.
const OUTAGE: Duration = Duration::from_secs(14);

/// What happens to whoever makes the fatal write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is killed, and the write is never applied.
    KilledBefore,
    /// It is killed, and the write is applied.
    KilledAfter,
    /// It is cut off, and the write arrives when all is over.
    CutOff,
}

/// Whether it may be the fatal one. Events and renewals come at any time, and lose nothing.
fn counts(record: &Record) -> bool {
    record.is_write() && matches!(record.verb.as_str(), "patch" | "delete")
}

/// Lives through an outage of the nodes and one of a Service; whether there was such a write.
async fn outage(write: usize, fate: Fate, replicas: usize) -> Result<bool> {
    let life = Life::begin(1, 1, replicas, None).await?;
    let late = CancellationToken::new();
    let fault = match fate {
        Fate::KilledBefore => Fault::Stall,
        Fate::KilledAfter => Fault::StallAfter,
        Fate::CutOff => Fault::Hold(late.clone()),
    };
    let faults = life.world.seed.faults();
    let fatal = faults.add(When::matches(counts).after(write as u64).once(), fault);
    let strike = async {
        faults.met(fatal, 1).await;
        let asked = life.world.seed.requests().all();
        let fatal = asked.iter().filter(|record| counts(record)).nth(write);
        let writer = &fatal.expect("it was met").user;
        let mut replicas = life.agents.0.iter();
        let replica = replicas
            .find(|replica| replica.name == writer)
            .expect("a replica");
        match fate {
            Fate::CutOff => replica.cut_off(Ways::All, 3 * OUTAGE).await,
            _ => replica.strike(ProcessFault::Killed),
        }
        late.cancel();
    };
    let story = async {
        for (steps, time) in [
            (&["cut"][..], OUTAGE),
            (&["service 0 down", "pods 0 crash", "heal"], OUTAGE / 4),
            (&["service 0 up"], OUTAGE),
            (&["pods 0 run"], Duration::ZERO),
        ] {
            for step in steps {
                life.world.shoots[0].act(step).expect("it can be done");
            }
            sleep(time).await;
        }
    };
    tokio::select! {
        biased;
        () = async { tokio::join!(strike, story); } => {}
        () = sleep(8 * OUTAGE) => {}
    }
    let hit = faults.hits(fatal) > 0;
    late.cancel();
    let world = life.end().await?;
    let totals = world.oracle.violations.totals();
    anyhow::ensure!(
        totals.found.is_empty(),
        "{write}, {fate:?}: {:#?}",
        totals.evidence
    );
    Ok(hit)
}

/// Tries each write; how many there are.
fn at_each_write(fates: &'static [Fate], replicas: usize) -> usize {
    let hit = |write, fate| {
        on_paused_clock(write as u64, async move || {
            outage(write, fate, replicas).await
        })
    };
    let all = (0..).take_while(|write| {
        fates
            .iter()
            .all(|fate| hit(*write, *fate).expect("no rule is broken"))
    });
    all.count()
}

#[test]
fn killed_at_any_write_nothing_is_lost() {
    let writes = at_each_write(&[Fate::KilledBefore, Fate::KilledAfter], 3);
    assert!(writes >= 8, "{writes}");
}

#[test]
fn killed_at_any_write_of_a_single_prober_nothing_is_lost() {
    let writes = at_each_write(&[Fate::KilledBefore, Fate::KilledAfter], 1);
    assert!(writes >= 8, "{writes}");
}

#[test]
fn cut_off_at_any_write_the_other_ends_the_work() {
    let writes = at_each_write(&[Fate::CutOff], 3);
    assert!(writes >= 8, "{writes}");
}
