//! Rest: all faults are over, everything must come back, and what the processes use is measured.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};

use crate::agents::Agents;
use crate::agents::replica::Replica;
use crate::agents::vitals::Vitals;
use crate::disturbances::Disturbance;
use crate::growth::{Growths, rested};
use crate::ledger::Kind;
use crate::pace::{HAND_OVER, UP_LIMIT};
use crate::shoot::Api;
use crate::world::{World, forbidden};

/// Within this time all must be at rest: the way back, and a hand-over before it.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it must last until it counts, so that flows, looks and deletions that were under way are over.
const QUIET: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(200);

/// After connections were cut, all that are needed are there again within this time (D-27: watches wait up to 2 s).
const RECOVERY: Duration = Duration::from_secs(5);
/// How often a process is measured at a rest, and how long lies between.
const MEASUREMENTS: u32 = 6;
const BETWEEN: Duration = Duration::from_millis(500);

/// Waits until everything is back at rest, or finds that it is not.
pub async fn come_to_rest(world: &World) -> Duration {
    let begin = Instant::now();
    let mut quiet_since: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let unrest = world
            .shoots
            .iter()
            .find_map(|shoot| {
                let record = shoot.record();
                record.unrest(now).map(|why| format!("{}: {why}", record.namespace))
            })
            .or_else(|| world.weeder_oracle.unrest());
        match &unrest {
            None if now - *quiet_since.get_or_insert(now) >= QUIET => return now - begin,
            None => {}
            Some(_) => quiet_since = None,
        }
        if let Some(why) = unrest.filter(|_| now - begin > LIMIT.max(UP_LIMIT) + world.disturbances.read(now).lag) {
            let story = world.shoots.iter().find(|shoot| why.starts_with(&shoot.namespace));
            let story = story.map(|shoot| shoot.record().story(world.ledger.start)).unwrap_or_default();
            world.ledger.found(Kind::Unrest, "rest", format!("after {LIMIT:?}: {why}"), story);
            return now - begin;
        }
        sleep(LOOK).await;
    }
}

/// Measures what all processes use, and looks into their logs and the servers' for what must not be there.
pub async fn measure(world: &World, agents: &Arc<Agents>, growths: &mut Growths) {
    // After a burst of writes its connections are kept for a minute and a half: what is not needed goes with this.
    world.disturbances.seed(Disturbance::begin);
    world.seed.cut_connections();
    sleep(RECOVERY).await;
    world.disturbances.seed(|disturbance| disturbance.end(Instant::now()));
    for replica in agents.all() {
        replica.inspect();
        match least(replica).await {
            Ok(vitals) if vitals.panics > 0 => {
                world.ledger.found(Kind::Process, &replica.name, format!("{} panics", vitals.panics), Vec::new());
            }
            Ok(vitals) => rested(growths, &replica.name, vitals),
            Err(error) => {
                world.ledger.found(Kind::Process, &replica.name, format!("cannot be measured: {error:#}"), Vec::new());
            }
        }
    }
    forbidden(&world.ledger, "seed", &world.seed, false);
    for shoot in &world.shoots {
        if let Api::Memory(api) = &*shoot.api {
            let open = api.connections().open;
            if open > 2 {
                world.ledger.found(Kind::Leak, &shoot.namespace, format!("{open} connections to its API server"), Vec::new());
            }
        }
    }
}

/// The least that a process uses of each thing, in some measurements.
///
/// One that ends meanwhile is judged where its end is noticed; the next one is measured then.
async fn least(replica: &Replica) -> Result<Vitals> {
    let begin = Instant::now();
    loop {
        match measurements(replica).await {
            Err(_) if begin.elapsed() < HAND_OVER => sleep(BETWEEN).await,
            done => return done,
        }
    }
}

async fn measurements(replica: &Replica) -> Result<Vitals> {
    let mut least = Vitals::read(replica).await?;
    for _ in 1..MEASUREMENTS {
        sleep(BETWEEN).await;
        let vitals = Vitals::read(replica).await?;
        ensure!((vitals.serial, vitals.leads) == (least.serial, least.leads), "it is another one or has taken or lost the lead");
        least = least.least(vitals);
    }
    Ok(least)
}

/// Finds what has grown.
pub fn judge(world: &World, growths: &Growths) {
    for ((name, ..), growth) in growths {
        for told in growth.judge() {
            world.ledger.found(Kind::Leak, name, told, Vec::new());
        }
    }
}
