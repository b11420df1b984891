//! The oracle: it observes all that happens on the seed at the moment at which it happens, and what
//! the nodes do, and judges both.

pub mod disturbances;
pub mod growth;
pub mod ledger;
pub mod record;
pub mod starvation;
mod truth;

use std::collections::BTreeMap;
use std::sync::Arc;

use faults::fences::Fences;
use faults::writes::ScaledDependent;
use parking_lot::Mutex;
use serde_json::Value;
use testbed::api::{Fault, MemoryApi, ObservedWrite, Record as Request, When};
use tokio::time::Instant;

use self::disturbances::{DisturbanceSnapshot, Disturbances};
use self::ledger::{ViolationKind, Violations};
use self::record::ShootRecord;
use self::record::judge::WatchdogWrite;
use crate::pace::ELECTION;

/// The shoots' records by namespace.
pub type Records = BTreeMap<String, Arc<Mutex<ShootRecord>>>;

/// All that is known, and what was found.
pub struct Oracle {
    pub ledger: Violations,
    pub disturbances: Mutex<Disturbances>,
    pub fences: Mutex<Fences>,
    records: Records,
}

impl Oracle {
    /// Nothing is wrong from this moment on.
    pub fn new(records: Records, now: Instant) -> Self {
        let ledger = Violations {
            start: now,
            pages: Mutex::default(),
        };
        Self {
            ledger,
            disturbances: Mutex::new(Disturbances::new(now)),
            fences: Mutex::default(),
            records,
        }
    }

    /// The disturbances as they are now.
    pub fn reading(&self, now: Instant) -> DisturbanceSnapshot {
        self.disturbances.lock().read(now)
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
                oracle.deletes(request, Instant::now());
            }
            false
        };
        seed.faults().add(When::matches(observe), Fault::Stall);
    }

    fn deletes(&self, request: &Request, now: Instant) {
        if let Some(text) =
            self.fences
                .lock()
                .leaderless(&request.user, ELECTION[1] + self.reading(now).lag, now)
        {
            let text = format!("{text}: {} {}", request.method, request.path);
            self.ledger.found(
                ViolationKind::LeaderlessWrites,
                &request.namespace,
                &text,
                &[],
            );
        }
    }

    /// Takes in a change of an object, and judges it when the watchdog made it.
    fn changed(&self, write: &ObservedWrite<'_>, now: Instant) {
        let text = |key: &str| write.after["metadata"][key].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let record = self.records.get(namespace).map(|record| record.lock());
        match (write.resource.plural.as_str(), write.request, record) {
            ("leases", Some(request), _) => self.fences.lock().lease(write.after, request, now),
            ("deployments", _, Some(mut record)) => {
                self.deployment(&mut record, namespace, name, write, now)
            }
            ("pods", request, Some(mut record)) => {
                if write.deleted && request.is_some() {
                    self.ledger.count("deletions");
                    if let Err(why) = record.plane.may_go(name, self.reading(now), now) {
                        self.ledger.found(
                            ViolationKind::WrongDeletions,
                            namespace,
                            &format!("pod {name}: {why}"),
                            &[],
                        );
                    }
                }
                record.plane.changed(name, write, now);
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
        if let Some(request) = write.request {
            self.ledger.count("writes");
            let (disturbances, arrived) = (self.reading(now), request.at.unwrap_or(now));
            let leaderless = self.fences.lock().leaderless(
                &request.user,
                ELECTION[1] + disturbances.lag,
                arrived,
            );
            if leaderless.is_some() {
                self.ledger
                    .count("writes to dependents that came from a prober without the lead");
            }
            let before = write.before.unwrap_or(&Value::Null);
            let write = WatchdogWrite {
                name,
                before,
                after: write.after,
                arrived,
                leaderless,
            };
            if let Some((kind, text)) = record.written(&write, disturbances, now) {
                self.ledger
                    .found(kind, namespace, &text, &record.story(self.ledger.start));
            }
        } else {
            let was = write.before.map(ScaledDependent::of).unwrap_or_default();
            if was
                != (ScaledDependent {
                    ready: was.ready,
                    ..is.clone()
                })
            {
                record.others_wrote(name, &was, &is, now);
            }
        }
        record.dependents.insert(name.to_owned(), is);
    }

    /// Looks at everything as it is now. To be called about ten times a second.
    pub fn tick(&self, now: Instant) {
        let disturbances = self.reading(now);
        for (namespace, record) in &self.records {
            let mut record = record.lock();
            let (findings, over) = record.tick(disturbances, now);
            for (kind, text) in findings {
                self.ledger
                    .found(kind, namespace, &text, &record.story(self.ledger.start));
            }
            if let Some(over) = over {
                self.ledger.count("outages");
                if over.clean {
                    self.ledger.count("outages that nothing else disturbed");
                    self.ledger
                        .pages
                        .lock()
                        .latencies
                        .extend(over.latency().map(|latency| latency.as_millis() as u64));
                    if over.met_in_time() {
                        self.ledger
                            .count("outages that nothing else disturbed, met in time");
                    }
                }
            }
        }
    }

    /// Counts requests that were forbidden.
    pub fn forbidden(&self, seed: &MemoryApi) {
        if let Some(request) = seed
            .requests()
            .all()
            .iter()
            .find(|request| request.status == Some(403))
        {
            self.ledger.found(
                ViolationKind::ForbiddenRequests,
                "seed",
                &format!("{request:?}"),
                &[],
            );
        }
        seed.requests().clear();
    }

    /// Where not everything is idle, why, and what happened there; none when all is.
    pub fn why_not_idle(&self, now: Instant) -> Option<(&str, String, Vec<String>)> {
        self.records.iter().find_map(|(namespace, record)| {
            let record = record.lock();
            Some((
                namespace.as_str(),
                record.why_not_idle(now)?,
                record.story(self.ledger.start),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_deletion_is_found_after_the_leaders_time() {
        let now = Instant::now();
        let oracle = Oracle::new(Records::new(), now);
        let by = |user: &str, after: f64| {
            let at = now + Duration::from_secs_f64(after);
            Request {
                user: user.into(),
                resource: "pods".into(),
                verb: "delete".into(),
                at: Some(at),
                ..Request::default()
            }
        };
        let deletes = |user: &str, after: f64| {
            let found = oracle.ledger.pages.lock().all();
            oracle.deletes(&by(user, after), now + Duration::from_secs_f64(after));
            oracle.ledger.pages.lock().all() - found
        };
        let lease = |holder: &str, user: &str, after: f64| {
            oracle.fences.lock().lease(
                &json!({"spec": {"holderIdentity": holder}}),
                &by(user, after),
                now,
            );
        };
        assert_eq!(deletes("a", 0.0), 1, "it never led");
        lease("x", "a", 1.0);
        assert_eq!(
            [("a", 0.9), ("a", 8.0), ("b", 2.0), ("a", 8.6)].map(|(user, at)| deletes(user, at)),
            [1, 0, 1, 1]
        );
        lease("", "a", 8.0);
        assert_eq!(deletes("a", 8.1), 1, "it has given the LeaseTruth up");
    }
}
