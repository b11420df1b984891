//! The nodes of a shoot: kubelets that renew their leases, and what may go wrong with them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use crate::gardener;
use crate::renewers::{LeaseRenewers, Leases, stamp};
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
    prefix: String,
    grace: Duration,
    renewers: LeaseRenewers<KubeApi>,
}

/// What cuts them off and heals them.
impl Deref for Nodes {
    type Target = LeaseRenewers<KubeApi>;

    fn deref(&self) -> &Self::Target {
        &self.renewers
    }
}

impl Nodes {
    /// None yet; every `beat` each renews a lease that lasts for `grace`.
    pub async fn none(api: KubeApi, prefix: &str, grace: Duration, beat: Duration) -> Result<Self> {
        let renewers = LeaseRenewers::new(api.clone(), beat);
        let nodes = Self {
            api,
            prefix: prefix.to_owned(),
            grace,
            renewers,
        };
        // A scenario that has failed on a given cluster has left its own behind.
        nodes.delete().await?;
        Ok(nodes)
    }

    /// One more node of the pool `pool`, which renews first after `phase`, by a clock that is ahead
    /// of ours by `skew`. Returns its name.
    pub async fn join(&mut self, phase: Duration, skew: TimeDelta) -> Result<String> {
        let name = format!("{}-{}", self.prefix, self.names().len() + 1);
        self.api
            .create("/api/v1/nodes", &labelled(gardener::node(&name, "pool")))
            .await?;
        self.api
            .create(
                LEASES,
                &labelled(gardener::lease(&name, self.grace.as_secs(), skew)),
            )
            .await?;
        self.renewers.join(&name, phase, skew);
        Ok(name)
    }

    /// The node that joined last leaves. Returns its name.
    pub async fn leave(&mut self) -> Result<String> {
        let name = self.names().last().context("there is no node")?.clone();
        self.renewers.leave(&name);
        self.settled().await;
        self.api.delete(&format!("/api/v1/nodes/{name}")).await?;
        self.delete_lease_of(&name).await?;
        Ok(name)
    }

    /// Reports a node condition.
    pub async fn report(&self, index: usize, kind: &str, status: &str, reason: &str) -> Result<()> {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let condition = json!({"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now});
        let path = format!("/api/v1/nodes/{}/status", self.names()[index]);
        self.api
            .merge_items(&path, &json!({"status": {"conditions": [condition]}}))
            .await
    }

    /// Sets or removes an annotation of a node.
    pub async fn annotate(&self, index: usize, key: &str, value: Option<&str>) -> Result<()> {
        let path = format!("/api/v1/nodes/{}", self.names()[index]);
        self.api
            .merge(&path, &json!({"metadata": {"annotations": {key: value}}}))
            .await
            .map(drop)
    }

    /// Takes the renewTime off the lease of a node that was cut off before.
    pub async fn erase_renew_time(&self, index: usize) -> Result<()> {
        let path = format!("{LEASES}/{}", self.names()[index]);
        self.api
            .merge(&path, &json!({"spec": {"renewTime": null}}))
            .await
            .map(drop)
    }

    /// Deletes the lease of a node that was cut off before.
    pub async fn delete_lease(&self, index: usize) -> Result<()> {
        self.delete_lease_of(&self.names()[index]).await
    }

    async fn delete_lease_of(&self, name: &str) -> Result<()> {
        self.api.delete(&format!("{LEASES}/{name}")).await
    }

    /// The status of the condition Ready, for each node.
    pub async fn readiness(&self) -> Result<Vec<String>> {
        try_join_all(self.names().iter().map(async |name| {
            let node = self.api.get(&format!("/api/v1/nodes/{name}")).await?;
            let conditions = node["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ready = conditions
                .iter()
                .find(|condition| condition["type"] == "Ready");
            Ok(ready
                .and_then(|ready| ready["status"].as_str())
                .unwrap_or("none")
                .to_owned())
        }))
        .await
    }

    /// When each lease was renewed, by its own stamp.
    pub async fn stamps(&self) -> Result<Vec<DateTime<Utc>>> {
        let list = self.api.get(LEASES).await?;
        let items = list["items"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let stamps: BTreeMap<_, _> = items
            .iter()
            .map(|lease| {
                (
                    lease["metadata"]["name"].as_str(),
                    lease["spec"]["renewTime"].as_str(),
                )
            })
            .collect();
        let stamp = |name: &String| {
            let stamp = stamps
                .get(&Some(name.as_str()))
                .copied()
                .flatten()
                .with_context(|| format!("no renewTime of {name}"))?;
            Ok(DateTime::parse_from_rfc3339(stamp)?.with_timezone(&Utc))
        };
        self.names().iter().map(stamp).collect()
    }

    /// How long ago that was.
    pub async fn ages(&self) -> Result<Vec<Duration>> {
        let (stamps, now) = (self.stamps().await?, Utc::now());
        Ok(stamps
            .into_iter()
            .map(|stamp| (now - stamp).to_std().unwrap_or_default())
            .collect())
    }

    /// Removes the nodes and their leases.
    pub async fn remove(self) -> Result<()> {
        // No renewal may land on what the next scenario creates under the same names.
        self.cut_all();
        self.settled().await;
        self.delete().await
    }

    async fn delete(&self) -> Result<()> {
        self.api
            .delete(&format!("/api/v1/nodes?labelSelector={OURS}"))
            .await?;
        self.api
            .delete(&format!("{LEASES}?labelSelector={OURS}"))
            .await
    }
}

impl Leases for KubeApi {
    async fn renew(&self, node: &str, ahead: TimeDelta) -> bool {
        let renewal = json!({"spec": {"renewTime": stamp(ahead)}});
        self.merge(&format!("{LEASES}/{node}"), &renewal)
            .await
            .is_ok()
    }
}
