//! Whoever makes a write is killed before or after it, or cut off until all is over: one outage and
//! its end for each write of another one.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api_server::{Fault, Record, When};
use clap::Parser;
use faults::agents::running::CutOff;
use faults::life::{Life, on_paused_clock};
use faults::options::SoakOptions;
use nix::sys::signal::Signal;
use parking_lot::Mutex;
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

/// Lives through an outage of the nodes and one of a Service; whether there was such a write.
async fn outage(write: u64, fate: Fate, replicas: usize) -> Result<bool> {
    let options = SoakOptions::parse_from(["soak", "none", "--shoots=1", "--seed=1"]);
    let life = Life::begin(&options, replicas, None).await?;
    let late = CancellationToken::new();
    let sender = Arc::new(Mutex::new(String::new()));
    let user = sender.clone();
    let counts = move |record: &Record| {
        // Events and renewals come at any time, and lose nothing.
        let counts = record.is_write() && matches!(record.verb.as_str(), "patch" | "delete");
        if counts {
            user.lock().clone_from(&record.user);
        }
        counts
    };
    let fault = match fate {
        Fate::KilledBefore => Fault::Stall,
        Fate::KilledAfter => Fault::StallAfter,
        Fate::CutOff => Fault::Hold(late.clone()),
    };
    let faults = life.world.seed.faults();
    let fatal = faults.add(When::matches(counts).after(write).once(), fault);
    let strike = async {
        faults.met(fatal, 1).await;
        let name = sender.lock().clone();
        let replica = life.agents.0.iter().find(|replica| replica.name == name);
        let replica = replica.expect("a replica wrote");
        match fate {
            Fate::CutOff => replica.cut_off(CutOff::All, 3 * OUTAGE).await,
            _ => replica.signal(Signal::SIGKILL),
        }
        late.cancel();
    };
    let story = async {
        let shoot = &life.world.shoots[0];
        shoot.change_nodes("", |node| node.cut = true);
        sleep(OUTAGE).await;
        shoot.turn(0, false);
        shoot.crash(0, true);
        shoot.change_nodes("", |node| node.cut = false);
        sleep(OUTAGE / 4).await;
        shoot.turn(0, true);
        sleep(OUTAGE).await;
        shoot.crash(0, false);
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
fn at_each_write(fates: &'static [Fate], replicas: usize) -> u64 {
    let hit =
        |write, fate| on_paused_clock(write, async move || outage(write, fate, replicas).await);
    let all = (0..).take_while(|write| {
        fates
            .iter()
            .all(|fate| hit(*write, *fate).expect("no rule is broken"))
    });
    all.count() as u64
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
