//! What the weeder sees of the shoots' control planes: two Services each, and pods that crash-loop while the one that they need is
//! down; the stand-in for those who make deleted pods anew; and the oracle's judgement of what is deleted and what is not.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use testbed::api::{Seen, Source, Store};
use tokio::time::Instant;

use crate::disturbances::{Disturbances, Reading};
use crate::ledger::{Kind, Ledger};
use crate::pace::{HAND_OVER, WINDOW};

/// The Services, each with the role of the pods that need it.
pub const SERVICES: [(&str, &str); 2] = [("etcd-main-client", "apiserver"), ("kube-apiserver", "controller-manager")];
/// How long a controller takes to make a pod anew.
const REMAKE: Duration = Duration::from_millis(300);
/// What a watch may be late by, and a DELETE that was under way.
const WAY: Duration = Duration::from_secs(2);
/// A first window opens up to a tenth of its length late.
const SPREAD: Duration = Duration::from_millis(1200);
/// A crash-looping pod whose Service has recovered is deleted within this time: at once, and 5 s for a busy machine.
const DELETED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Plane {
    /// Whether each Service is ready, and since when.
    services: [(bool, Instant); 2],
    pods: BTreeMap<String, Pod>,
    /// Roles whose pods are to be made anew, and when.
    missing: Vec<(Instant, usize)>,
    serial: u32,
}

#[derive(Debug)]
struct Pod {
    /// The Service that it needs; none for pods that must never be deleted.
    needs: Option<usize>,
    crashing_since: Option<Instant>,
    /// Until when it may have been seen crashing.
    crashed_until: Instant,
    told: bool,
}

/// All control planes.
#[derive(Debug)]
pub struct WeederOracle {
    seed: Store,
    planes: HashMap<String, Mutex<Plane>>,
    /// When a weeder last began or took up another config: it opens a window for each ready Service then.
    anew: Mutex<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WeederOracle {
    /// Planes with nothing in them yet.
    pub fn new(seed: Store, namespaces: impl Iterator<Item = String>) -> Self {
        let now = Instant::now();
        let plane = || Plane { services: [(true, now); 2], pods: BTreeMap::new(), missing: Vec::new(), serial: 0 };
        Self { seed, planes: namespaces.map(|namespace| (namespace, Mutex::new(plane()))).collect(), anew: Mutex::new(now) }
    }

    /// Makes the Services and pods, with everything ready.
    pub fn furnish(&self) -> Result<()> {
        for namespace in self.planes.keys() {
            for service in 0..SERVICES.len() {
                self.write_slice(namespace, service, true)?;
                self.make(namespace, service);
            }
            // Nobody would make this one anew (D-44), and no selector asks for that one.
            self.seed.create(pod(
                namespace,
                "bare",
                &json!({"gardener.cloud/role": "controlplane", "role": "x"}),
                false,
                true,
            ))?;
            self.seed.create(pod(namespace, "other", &json!({"role": "x"}), true, true))?;
        }
        Ok(())
    }

    /// A weeder begins, leads, or takes up another config.
    pub fn begin_anew(&self) {
        *lock(&self.anew) = Instant::now();
    }

    /// A Service becomes ready or not.
    pub fn turn(&self, namespace: &str, service: usize, ready: bool) {
        let Some(plane) = self.planes.get(namespace) else { return };
        if ready {
            lock(plane).services[service] = (true, Instant::now());
        }
        // Only an unknown kind could be refused.
        self.write_slice(namespace, service, ready).ok();
        if !ready {
            lock(plane).services[service] = (false, Instant::now());
        }
    }

    /// The pods that need a Service begin to crash, or are back by themselves.
    pub fn crash(&self, namespace: &str, service: usize, crashing: bool) {
        let Some(plane) = self.planes.get(namespace) else { return };
        let names: Vec<String> = {
            let plane = lock(plane);
            plane.pods.iter().filter(|(_, pod)| pod.needs == Some(service)).map(|(name, _)| name.clone()).collect()
        };
        for name in names {
            // One that was deleted in this moment stays so.
            self.seed.update("pods", namespace, &name, |pod| pod["status"] = status(crashing)).ok();
        }
    }

    fn write_slice(&self, namespace: &str, service: usize, ready: bool) -> Result<()> {
        let name = SERVICES[service].0;
        self.seed.apply(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": format!("{name}-1"), "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}], "ports": []}))?;
        Ok(())
    }

    fn make(&self, namespace: &str, service: usize) {
        let Some(plane) = self.planes.get(namespace) else { return };
        let serial = {
            let mut plane = lock(plane);
            plane.serial += 1;
            plane.serial
        };
        let role = SERVICES[service].1;
        let labels = json!({"gardener.cloud/role": "controlplane", "role": role});
        self.seed.create(pod(namespace, &format!("{role}-{serial}"), &labels, true, false)).ok();
    }

    /// Sees a change of a pod. Called from inside of the store.
    pub fn pod(&self, write: &Seen<'_>, ledger: &Ledger, disturbances: &Disturbances) {
        let metadata = &write.after["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let Some(plane) = self.planes.get(namespace) else { return };
        let mut plane = lock(plane);
        let now = Instant::now();
        if write.deleted {
            let pod = plane.pods.remove(name);
            let needs = pod.as_ref().and_then(|pod| pod.needs);
            plane.missing.extend(needs.map(|needs| (now + REMAKE, needs)));
            if write.source == Source::Client {
                ledger.count("deletions");
                if let Err(why) = self.may_go(&plane, pod.as_ref(), disturbances.read(now), now) {
                    ledger.found(Kind::WrongDeletion, namespace, format!("pod {name}: {why}"), Vec::new());
                }
            }
            return;
        }
        let owned = metadata["ownerReferences"].is_array() && metadata["labels"]["gardener.cloud/role"] == "controlplane";
        let needs = SERVICES.iter().position(|(_, role)| metadata["labels"]["role"] == *role).filter(|_| owned);
        let crashing = write.after["status"]["containerStatuses"][0]["state"]["waiting"].is_object();
        let pod =
            plane.pods.entry(name.to_owned()).or_insert(Pod { needs, crashing_since: None, crashed_until: now, told: false });
        match (crashing, pod.crashing_since) {
            (true, None) => (pod.crashing_since, pod.told) = (Some(now), false),
            (false, Some(_)) => (pod.crashing_since, pod.crashed_until) = (None, now + WAY),
            _ => {}
        }
    }

    /// Whether a pod may be deleted.
    fn may_go(&self, plane: &Plane, pod: Option<&Pod>, disturbances: Reading, now: Instant) -> Result<(), String> {
        let pod = pod.ok_or("nobody knows it")?;
        let service = pod.needs.ok_or("nobody makes it anew, or no selector asks for it")?;
        let way = WAY + disturbances.lag;
        if pod.crashing_since.is_none() && now > pod.crashed_until + disturbances.lag {
            return Err("it does not crash".into());
        }
        let (ready, since) = plane.services[service];
        if !ready && now > since + way {
            return Err(format!("what it needs has not been ready for {:.1} s", (now - since).as_secs_f64()));
        }
        // A weeder that begins opens its first windows when it leads, which may be that much later.
        let opened = since.max(*lock(&self.anew) + HAND_OVER);
        if now > opened + WINDOW + SPREAD + way {
            return Err(format!("what it needs has been ready for {:.1} s", (now - since).as_secs_f64()));
        }
        Ok(())
    }

    /// Makes deleted pods anew, and looks for those that should have been deleted. To be called about ten times a second.
    pub fn tick(&self, ledger: &Ledger, disturbances: Reading, now: Instant) {
        for (namespace, plane) in &self.planes {
            let due: Vec<usize> = {
                let mut plane = lock(plane);
                let due = plane.missing.extract_if(.., |(at, _)| *at <= now).map(|(_, service)| service).collect();
                if let Some(clear) = disturbances.weeding_since {
                    look(namespace, &mut plane, ledger, clear, disturbances.lag, now);
                }
                due
            };
            for service in due {
                self.make(namespace, service);
                let needs = self.planes.get(namespace).is_some_and(|plane| !lock(plane).services[service].0);
                if needs {
                    self.crash(namespace, service, true);
                }
            }
        }
    }

    /// Why some pods are not at rest; none when all are.
    pub fn unrest(&self) -> Option<String> {
        self.planes.iter().find_map(|(namespace, plane)| {
            let plane = lock(plane);
            let sick = plane.pods.iter().find(|(_, pod)| pod.needs.is_some() && pod.crashing_since.is_some());
            let lacking = SERVICES.len() - plane.pods.values().filter(|pod| pod.needs.is_some()).count();
            match sick {
                Some((name, _)) => Some(format!("{namespace}: {name} crashes")),
                None => (lacking > 0).then(|| format!("{namespace}: {lacking} pods are missing")),
            }
        })
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

fn pod(namespace: &str, name: &str, labels: &Value, owned: bool, crashing: bool) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "set", "controller": true}]);
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": if owned { owner } else { Value::Null }},
        "spec": {"containers": [{"name": "c", "image": "c"}]}, "status": status(crashing)})
}

fn status(crashing: bool) -> Value {
    let state = if crashing { json!({"waiting": {"reason": "CrashLoopBackOff"}}) } else { json!({"running": {}}) };
    json!({"phase": "Running", "containerStatuses": [{"name": "c", "ready": !crashing, "restartCount": 3, "state": state}]})
}
