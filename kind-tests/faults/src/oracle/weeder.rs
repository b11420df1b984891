//! What the weeder sees of the shoots' control planes: two Services each, and pods that crash-loop while the one that they need is
//! down; the stand-in for those who recreate deleted pods; and the oracle's judgement of what is deleted and what is not.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;
use faults::lock;
use faults::pods::{ROLE, pod, slice, status};
use serde_json::json;
use testbed::api::{Seen, Store};
use tokio::time::Instant;

use super::disturbances::Reading;
use super::ledger::{Kind, Ledger};
use crate::pace::{HAND_OVER, WINDOW};

/// The Services, each with the role of the pods that need it.
pub const SERVICES: [(&str, &str); 2] = [("etcd-main-client", "apiserver"), ("kube-apiserver", "controller-manager")];
/// How long a controller takes to recreate a pod.
const REMAKE: Duration = Duration::from_millis(300);
/// What a watch may be late by, and a DELETE that was under way.
const WAY: Duration = Duration::from_secs(2);
/// A first window opens up to a tenth of its length late.
const SPREAD: Duration = Duration::from_millis(1200);
/// A crash-looping pod whose Service has recovered is deleted within this time: at once, and 5 s for a busy machine.
const DELETED_WITHIN: Duration = Duration::from_secs(5);

struct Plane {
    /// Whether each Service is ready, and since when.
    services: [(bool, Instant); 2],
    pods: BTreeMap<String, Pod>,
    /// Services whose pods are to be recreated, and when.
    missing: Vec<(Instant, usize)>,
    serial: u32,
}

struct Pod {
    /// The Service that it needs; none for pods that must never be deleted.
    needs: Option<usize>,
    crashing_since: Option<Instant>,
    /// Until when it may have been seen crashing.
    crashed_until: Instant,
    told: bool,
}

/// All control planes.
pub struct WeederOracle {
    seed: Store,
    planes: HashMap<String, Mutex<Plane>>,
    /// When a weeder last started or applied another config: it opens a window for each ready Service then.
    started: Mutex<Instant>,
}

impl WeederOracle {
    /// Planes with nothing in them yet.
    pub fn new(seed: Store, namespaces: impl Iterator<Item = String>, now: Instant) -> Self {
        let plane = || Plane { services: [(true, now); 2], pods: BTreeMap::new(), missing: Vec::new(), serial: 0 };
        let planes = namespaces.map(|namespace| (namespace, Mutex::new(plane()))).collect();
        Self { seed, planes, started: Mutex::new(now) }
    }

    /// Makes the Services and pods, with everything ready.
    pub fn furnish(&self) -> Result<()> {
        for (namespace, plane) in &self.planes {
            for (service, (name, _)) in SERVICES.iter().enumerate() {
                self.seed.apply(slice(namespace, name, true))?;
                self.make(namespace, plane, service);
            }
            // Nobody would recreate this one (D-44), and no selector asks for that one.
            self.seed.create(pod(namespace, "bare", &json!({ROLE.0: ROLE.1, "role": "x"}), None, true))?;
            self.seed.create(pod(namespace, "other", &json!({"role": "x"}), Some("set"), true))?;
        }
        Ok(())
    }

    /// A weeder starts, leads, or applies another config.
    pub fn starts(&self) {
        *lock(&self.started) = Instant::now();
    }

    /// A Service becomes ready or not. It counts as ready for as long as it may be seen so.
    pub fn turn(&self, namespace: &str, service: usize, ready: bool) {
        let Some(plane) = self.planes.get(namespace) else { return };
        let turned = || lock(plane).services[service] = (ready, Instant::now());
        if ready {
            turned();
        }
        // Only an unknown kind could be refused.
        self.seed.apply(slice(namespace, SERVICES[service].0, ready)).ok();
        if !ready {
            turned();
        }
    }

    /// The pods that need a Service begin to crash, or are back by themselves.
    pub fn crash(&self, namespace: &str, service: usize, crashing: bool) {
        let Some(plane) = self.planes.get(namespace) else { return };
        // The store must not be used while a plane is locked.
        let names: Vec<String> = {
            let plane = lock(plane);
            plane.pods.iter().filter(|(_, pod)| pod.needs == Some(service)).map(|(name, _)| name.clone()).collect()
        };
        for name in names {
            // One that was deleted in this moment stays so.
            self.seed.update("pods", namespace, &name, |pod| pod["status"] = status(crashing)).ok();
        }
    }

    fn make(&self, namespace: &str, plane: &Mutex<Plane>, service: usize) {
        let serial = {
            let mut plane = lock(plane);
            plane.serial += 1;
            plane.serial
        };
        let role = SERVICES[service].1;
        let labels = json!({ROLE.0: ROLE.1, "role": role});
        self.seed.create(pod(namespace, &format!("{role}-{serial}"), &labels, Some("set"), false)).ok();
    }

    /// Takes in a change of a pod. Called from inside of the store.
    pub fn changed(&self, namespace: &str, name: &str, write: &Seen<'_>, now: Instant) {
        let Some(plane) = self.planes.get(namespace) else { return };
        let mut plane = lock(plane);
        if write.deleted {
            let needs = plane.pods.remove(name).and_then(|pod| pod.needs);
            return plane.missing.extend(needs.map(|needs| (now + REMAKE, needs)));
        }
        let metadata = &write.after["metadata"];
        let owned = metadata["ownerReferences"][0].is_object() && metadata["labels"][ROLE.0] == ROLE.1;
        let needs = SERVICES.iter().position(|(_, role)| metadata["labels"]["role"] == *role).filter(|_| owned);
        let crashing = write.after["status"]["containerStatuses"][0]["state"]["waiting"].is_object();
        let new = Pod { needs, crashing_since: None, crashed_until: now, told: false };
        let pod = plane.pods.entry(name.to_owned()).or_insert(new);
        match (crashing, pod.crashing_since) {
            (true, None) => (pod.crashing_since, pod.told) = (Some(now), false),
            (false, Some(_)) => (pod.crashing_since, pod.crashed_until) = (None, now + WAY),
            _ => {}
        }
    }

    /// Whether a pod may be deleted.
    pub fn may_go(&self, namespace: &str, name: &str, disturbances: Reading, now: Instant) -> Result<(), String> {
        let plane = self.planes.get(namespace).map(lock).ok_or("no shoot is there")?;
        let pod = plane.pods.get(name).ok_or("nobody knows it")?;
        let service = pod.needs.ok_or("nobody recreates it, or no selector asks for it")?;
        let way = WAY + disturbances.lag;
        if pod.crashing_since.is_none() && now > pod.crashed_until + disturbances.lag {
            return Err("it does not crash".into());
        }
        let (ready, since) = plane.services[service];
        if !ready && now > since + way {
            return Err(format!("what it needs has not been ready for {:.1} s", (now - since).as_secs_f64()));
        }
        // A weeder that starts opens its first windows when it leads, which may be that much later.
        let opened = since.max(*lock(&self.started) + HAND_OVER);
        if now > opened + WINDOW + SPREAD + way {
            return Err(format!("what it needs has been ready for {:.1} s", (now - since).as_secs_f64()));
        }
        Ok(())
    }

    /// Recreates deleted pods, and looks for those that should have been deleted.
    pub fn tick(&self, ledger: &Ledger, disturbances: Reading, now: Instant) {
        for (namespace, plane) in &self.planes {
            let due: Vec<usize> = {
                let mut plane = lock(plane);
                if let Some(clear) = disturbances.weeding_since {
                    look(namespace, &mut plane, ledger, clear, disturbances.lag, now);
                }
                plane.missing.extract_if(.., |(at, _)| *at <= now).map(|(_, service)| service).collect()
            };
            for service in due {
                self.make(namespace, plane, service);
                let is_ready = lock(plane).services[service].0;
                if !is_ready {
                    self.crash(namespace, service, true);
                }
            }
        }
    }

    /// Why the pods of a shoot are not idle; none when they are.
    pub fn why_not_idle(&self, namespace: &str) -> Option<String> {
        let plane = lock(self.planes.get(namespace)?);
        let mut needy = plane.pods.iter().filter(|(_, pod)| pod.needs.is_some());
        let lacking = SERVICES.len().saturating_sub(needy.clone().count());
        match needy.find(|(_, pod)| pod.crashing_since.is_some()) {
            Some((name, _)) => Some(format!("{name} crashes")),
            None => (lacking > 0).then(|| format!("{lacking} pods are missing")),
        }
    }
}

fn look(namespace: &str, plane: &mut Plane, ledger: &Ledger, clear: Instant, lag: Duration, now: Instant) {
    for (name, pod) in &mut plane.pods {
        let Some((service, crashing)) = pod.needs.zip(pod.crashing_since) else { continue };
        let (ready, since) = plane.services[service];
        // The weeder must have known that the Service was down.
        let watched = clear + WAY <= since;
        let waited = now.saturating_duration_since(since.max(crashing));
        if ready && watched && !pod.told && waited > DELETED_WITHIN + lag && now < since + WINDOW {
            pod.told = true;
            let told = format!("pod {name} crashes, for {:.1} s although what it needs is ready again", waited.as_secs_f64());
            ledger.found(Kind::NotWeeded, namespace, told, Vec::new());
        }
    }
}
