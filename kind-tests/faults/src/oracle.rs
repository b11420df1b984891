//! The oracle: it observes all that happens on the seed at the moment at which it happens, and what the nodes do, and judges both.

pub mod disturbances;
pub mod fences;
pub mod growth;
pub mod ledger;
pub mod record;
pub mod starvation;
mod truth;
pub mod weeder;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use faults::lock;
use faults::writes::Dependent;
use serde_json::Value;
use testbed::api::{Fault, MemoryApi, Record as Request, Seen, Source, Store, When};
use tokio::time::Instant;

use self::disturbances::{Disturbances, Reading};
use self::fences::Fences;
use self::ledger::{Kind, Ledger};
use self::record::episode::{Episode, Met};
use self::record::{Arrival, Record};
use self::weeder::WeederOracle;

/// A clean outage is beyond doubt 0.25 s after the verdict is possible, and 0.4 s before the first node's end at worst. On a busy machine an
/// answer within this time is in time all the same.
const LATE: Duration = Duration::from_millis(1500);

/// The shoots' records by namespace.
pub type Records = BTreeMap<String, Arc<Mutex<Record>>>;

/// All that is known, and what was found.
pub struct Oracle {
    pub ledger: Ledger,
    pub disturbances: Mutex<Disturbances>,
    pub fences: Mutex<Fences>,
    pub weeder: WeederOracle,
    records: Records,
}

impl Oracle {
    /// Nothing is wrong from this moment on.
    pub fn new(seed: Store, records: Records, now: Instant) -> Self {
        Self {
            ledger: Ledger::new(now),
            disturbances: Mutex::new(Disturbances::new(now)),
            fences: Mutex::default(),
            weeder: WeederOracle::new(seed, records.keys().cloned(), now),
            records,
        }
    }

    /// The disturbances as they are now.
    pub fn reading(&self, now: Instant) -> Reading {
        lock(&self.disturbances).read(now)
    }

    /// From now on it observes all that happens on the seed.
    pub fn observe(self: &Arc<Self>, seed: &MemoryApi) {
        let oracle = self.clone();
        seed.store().observe(move |write| match write.resource.plural.as_str() {
            "deployments" => oracle.deployment(write),
            "pods" => oracle.pod(write),
            "leases" => lock(&oracle.fences).lease(write.after, write.source),
            _ => {}
        });
        // A script line that no request meets, but that observes all of them.
        let oracle = self.clone();
        let observe = move |request: &Request| {
            if request.is_write() {
                oracle.write_arrives(request, Instant::now());
            }
            false
        };
        seed.faults().add(When::matches(observe), Fault::Stall);
    }

    fn write_arrives(&self, request: &Request, now: Instant) {
        if request.resource.starts_with("leases") {
            return lock(&self.fences).arrives(&request.user, now);
        }
        let leaderless = lock(&self.fences).leaderless(&request.user, self.reading(now), now);
        if request.resource == "pods"
            && let Some(told) = leaderless
        {
            let told = format!("{told}: {} {}", request.method, request.path);
            self.ledger.found(Kind::Leaderless, &request.namespace, told, Vec::new());
        } else if request.resource.starts_with("deployments.apps")
            && let Some(record) = self.records.get(&request.namespace)
        {
            if leaderless.is_some() {
                self.ledger.count("writes to dependents that came from a prober without the lead");
            }
            lock(record).arrived(Arrival { at: now, name: request.name.clone(), leaderless });
        }
    }

    /// Takes in a change of a dependent, and judges it when the watchdog made it.
    fn deployment(&self, write: &Seen<'_>) {
        let (namespace, name) = place(write.after);
        let Some(record) = self.records.get(namespace) else { return };
        let (mut record, now) = (lock(record), Instant::now());
        if write.deleted {
            record.dependents.remove(name);
            return record.note(now, format!("{name} is deleted"));
        }
        let is = Dependent::of(write.after);
        if write.source == Source::Client {
            self.ledger.count("writes");
            let before = write.before.unwrap_or(&Value::Null);
            if let Some((kind, told)) = record.written(name, before, write.after, self.reading(now), now) {
                self.ledger.found(kind, namespace, told, record.story(self.ledger.start));
            }
        } else {
            let was = write.before.map(Dependent::of).unwrap_or_default();
            if was != (Dependent { ready: was.ready, ..is.clone() }) {
                record.others_wrote(name, &was, &is, now);
            }
        }
        record.dependents.insert(name.to_owned(), is);
    }

    fn pod(&self, write: &Seen<'_>) {
        let (namespace, name) = place(write.after);
        let now = Instant::now();
        if write.deleted && write.source == Source::Client {
            self.ledger.count("deletions");
            if let Err(why) = self.weeder.may_go(namespace, name, self.reading(now), now) {
                self.ledger.found(Kind::WrongDeletion, namespace, format!("pod {name}: {why}"), Vec::new());
            }
        }
        self.weeder.changed(namespace, name, write, now);
    }

    /// Looks at everything as it is now. To be called about ten times a second.
    pub fn tick(&self, now: Instant) {
        let disturbances = self.reading(now);
        for record in self.records.values() {
            let mut record = lock(record);
            let tick = record.tick(disturbances, now);
            let late = tick.over.and_then(|over| self.outage_over(&over));
            for (kind, told) in tick.findings.into_iter().chain(late) {
                self.ledger.found(kind, &record.namespace, told, record.story(self.ledger.start));
            }
        }
        self.weeder.tick(&self.ledger, disturbances, now);
    }

    /// Counts an outage that is over, and finds whether it was met too late.
    fn outage_over(&self, over: &Episode) -> Option<(Kind, String)> {
        self.ledger.count("outages");
        let met = over.met();
        self.ledger.count(match (met, over.clean) {
            (Met::InTime, true) => "outages, clean, met in time",
            (Met::Late, true) => "outages, clean, met late",
            (Met::Unknowable, true) => "outages, clean, over before they had to be met",
            (Met::InTime, false) => "outages, disturbed, met in time",
            (Met::Late, false) => "outages, disturbed, met later",
            (Met::Unknowable, false) => "outages, disturbed, over before they could be met",
        });
        let latency = over.latency().filter(|_| over.clean)?;
        self.ledger.answered(latency);
        (met == Met::Late && latency > LATE + over.lag).then(|| {
            let [latency, lag] = [latency, over.lag].map(|time| time.as_secs_f64());
            let told = format!("all was at 0 {latency:.1} s after the outage was beyond doubt, on a machine {lag:.1} s late");
            (Kind::TooLate, told)
        })
    }

    /// Counts requests that were forbidden.
    pub fn forbidden(&self, seed: &MemoryApi) {
        if let Some(request) = seed.requests().all().iter().find(|request| request.status == Some(403)) {
            self.ledger.found(Kind::Forbidden, "seed", format!("{request:?}"), Vec::new());
        }
        seed.requests().clear();
    }

    /// Where not everything is idle, why, and what happened there; none when all is.
    pub fn why_not_idle(&self, now: Instant) -> Option<(String, String, Vec<String>)> {
        self.records.iter().find_map(|(namespace, record)| {
            let record = lock(record);
            let why = record.why_not_idle(now).or_else(|| self.weeder.why_not_idle(namespace))?;
            Some((namespace.clone(), why, record.story(self.ledger.start)))
        })
    }
}

/// The namespace and the name of an object.
fn place(object: &Value) -> (&str, &str) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testbed::api::Resource;

    use super::*;

    #[test]
    fn a_deletion_is_found_after_the_leaders_time() {
        let now = Instant::now();
        let oracle = Oracle::new(Store::new(Resource::built_in(), 4), Records::new(), now);
        let arrives = |user: &str, resource: &str, after: f64| {
            let request = Request { user: user.into(), resource: resource.into(), verb: "patch".into(), ..Request::default() };
            let found = oracle.ledger.total(Kind::Leaderless);
            oracle.write_arrives(&request, now + Duration::from_secs_f64(after));
            oracle.ledger.total(Kind::Leaderless) - found
        };
        let lease = |holder: &str| lock(&oracle.fences).lease(&json!({"spec": {"holderIdentity": holder}}), Source::Client);
        assert_eq!(arrives("a", "pods", 0.0), 1, "it never led");
        assert_eq!(arrives("a", "leases.coordination.k8s.io", 0.0), 0);
        assert_eq!(arrives("a", "pods", 0.0), 1, "its request is under way");
        lease("x");
        assert_eq!((arrives("a", "pods", 7.0), arrives("b", "pods", 1.0), arrives("a", "pods", 7.6)), (0, 1, 1));
        let leader = |name, after| lock(&oracle.fences).leader(name, now + Duration::from_secs(after));
        assert_eq!((leader("a", 6).as_deref(), leader("b", 6), leader("a", 8)), (Some("a"), None, None));
        arrives("a", "leases.coordination.k8s.io", 8.0);
        lease("");
        assert_eq!(arrives("a", "pods", 8.1), 1, "it has given the Lease up");
    }
}
