//! The nodes of a shoot: kubelets that renew their leases, and what may go wrong with them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::kube_api::KubeApi;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// The label of everything that the test bed makes in a shoot.
const OURS: &str = "bed=node";

/// How one kubelet behaves.
#[derive(Clone, Copy, Debug)]
struct Pulse {
    renewing: bool,
    /// How far its clock is ahead of ours.
    skew: TimeDelta,
}

/// The nodes of one shoot. Dropping them stops the heartbeats.
pub struct Nodes {
    api: KubeApi,
    names: Vec<String>,
    grace: Duration,
    beat: Duration,
    pulses: Vec<watch::Sender<Pulse>>,
    conditions: Mutex<Vec<BTreeMap<String, (String, String)>>>,
    hearts: JoinSet<()>,
}

fn stamp(skew: TimeDelta) -> String {
    (Utc::now() + skew).to_rfc3339_opts(SecondsFormat::Micros, true)
}

impl Nodes {
    /// Creates `count` nodes of the pool `pool`; every `beat` each renews a lease that lasts for `grace`, at a phase of its own,
    /// by a clock that is ahead of ours by its `skew`.
    pub async fn create(api: KubeApi, count: usize, grace: Duration, beat: Duration, skew: &[TimeDelta]) -> Result<Self> {
        let names: Vec<String> = (1..=count).map(|number| format!("node-{number}")).collect();
        let mut nodes = Self {
            api,
            names: Vec::new(),
            grace,
            beat,
            pulses: Vec::new(),
            conditions: Mutex::default(),
            hearts: JoinSet::new(),
        };
        // A scenario that has failed on a given cluster has left its own behind.
        nodes.delete().await?;
        for (index, name) in names.into_iter().enumerate() {
            let phase = beat.mul_f64(index as f64 / count as f64);
            nodes.join(&name, phase, skew.get(index).copied().unwrap_or_default()).await?;
        }
        Ok(nodes)
    }

    async fn join(&mut self, name: &str, phase: Duration, skew: TimeDelta) -> Result<()> {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"bed": "node", "worker.gardener.cloud/pool": "pool"}},
        });
        self.api.create("/api/v1/nodes", &node).await?;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease", "labels": {"bed": "node"}},
            "spec": {
                "holderIdentity": name, "leaseDurationSeconds": self.grace.as_secs(), "renewTime": stamp(skew),
            },
        });
        self.api.create(LEASES, &lease).await?;
        let (sender, receiver) = watch::channel(Pulse { renewing: true, skew });
        self.hearts.spawn(heart(self.api.clone(), name.into(), self.beat, phase, receiver));
        self.names.push(name.into());
        self.pulses.push(sender);
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).push(BTreeMap::new());
        self.report(self.names.len() - 1, "Ready", "True", "KubeletReady").await
    }

    /// Their names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn pulse(&self, indices: impl IntoIterator<Item = usize>, change: impl Fn(&mut Pulse)) {
        for index in indices {
            if let Some(pulse) = self.pulses.get(index) {
                pulse.send_modify(&change);
            }
        }
    }

    /// These nodes lose their way to the API server: they stop renewing.
    pub fn cut(&self, indices: impl IntoIterator<Item = usize>) {
        self.pulse(indices, |pulse| pulse.renewing = false);
    }

    /// All nodes lose their way.
    pub fn cut_all(&self) {
        self.cut(0..self.names.len());
    }

    /// These nodes find their way again, and renew at once.
    pub fn heal(&self, indices: impl IntoIterator<Item = usize>) {
        self.pulse(indices, |pulse| pulse.renewing = true);
    }

    /// All nodes find their way again.
    pub fn heal_all(&self) {
        self.heal(0..self.names.len());
    }

    /// Sets the clocks of these nodes ahead of ours (or behind), at once.
    pub fn skew(&self, indices: impl IntoIterator<Item = usize>, ahead: TimeDelta) {
        self.pulse(indices, |pulse| pulse.skew = ahead);
    }

    /// Reports a node condition.
    pub async fn report(&self, index: usize, kind: &str, status: &str, reason: &str) -> Result<()> {
        let conditions: Vec<Value> = {
            let mut all = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
            let conditions = all.get_mut(index).context("no such node")?;
            conditions.insert(kind.into(), (status.into(), reason.into()));
            let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
            let value = |(kind, (status, reason)): (&String, &(String, String))| json!({"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now});
            conditions.iter().map(value).collect()
        };
        let path = format!("/api/v1/nodes/{}/status", self.names[index]);
        self.api.merge(&path, &json!({"status": {"conditions": conditions}})).await?;
        Ok(())
    }

    /// Sets or removes an annotation of a node.
    pub async fn annotate(&self, index: usize, key: &str, value: Option<&str>) -> Result<()> {
        let path = format!("/api/v1/nodes/{}", self.names[index]);
        self.api.merge(&path, &json!({"metadata": {"annotations": {key: value}}})).await?;
        Ok(())
    }

    /// Takes the renewTime off the lease of a node that was cut off before.
    pub async fn erase_renew_time(&self, index: usize) -> Result<()> {
        let path = format!("{LEASES}/{}", self.names[index]);
        self.api.merge(&path, &json!({"spec": {"renewTime": null}})).await?;
        Ok(())
    }

    /// Deletes the lease of a node that was cut off before.
    pub async fn delete_lease(&self, index: usize) -> Result<()> {
        self.api.delete(&format!("{LEASES}/{}", self.names[index])).await
    }

    /// The status of the condition Ready, for each node.
    pub async fn readiness(&self) -> Result<Vec<String>> {
        try_join_all(self.names.iter().map(async |name| {
            let node = self.api.get(&format!("/api/v1/nodes/{name}")).await?;
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
            Ok(ready.and_then(|ready| ready["status"].as_str()).unwrap_or("none").to_owned())
        }))
        .await
    }

    /// How long ago each lease was renewed, by its own stamp.
    pub async fn ages(&self) -> Result<Vec<Duration>> {
        try_join_all(self.names.iter().map(async |name| {
            let lease = self.api.get(&format!("{LEASES}/{name}")).await?;
            let stamp = lease["spec"]["renewTime"].as_str().context("no renewTime")?;
            let renewed = DateTime::parse_from_rfc3339(stamp)?.with_timezone(&Utc);
            Ok((Utc::now() - renewed).to_std().unwrap_or_default())
        }))
        .await
    }

    /// Removes the nodes and their leases.
    pub async fn remove(mut self) -> Result<()> {
        self.hearts.shutdown().await;
        self.delete().await
    }

    async fn delete(&self) -> Result<()> {
        self.api.delete(&format!("/api/v1/nodes?labelSelector={OURS}")).await?;
        self.api.delete(&format!("{LEASES}?labelSelector={OURS}")).await
    }
}

async fn heart(api: KubeApi, name: String, beat: Duration, phase: Duration, mut pulse: watch::Receiver<Pulse>) {
    let path = format!("{LEASES}/{name}");
    let mut next = Instant::now() + phase;
    loop {
        let now = *pulse.borrow_and_update();
        if !now.renewing {
            if pulse.changed().await.is_err() {
                return;
            }
            next = Instant::now() + phase;
            continue;
        }
        tokio::select! {
            () = sleep_until(next) => {
                // An API server that does not answer is what some scenarios are about: a kubelet tries again.
                let _ = api.merge(&path, &json!({"spec": {"renewTime": stamp(now.skew)}})).await;
                next = (next + beat).max(Instant::now());
            }
            changed = pulse.changed() => if changed.is_err() { return },
        }
    }
}
