//! Rest: all faults are over, everything must come back, and what the processes use is measured.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::agents::Agents;
use crate::agents::vitals::Vitals;
use crate::ledger::Kind;
use crate::pace::UP_LIMIT;
use crate::shoot::Api;
use crate::world::{World, forbidden};

/// Within this time all must be at rest: the way back, and a hand-over before it.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it must last until it counts, so that flows, looks and deletions that were under way are over.
const QUIET: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(200);

/// What growth is none, between the first rest of a process and its last one. Of tasks and sockets a few may be under way at the
/// moment of measuring: a probe of each of some shoots, a page of metrics, a connection to the seed that is kept for a while after a
/// burst of writes.
const TASKS: u64 = 20;
const SOCKETS: u64 = 40;
const FILES: u64 = 45;
const THREADS: u64 = 2;

/// What a process used at its first rest and at its last.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    pub first: Vitals,
    pub last: Vitals,
    pub rests: u32,
}

/// The growth of all processes; by replica, which of its processes it was, and whether it led.
pub type Growths = std::collections::BTreeMap<(String, usize, bool), Growth>;

/// Whether some process that led was measured more than once, so that growth can be told.
pub fn comparable(growths: &Growths) -> bool {
    growths.iter().any(|((_, _, leads), growth)| *leads && growth.rests > 1)
}

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
            .or_else(|| world.weeds.unrest());
        match &unrest {
            None if now - *quiet_since.get_or_insert(now) >= QUIET => return now - begin,
            None => {}
            Some(_) => quiet_since = None,
        }
        if let Some(why) = unrest.filter(|_| now - begin > LIMIT.max(UP_LIMIT)) {
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
    for replica in agents.all() {
        replica.inspect();
        let vitals = match Vitals::read(replica).await {
            Ok(vitals) => vitals,
            Err(error) => {
                world.ledger.found(Kind::Process, &replica.name, format!("cannot be measured: {error:#}"), Vec::new());
                continue;
            }
        };
        if vitals.panics > 0 {
            world.ledger.found(Kind::Process, &replica.name, format!("{} panics", vitals.panics), Vec::new());
        }
        let key = (replica.name.clone(), vitals.serial, vitals.leads);
        let growth = growths.entry(key).or_insert(Growth { first: vitals, last: vitals, rests: 0 });
        (growth.last, growth.rests) = (vitals, growth.rests + 1);
    }
    forbidden(&world.ledger, "seed", &world.seed, false);
    for shoot in &world.shoots {
        if let Api::Memory(api) = &shoot.api {
            let open = api.connections().open;
            if open > 2 {
                world.ledger.found(Kind::Leak, &shoot.namespace, format!("{open} connections to its API server"), Vec::new());
            }
        }
    }
}

/// Whether a process has grown.
pub fn judge(world: &World, growths: &Growths) {
    for ((name, _, _), Growth { first, last, .. }) in growths {
        let memory = first.resident_kib + first.resident_kib / 5 + 8 * 1024;
        for (what, was, is, limit) in [
            ("tasks", first.tasks, last.tasks, first.tasks + TASKS),
            ("sockets", first.sockets, last.sockets, first.sockets + SOCKETS),
            ("file descriptors", first.files, last.files, first.files + FILES),
            ("threads", first.threads, last.threads, first.threads + THREADS),
            ("KiB of memory", first.resident_kib, last.resident_kib, memory),
        ] {
            if is > limit {
                world.ledger.found(Kind::Leak, name, format!("{was} {what} at its first rest, {is} at its last"), Vec::new());
            }
        }
    }
}
