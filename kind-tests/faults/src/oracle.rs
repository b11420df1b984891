//! The oracle: it observes every write on the seed at the moment at which it is made, and what the
//! nodes do, and judges both.

pub mod disturbances;
pub mod leaks;
pub mod record;
mod truth;
pub mod violations;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_server::{Fault, MemoryApi, ObservedWrite, Record as Request, When};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use testbed::objects::{metadata, name};
use tokio::time::Instant;

use self::disturbances::{DisturbanceSnapshot, Disturbances};
use self::record::ShootRecord;
use self::record::judge::{Violation, WatchdogWrite};
use self::violations::{ViolationKind, Violations};
use crate::fences::Fences;
use crate::pace::ELECTION;
use crate::writes::ScaledDependent;

/// The shoots' records by namespace.
pub type Records = BTreeMap<String, Arc<Mutex<ShootRecord>>>;

/// All that is known, and what was found.
pub struct Oracle {
    pub violations: Violations,
    disturbances: Mutex<Disturbances>,
    pub fences: Mutex<Fences>,
    records: Records,
}

impl Oracle {
    /// Nothing is wrong from this moment on.
    pub fn new(records: Records, leeway: Duration, now: Instant) -> Self {
        Self {
            violations: Violations::new(now),
            disturbances: Mutex::new(Disturbances::new(now, leeway)),
            fences: Mutex::default(),
            records,
        }
    }

    pub fn disturbances(&self) -> MutexGuard<'_, Disturbances> {
        self.disturbances.lock()
    }

    /// The disturbances as they are now.
    pub fn snapshot(&self, now: Instant) -> DisturbanceSnapshot {
        self.disturbances().at(now)
    }

    /// From now on it observes all that happens on the seed.
    pub fn observe(self: &Arc<Self>, seed: &MemoryApi) {
        let oracle = self.clone();
        seed.store()
            .observe(move |write| oracle.changed(write, Instant::now()));
        // A script line that no request meets, but that observes all of them: a deletion is wrong
        // also when it is refused.
        let oracle = self.clone();
        let observe = move |request: &Request| {
            if request.is_write() && request.resource == "pods" {
                oracle.judge_deletion(request, Instant::now());
            }
            false
        };
        seed.faults().add(When::matches(observe), Fault::Stall);
    }

    /// How it is known that whoever wrote at a moment did not lead; none when it did.
    fn leaderless(&self, user: &str, at: Instant, now: Instant) -> Option<String> {
        let deadline = ELECTION[1] + self.snapshot(now).leeway;
        self.fences.lock().leaderless(user, deadline, at)
    }

    fn judge_deletion(&self, request: &Request, now: Instant) {
        if let Some(text) = self.leaderless(&request.user, now, now) {
            let text = format!("{text}: {} {}", request.method, request.path);
            let kind = ViolationKind::LeaderlessWrites;
            self.violations.found(kind, &request.namespace, &text, &[]);
        }
    }

    /// Takes in a change of an object, and judges it when the watchdog made it.
    fn changed(&self, write: &ObservedWrite<'_>, now: Instant) {
        let (namespace, name) = (metadata(write.after, "namespace"), name(write.after));
        let record = self.records.get(namespace).map(|record| record.lock());
        match (write.resource.plural.as_str(), write.request, record) {
            ("leases", Some(request), _) => self.fences.lock().lease(write.after, request, now),
            ("deployments" | "stores", _, Some(mut record)) => {
                self.deployment(&mut record, namespace, name, write, now)
            }
            ("pods", request, Some(mut record)) => {
                if write.deleted && request.is_some() {
                    self.violations.count("deletions");
                    if let Err(why) = record.pods.may_be_deleted(name, self.snapshot(now), now) {
                        let (kind, text) =
                            (ViolationKind::WrongDeletions, format!("pod {name}: {why}"));
                        self.violations.found(kind, namespace, &text, &[]);
                    }
                }
                record.pods.changed(name, write, now);
            }
            _ => {}
        }
    }

    fn deployment(
        &self,
        record: &mut ShootRecord,
        namespace: &str,
        name: &str,
        write: &ObservedWrite<'_>,
        now: Instant,
    ) {
        if write.deleted {
            record.dependents.remove(name);
            return record.note(now, format!("{name} is deleted"));
        }
        let is = ScaledDependent::of(write.after);
        let Some(request) = write.request else {
            return record.others_wrote(name, is, now);
        };
        self.violations.count("writes");
        let arrived = request.at.unwrap_or(now);
        let leaderless = self.leaderless(&request.user, arrived, now);
        if leaderless.is_some() {
            self.violations
                .count("writes to dependents that came from a prober without the lead");
        }
        let write = WatchdogWrite {
            name,
            before: write.before.unwrap_or(&Value::Null),
            after: write.after,
            arrived,
            leaderless,
        };
        if let Some(found) = record.written(&write, self.snapshot(now), now) {
            self.found(namespace, record, found);
        }
    }

    /// Something was found at a shoot, of which this is known.
    fn found(&self, namespace: &str, shoot: &ShootRecord, (kind, text): Violation) {
        let story = shoot.story(self.violations.start);
        self.violations.found(kind, namespace, &text, &story);
    }

    /// Judges everything as it is now. To be called about ten times a second.
    pub fn tick(&self, now: Instant) {
        let disturbances = self.snapshot(now);
        for (namespace, record) in &self.records {
            let mut record = record.lock();
            let (found, is_over) = record.tick(disturbances, now);
            for found in found {
                self.found(namespace, &record, found);
            }
            if is_over {
                self.violations.count("outages");
            }
        }
    }

    /// Counts requests that were forbidden.
    pub fn forbidden(&self, seed: &MemoryApi) {
        let requests = seed.requests().all();
        if let Some(request) = requests.iter().find(|request| request.status == Some(403)) {
            let (kind, text) = (ViolationKind::ForbiddenRequests, format!("{request:?}"));
            self.violations.found(kind, "seed", &text, &[]);
        }
        seed.requests().clear();
    }

    /// Where not everything is idle, why, and what happened there; none when all is.
    pub fn why_not_idle(&self, now: Instant) -> Option<(&str, String, Vec<String>)> {
        self.records.iter().find_map(|(namespace, record)| {
            let record = record.lock();
            let why = record.why_not_idle(now)?;
            Some((namespace.as_str(), why, record.story(self.violations.start)))
        })
    }
}
