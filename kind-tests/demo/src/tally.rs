//! What can only be counted at the end, mostly from the API servers' logs of requests.

use testbed::api::Record as Request;

use crate::record::{Record, What};
use crate::world::World;

/// From one second after the migration on nobody should ask that shoot anything: a removed probe ends within 1 s.
const REMOVAL: f64 = 1.0;

#[derive(Default)]
pub struct Tally {
    /// Writes to Deployments, by the replica that was killed and by the other one.
    pub writes_of_leader: usize,
    pub writes_of_other: usize,
    /// The Events that say that a leader did not act.
    pub did_not_act: Vec<String>,
    /// Requests to the migrated shoot before the migration, and from a moment after it on.
    pub moving_requests_before: usize,
    pub moving_requests_after: usize,
    /// Writes to these shoots or in their namespaces.
    pub moving_writes: usize,
    pub healthy_writes: usize,
    pub healthy_requests: u64,
    /// Requests that an API server refused for want of rights.
    pub refusals: usize,
    /// How the other replica ended when it was asked to: its exit code, or `None` if it had to be killed.
    pub exit_code: Option<i32>,
}

impl Tally {
    pub fn of(world: &World, record: &Record, exit_code: Option<i32>) -> Self {
        let [_, moving, healthy] = &world.shoots;
        let (seed, to_moving, to_healthy) = (world.seed.requests(), moving.api.requests(), healthy.api.requests());
        let events = world.seed.store().list("events", Some("garden"));
        let did_not_act = events.iter().filter(|event| event["reason"] == "LeaderDidNotAct");
        let migrated = record.at(What::Migrated).unwrap_or(f64::INFINITY);
        let at = |request: &Request| request.at.map_or(0.0, |at| world.seconds(at));
        let scales = |request: &Request| request.is_write() && request.resource.starts_with("deployments.apps");
        let writes_of = |name| seed.count(|request| scales(request) && request.user == name);
        let writes_in = |namespace: &str| seed.count(|request| request.is_write() && request.namespace == namespace);
        let apis = world.shoots.each_ref().map(|shoot| &shoot.api);
        let refused = |request: &Request| request.status == Some(403);
        Self {
            writes_of_leader: writes_of(record.leader()),
            writes_of_other: writes_of(record.other()),
            did_not_act: did_not_act.filter_map(|event| event["message"].as_str().map(str::to_owned)).collect(),
            moving_requests_before: to_moving.count(|request| at(request) < migrated),
            moving_requests_after: to_moving.count(|request| at(request) > migrated + REMOVAL),
            moving_writes: writes_in(&moving.namespace) + to_moving.count(Request::is_write),
            healthy_writes: writes_in(&healthy.namespace) + to_healthy.count(Request::is_write),
            healthy_requests: to_healthy.total(),
            refusals: apis.into_iter().chain([&world.seed]).map(|api| api.requests().count(refused)).sum(),
            exit_code,
        }
    }
}
