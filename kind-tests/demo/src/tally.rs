//! What can only be counted at the end, mostly from the API servers' logs of requests.

use api_server::{MemoryApi, Record as Request};

use crate::record::DemoRecord;
use crate::scene::{DEPENDENTS, DemoScene, initials};
use crate::world::{DemoShoot, DemoWorld};

/// From one second after the migration on nobody should ask that shoot anything: a removed probe
/// ends within 1 s.
const REMOVAL: f64 = 1.0;

/// Adds it to what has happened.
pub fn tally(record: &mut DemoRecord, world: &DemoWorld, scene: &DemoScene) {
    let [cut_off, moving, healthy] = &scene.shoots;
    let dependents = moving.dependents.iter();
    let moving_at_0 = dependents.filter(|one| one.is_free_at(0)).count();
    for (name, count) in [
        ("Unknown in cut-off", cut_off.unknown_nodes),
        ("Unknown in healthy", healthy.unknown_nodes),
        ("whole", usize::from(cut_off.is_whole())),
        ("moving at 0", moving_at_0),
    ] {
        record.note(name, count as f64);
    }
    let states = cut_off.deployments();
    let states = states.map(|(name, one)| format!("{name} {}/{} ready", one.replicas, one.ready));
    let states: Vec<_> = states.collect();
    record.words.extend([
        ("states", states.join(", ")),
        ("minutes", format!("{:.1}", scene.now / 60.0)),
    ]);
    tally_requests(record, world);
    tally_events(record, world);
}

fn tally_requests(record: &mut DemoRecord, world: &DemoWorld) {
    let [_, moving, healthy] = &world.shoots;
    let [seed, to_moving, to_healthy] =
        [&world.seed, &moving.api, &healthy.api].map(MemoryApi::requests);
    let migrated = record.number("migrated").unwrap_or(f64::INFINITY);
    let at = |request: &Request| request.at.map_or(0.0, |at| world.seconds(at));
    let writes_of = |name: &str| {
        let scales = |request: &Request| {
            request.is_write() && request.resource.starts_with("deployments.apps")
        };
        seed.count(|request| request.user == name && scales(request))
    };
    let writes_in = |shoot: &DemoShoot| {
        seed.count(|request| request.is_write() && request.namespace == shoot.namespace)
            + shoot.api.requests().count(Request::is_write)
    };
    let apis = world.shoots.iter().map(|shoot| &shoot.api);
    let refused = |request: &Request| request.status == Some(403);
    let refusals = apis
        .chain([&world.seed])
        .map(|api| api.requests().count(refused));
    for (name, count) in [
        ("writes of the leader", writes_of(record.word("leader"))),
        ("writes of the other", writes_of(record.word("other"))),
        (
            "requests before",
            to_moving.count(|request| at(request) < migrated),
        ),
        (
            "requests after",
            to_moving.count(|request| at(request) > migrated + REMOVAL),
        ),
        ("writes to moving", writes_in(moving)),
        ("writes to healthy", writes_in(healthy)),
        ("requests to healthy", to_healthy.count(|_| true)),
        ("refusals", refusals.sum()),
    ] {
        record.note(name, count as f64);
    }
}

/// The Events that say that a leader did not act, and of each Deployment those that name the
/// leader.
fn tally_events(record: &mut DemoRecord, world: &DemoWorld) {
    let mut events = world.seed.store().list("events", Some("garden"));
    events.retain(|event| event["reason"] == "LeaderDidNotAct");
    record.note("Events", events.len() as f64);
    let texts = || events.iter().filter_map(|event| event["message"].as_str());
    for (name, _) in DEPENDENTS {
        let names_leader = format!("/{name}: The leader ({}_", record.word("leader"));
        let count = texts().filter(|text| text.contains(&names_leader)).count();
        record.note(format!("Events of {}", initials(name)), count as f64);
    }
    let last = texts().next_back().map(|text| ("Event", text.to_owned()));
    record.words.extend(last);
}
