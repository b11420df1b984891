//! Nodes that keep their leases fresh, as kubelets do, until their way to the API server is cut.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::store::Store;

/// How nodes renew their leases.
#[derive(Clone, Debug)]
pub struct Heart {
    /// Time between renewals; a kubelet takes a quarter of the lease duration, 10 s.
    pub beat: Duration,
    /// What the lease says about its duration, in seconds; 40 in Kubernetes.
    pub lease_seconds: u32,
    /// The worker pool the nodes are labelled with.
    pub pool: String,
}

impl Default for Heart {
    fn default() -> Self {
        Self { beat: Duration::from_secs(10), lease_seconds: 40, pool: "worker".to_owned() }
    }
}

/// Nodes with Leases in `kube-node-lease`, each renewed at a phase of its own: node i of n begins i beats / n late.
///
/// Dropping it stops the renewals; the objects stay.
#[derive(Debug)]
pub struct Nodes {
    names: Vec<String>,
    states: Arc<Mutex<Vec<State>>>,
    healed: watch::Sender<u64>,
    task: JoinHandle<()>,
    stop: DropGuard,
}

#[derive(Clone, Copy, Debug)]
struct State {
    cut: bool,
    skew: TimeDelta,
    due: Instant,
}

impl Nodes {
    /// Creates `count` nodes named `PREFIX-0`, `PREFIX-1`, ... with a fresh lease each, and starts their hearts on the current runtime.
    pub fn start(store: &Store, prefix: &str, count: usize, heart: Heart) -> Self {
        let names: Vec<String> = (0..count).map(|at| format!("{prefix}-{at}")).collect();
        let now = Instant::now();
        let share = |at: usize| heart.beat.mul_f64(at as f64 / count.max(1) as f64);
        let states = (0..count).map(|at| State { cut: false, skew: TimeDelta::zero(), due: now + share(at) }).collect();
        for (at, name) in names.iter().enumerate() {
            // As if the renewals had been going on before: the first one due was renewed nearly a beat ago.
            let age = heart.beat.saturating_sub(share(at));
            // Only a kind that is not registered could be refused, and both are built in.
            store.apply(node(name, &heart.pool)).ok();
            store.apply(lease(name, heart.lease_seconds, &stamp(-TimeDelta::from_std(age).unwrap_or_default()))).ok();
        }
        let states = Arc::new(Mutex::new(states));
        let healed = watch::Sender::new(0);
        let stop = CancellationToken::new();
        let hearts = Hearts { store: store.clone(), names: names.clone(), states: states.clone(), beat: heart.beat };
        let task = tokio::spawn(hearts.beat(healed.subscribe(), stop.clone()));
        Self { names, states, healed, task, stop: stop.drop_guard() }
    }

    /// All names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Cuts the way of some nodes, by number; numbers that do not exist are ignored.
    pub fn cut(&self, nodes: impl IntoIterator<Item = usize>) {
        self.change(nodes, |state| state.cut = true);
    }

    /// Cuts the way of all.
    pub fn cut_all(&self) {
        self.cut(0..self.names.len());
    }

    /// Opens the way of some again. Each renews at its next beat, as its phase wants it.
    pub fn heal(&self, nodes: impl IntoIterator<Item = usize>) {
        self.change(nodes, |state| state.cut = false);
    }

    /// Opens the way of all again.
    pub fn heal_all(&self) {
        self.heal(0..self.names.len());
    }

    /// Sets how far the clock of some nodes is ahead of ours (negative: behind), from the next renewal on.
    pub fn skew(&self, nodes: impl IntoIterator<Item = usize>, skew: TimeDelta) {
        self.change(nodes, |state| state.skew = skew);
    }

    /// Stops the renewals and waits until that is done.
    pub async fn stop(self) {
        drop(self.stop);
        self.task.await.ok();
    }

    fn change(&self, nodes: impl IntoIterator<Item = usize>, change: impl Fn(&mut State)) {
        let mut states = self.states.lock().expect("no panic while locked");
        for at in nodes {
            if let Some(state) = states.get_mut(at) {
                change(state);
            }
        }
        drop(states);
        self.healed.send_modify(|count| *count += 1);
    }
}

struct Hearts {
    store: Store,
    names: Vec<String>,
    states: Arc<Mutex<Vec<State>>>,
    beat: Duration,
}

impl Hearts {
    async fn beat(self, mut changed: watch::Receiver<u64>, stop: CancellationToken) {
        loop {
            let next = self.renew_due();
            let Some(next) = next else { return };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(next) => {}
                open = changed.changed() => if open.is_err() { return },
            }
        }
    }

    /// Renews what is due and tells when the next one is; `None` if there are no nodes.
    fn renew_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut states = self.states.lock().expect("no panic while locked");
        for (name, state) in self.names.iter().zip(states.iter_mut()) {
            if state.due > now {
                continue;
            }
            while state.due <= now {
                state.due += self.beat.max(Duration::from_millis(1));
            }
            if !state.cut {
                let renewed = json!(stamp(state.skew));
                // A lease that a test has deleted stays deleted.
                self.store
                    .update("leases.coordination.k8s.io", "kube-node-lease", name, |lease| lease["spec"]["renewTime"] = renewed)
                    .ok();
            }
        }
        states.iter().map(|state| state.due).min()
    }
}

fn stamp(ahead: TimeDelta) -> String {
    (Utc::now() + ahead).to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn node(name: &str, pool: &str) -> Value {
    let since = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastHeartbeatTime": since, "lastTransitionTime": since, "reason": "Kubelet", "message": ""});
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"worker.gardener.cloud/pool": pool, "kubernetes.io/hostname": name},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {"providerID": format!("local:///{name}")},
        "status": {"conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("PIDPressure", "False"),
            condition("Ready", "True")], "addresses": [{"type": "Hostname", "address": name}]}})
}

fn lease(name: &str, seconds: u32, renewed: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": seconds, "renewTime": renewed}})
}
