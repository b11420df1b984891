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

use api_server::{MemoryApi, ObservedWrite};
use parking_lot::{Mutex, MutexGuard};
use testbed::objects::{metadata, name};
use tokio::time::Instant;

use self::disturbances::Disturbances;
use self::record::ShootRecord;
use self::record::judge::Violation;
use self::violations::{ViolationKind, Violations};
use crate::fences::Fences;
use crate::pace::RENEW_DEADLINE;
use crate::writes::ScaledDependent;

/// The shoots' records by namespace.
pub type Records = BTreeMap<String, Arc<Mutex<ShootRecord>>>;

/// All that is known, and what was found.
pub struct Oracle {
    pub violations: Violations,
    disturbances: Mutex<Disturbances>,
    fences: Mutex<Fences>,
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

    /// From now on it observes all that changes on the seed.
    pub fn observe(self: &Arc<Self>, seed: &MemoryApi) {
        let oracle = self.clone();
        seed.store()
            .observe(move |write| oracle.changed(write, Instant::now()));
    }

    /// How it is known that whoever wrote at a moment did not lead; none when it did.
    fn leaderless(&self, user: &str, at: Instant) -> Option<String> {
        let deadline = RENEW_DEADLINE + self.disturbances().leeway;
        self.fences.lock().leaderless(user, deadline, at)
    }

    /// Takes in a change of an object, and judges it when the watchdog made it.
    fn changed(&self, write: &ObservedWrite<'_>, now: Instant) {
        let (namespace, name) = (metadata(write.after, "namespace"), name(write.after));
        let record = self.records.get(namespace).map(|record| record.lock());
        match (write.resource.plural.as_str(), write.request, record) {
            ("leases", Some(request), _) => self.fences.lock().lease(write.after, request, now),
            ("deployments" | "stores", _, Some(mut record)) => {
                if let Some(found) = self.dependent(&mut record, name, write, now) {
                    self.found(namespace, &mut record, found, now);
                }
            }
            ("pods", request, Some(mut record)) => {
                if write.deleted && request.is_some() {
                    self.violations.count("deletions");
                    let judged = record.pods.may_be_deleted(name, &self.disturbances(), now);
                    if let Err(why) = judged {
                        let found = (ViolationKind::WrongDeletions, format!("pod {name}: {why}"));
                        self.found(namespace, &mut record, found, now);
                    }
                }
                record.pods.changed(name, write, now);
            }
            _ => {}
        }
    }

    fn dependent(
        &self,
        record: &mut ShootRecord,
        name: &str,
        write: &ObservedWrite<'_>,
        now: Instant,
    ) -> Option<Violation> {
        if write.deleted {
            record.dependents.remove(name);
            record.note(now, format!("{name} is deleted"));
            return None;
        }
        let Some(request) = write.request else {
            record.others_wrote(name, ScaledDependent::of(write.after), now);
            return None;
        };
        let arrived = request.at.unwrap_or(now);
        let leaderless = self.leaderless(&request.user, arrived);
        self.violations.count("writes");
        if leaderless.is_some() {
            self.violations.count("writes without the lead");
        }
        let writer = (arrived, leaderless);
        record.written(name, write, writer, &self.disturbances(), now)
    }

    /// Something was found at a shoot, of which this is known.
    fn found(
        &self,
        namespace: &str,
        shoot: &mut ShootRecord,
        (kind, text): Violation,
        now: Instant,
    ) {
        shoot.note(now, format!("ORACLE: {text}"));
        let story = shoot.story(self.violations.start).join("\n    ");
        let text = format!("{text}; what happened:\n    {story}");
        self.violations.found(kind, namespace, &text);
    }

    /// Judges everything as it is now. To be called about ten times a second.
    pub fn tick(&self, now: Instant) {
        for (namespace, record) in &self.records {
            let mut record = record.lock();
            let found = record.tick(&self.disturbances(), now);
            for found in found {
                self.found(namespace, &mut record, found, now);
            }
        }
    }

    /// Judges the requests since the last time: a forbidden one, and deletions without the lead, which
    /// are wrong also when they are refused.
    pub fn judge_requests(&self, seed: &MemoryApi) {
        for request in seed.requests().all() {
            let text = format!("{request:?}");
            if request.status == Some(403) {
                let kind = ViolationKind::ForbiddenRequests;
                self.violations.found(kind, "seed", &text);
            }
            if request.verb == "delete"
                && let Some(at) = request.at
                && let Some(why) = self.leaderless(&request.user, at)
            {
                let (kind, text) = (ViolationKind::LeaderlessWrites, format!("{why}: {text}"));
                self.violations.found(kind, &request.namespace, &text);
            }
        }
        seed.requests().clear();
    }

    /// Where not everything is idle, and why; none when all is.
    pub fn why_not_idle(&self, now: Instant) -> Option<String> {
        self.records.iter().find_map(|(namespace, record)| {
            let why = record.lock().why_not_idle(now)?;
            Some(format!("{namespace}: {why}"))
        })
    }
}
