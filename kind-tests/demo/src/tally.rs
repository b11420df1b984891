//! What can only be counted at the end, mostly from the API servers' logs of requests.

use api_server::{MemoryApi, Record as Request};

use crate::record::DemoRecord;
use crate::scene::DemoScene;
use crate::world::DemoWorld;

/// Adds it to what has happened.
pub fn tally(record: &mut DemoRecord, world: &DemoWorld, scene: &DemoScene) {
    let [cut_off, healthy] = &scene.shoots;
    let states = cut_off.deployments();
    let states = states.map(|(name, one)| format!("{name} {}/{} ready", one.replicas, one.ready));
    let states: Vec<_> = states.collect();
    record.words.extend([
        ("states", states.join(", ")),
        ("minutes", format!("{:.1}", scene.now / 60.0)),
    ]);

    let mut events = world.seed.store().list("events", Some("garden"));
    let names_leader = format!(": The leader ({}_", record.word("leader"));
    events.retain(|event| {
        let text = event["message"].as_str().unwrap_or_default();
        event["reason"] == "LeaderDidNotAct" && text.contains(&names_leader)
    });
    let last = events.last().and_then(|event| event["message"].as_str());
    record.words.extend(last.map(|text| ("Event", text.into())));

    let to_seed = world.seed.requests();
    let to_healthy = world.shoots[1].api.requests();
    let scaled_by = |name: &str| {
        to_seed.count(|request| {
            let scales = request.is_write() && request.resource.starts_with("deployments.apps");
            scales && request.user == name
        })
    };
    let in_healthy =
        |request: &Request| request.is_write() && request.namespace == world.shoots[1].namespace;
    let apis = world.shoots.iter().map(|shoot| &shoot.api);
    let refused = |api: &MemoryApi| api.requests().count(|it| it.status == Some(403));
    for (name, count) in [
        ("Unknown in cut-off", cut_off.unknown_nodes),
        ("Unknown in healthy", healthy.unknown_nodes),
        ("whole", usize::from(cut_off.is_whole())),
        ("Events", events.len()),
        ("writes of the leader", scaled_by(record.word("leader"))),
        ("writes of the other", scaled_by(record.word("other"))),
        (
            "writes to healthy",
            to_seed.count(in_healthy) + to_healthy.count(Request::is_write),
        ),
        ("requests to healthy", to_healthy.count(|_| true)),
        ("refusals", apis.chain([&world.seed]).map(refused).sum()),
    ] {
        record.note(name, count as f64);
    }
}
