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
    tally_requests(record, world);
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
    let states: Vec<String> = states.map(|(name, one)| format!("{name} {one}")).collect();
    record.words.extend([
        ("states", states.join(", ")),
        ("minutes", format!("{:.1}", scene.now / 60.0)),
    ]);
    let events = world.seed.store().list("events", Some("garden"));
    let did_not_act = events
        .iter()
        .filter(|event| event["reason"] == "LeaderDidNotAct");
    let messages = did_not_act.filter_map(|event| event["message"].as_str());
    tally_events(record, &messages.collect::<Vec<_>>());
}

fn tally_requests(record: &mut DemoRecord, world: &DemoWorld) {
    let [_, moving, healthy] = &world.shoots;
    let [seed, to_moving, to_healthy] =
        [&world.seed, &moving.api, &healthy.api].map(MemoryApi::requests);
    let migrated = record.number("migrated").unwrap_or(f64::INFINITY);
    let at = |request: &Request| request.at.map_or(0.0, |at| world.seconds(at));
    let scales =
        |request: &Request| request.is_write() && request.resource.starts_with("deployments.apps");
    let writes_of = |name: &str| seed.count(|request| scales(request) && request.user == name);
    let writes_in = |shoot: &DemoShoot| {
        seed.count(|request| request.is_write() && request.namespace == shoot.namespace)
            + shoot.api.requests().count(Request::is_write)
    };
    let before = to_moving.count(|request| at(request) < migrated);
    let after = to_moving.count(|request| at(request) > migrated + REMOVAL);
    let apis = world.shoots.iter().map(|shoot| &shoot.api);
    let refused = |request: &Request| request.status == Some(403);
    let refusals = apis
        .chain([&world.seed])
        .map(|api| api.requests().count(refused));
    for (name, count) in [
        ("writes of the leader", writes_of(record.word("leader"))),
        ("writes of the other", writes_of(record.word("other"))),
        ("requests before", before),
        ("requests after", after),
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
fn tally_events(record: &mut DemoRecord, did_not_act: &[&str]) {
    record.note("Events", did_not_act.len() as f64);
    for (name, _) in DEPENDENTS {
        let names_leader = format!("/{name}: The leader ({}_", record.word("leader"));
        let events = did_not_act.iter();
        let count = events.filter(|text| text.contains(&names_leader)).count();
        record.note(format!("Events of {}", initials(name)), count as f64);
    }
    let last = did_not_act.last();
    record
        .words
        .extend(last.map(|text| ("Event", (*text).to_owned())));
}

#[cfg(test)]
mod tests {
    use testbed::gardener::{CA, KCM, MCM};

    use super::*;

    #[test]
    fn an_event_counts_for_its_deployment_if_it_names_the_leader() {
        let mut record = DemoRecord {
            words: [("leader", "prober-a".to_owned())].into(),
            ..DemoRecord::default()
        };
        let messages = [
            (KCM, "prober-a"),
            (MCM, "prober-b"),
            (CA, "prober-a"),
            (CA, "prober-a"),
        ]
        .map(|(name, leader)| {
            format!(
                "Deployment shoot--demo--cut-off/{name}: The leader ({leader}_0a1b) did not act"
            )
        });
        tally_events(&mut record, &messages.each_ref().map(String::as_str));
        let counts = ["Events", "Events of KCM", "Events of MCM", "Events of CA"]
            .map(|name| record.number(name));
        assert_eq!(
            (counts, record.word("Event")),
            ([4.0, 1.0, 0.0, 2.0].map(Some), messages[3].as_str())
        );
    }
}
