//! The nodes of a shoot: kubelets that renew their leases, and what may go wrong with them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::api::{Hearts, Leases, gardener, stamp};
use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::kube_api::KubeApi;

/// The collection of the nodes' leases.
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// The label of everything that the test bed makes in a shoot.
const OURS: &str = "bed=node";

/// An object that goes with the test bed's nodes.
pub fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"]["bed"] = "node".into();
    object
}

/// The nodes of one shoot. Dropping them stops the heartbeats.
pub struct Nodes {
    api: KubeApi,
    hearts: Hearts<KubeApi>,
    conditions: Mutex<Vec<BTreeMap<String, (String, String)>>>,
}

/// What cuts them off and heals them.
impl Deref for Nodes {
    type Target = Hearts<KubeApi>;

    fn deref(&self) -> &Self::Target {
        &self.hearts
    }
}

impl Nodes {
    /// Creates `count` nodes of the pool `pool`; every `beat` each renews a lease that lasts for `grace`, at a phase of its own,
    /// by a clock that is ahead of ours by its `skew`.
    pub async fn create(api: KubeApi, count: usize, grace: Duration, beat: Duration, skew: &[TimeDelta]) -> Result<Self> {
        let mut nodes =
            Self { hearts: Hearts::new(api.clone(), beat), api, conditions: Mutex::new(vec![BTreeMap::new(); count]) };
        // A scenario that has failed on a given cluster has left its own behind.
        nodes.delete().await?;
        for index in 0..count {
            let (name, skew) = (format!("node-{}", index + 1), skew.get(index).copied().unwrap_or_default());
            nodes.api.create("/api/v1/nodes", &labelled(gardener::node(&name, "pool"))).await?;
            nodes.api.create(LEASES, &labelled(gardener::lease(&name, grace.as_secs(), skew))).await?;
            nodes.hearts.join(&name, beat.mul_f64(index as f64 / count as f64), skew);
            nodes.report(index, "Ready", "True", "KubeletReady").await?;
        }
        Ok(nodes)
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
        let path = format!("/api/v1/nodes/{}/status", self.names()[index]);
        self.api.merge(&path, &json!({"status": {"conditions": conditions}})).await?;
        Ok(())
    }

    /// Sets or removes an annotation of a node.
    pub async fn annotate(&self, index: usize, key: &str, value: Option<&str>) -> Result<()> {
        let path = format!("/api/v1/nodes/{}", self.names()[index]);
        self.api.merge(&path, &json!({"metadata": {"annotations": {key: value}}})).await?;
        Ok(())
    }

    /// Takes the renewTime off the lease of a node that was cut off before.
    pub async fn erase_renew_time(&self, index: usize) -> Result<()> {
        let path = format!("{LEASES}/{}", self.names()[index]);
        self.api.merge(&path, &json!({"spec": {"renewTime": null}})).await?;
        Ok(())
    }

    /// Deletes the lease of a node that was cut off before.
    pub async fn delete_lease(&self, index: usize) -> Result<()> {
        self.api.delete(&format!("{LEASES}/{}", self.names()[index])).await
    }

    /// The status of the condition Ready, for each node.
    pub async fn readiness(&self) -> Result<Vec<String>> {
        try_join_all(self.names().iter().map(async |name| {
            let node = self.api.get(&format!("/api/v1/nodes/{name}")).await?;
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
            Ok(ready.and_then(|ready| ready["status"].as_str()).unwrap_or("none").to_owned())
        }))
        .await
    }

    /// How long ago each lease was renewed, by its own stamp.
    pub async fn ages(&self) -> Result<Vec<Duration>> {
        try_join_all(self.names().iter().map(async |name| {
            let lease = self.api.get(&format!("{LEASES}/{name}")).await?;
            let stamp = lease["spec"]["renewTime"].as_str().context("no renewTime")?;
            let renewed = DateTime::parse_from_rfc3339(stamp)?.with_timezone(&Utc);
            Ok((Utc::now() - renewed).to_std().unwrap_or_default())
        }))
        .await
    }

    /// Removes the nodes and their leases.
    pub async fn remove(self) -> Result<()> {
        // No renewal may land on what the next scenario creates under the same names.
        self.cut_all();
        self.settled().await;
        self.delete().await
    }

    async fn delete(&self) -> Result<()> {
        self.api.delete(&format!("/api/v1/nodes?labelSelector={OURS}")).await?;
        self.api.delete(&format!("{LEASES}?labelSelector={OURS}")).await
    }
}

impl Leases for KubeApi {
    async fn renew(&self, node: &str, ahead: TimeDelta) -> bool {
        let renewal = json!({"spec": {"renewTime": stamp(ahead)}});
        self.merge(&format!("{LEASES}/{node}"), &renewal).await.is_ok()
    }
}
