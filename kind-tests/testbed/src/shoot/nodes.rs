//! The nodes of a shoot: kubelets that renew their leases, and what may go wrong with them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::gardener;
use crate::kube_api::KubeApi;
use crate::objects::{items, name};
use crate::renewers::{LeaseRenewers, LeaseWriter, stamp};

const NODES: &str = "/api/v1/nodes";
/// The collection of the nodes' leases.
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

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
    pub fn none(api: KubeApi, prefix: &str, grace: Duration, beat: Duration) -> Self {
        Self {
            renewers: LeaseRenewers::new(api.clone(), beat),
            api,
            prefix: prefix.to_owned(),
            grace,
        }
    }

    /// One more node of the pool `pool`, which renews first after `phase`. Returns its name.
    pub async fn join(&mut self, phase: Duration) -> Result<String> {
        let name = format!("{}-{}", self.prefix, self.names().len() + 1);
        let objects = [
            gardener::node(&name, "pool"),
            gardener::lease(&name, self.grace.as_secs(), TimeDelta::zero()),
        ];
        self.api.create_all(&objects).await?;
        self.renewers.join(&name, phase);
        Ok(name)
    }

    /// The node that joined last leaves. Returns its name.
    pub async fn leave(&mut self) -> Result<String> {
        let name = self.names().last().context("there is no node")?.clone();
        self.renewers.leave(&name);
        self.settled().await;
        for collection in [NODES, LEASES] {
            self.api.delete(&format!("{collection}/{name}")).await?;
        }
        Ok(name)
    }

    fn path(&self, collection: &str, index: usize) -> String {
        format!("{collection}/{}", self.names()[index])
    }

    /// Reports a node condition.
    pub async fn report(&self, index: usize, kind: &str, status: &str, reason: &str) -> Result<()> {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let condition = json!({"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now});
        let path = self.path(NODES, index) + "/status";
        self.api
            .merge_items(&path, &json!({"status": {"conditions": [condition]}}))
            .await
    }

    /// Sets or removes an annotation of a node.
    pub async fn annotate(&self, index: usize, key: &str, value: Option<&str>) -> Result<()> {
        self.api
            .annotate(&self.path(NODES, index), key, value)
            .await
    }

    /// Takes the renewTime off the lease of a node that was cut off before.
    pub async fn erase_renew_time(&self, index: usize) -> Result<()> {
        let erased = json!({"spec": {"renewTime": null}});
        self.api.merge(&self.path(LEASES, index), &erased).await
    }

    /// Deletes the lease of a node that was cut off before.
    pub async fn delete_lease(&self, index: usize) -> Result<()> {
        self.api.delete(&self.path(LEASES, index)).await
    }

    /// The status of the condition Ready, for each node.
    pub async fn readiness(&self) -> Result<Vec<String>> {
        let mut readiness = BTreeMap::new();
        for node in self.api.list(NODES).await? {
            let ready = items(&node["status"]["conditions"]).find(|it| it["type"] == "Ready");
            let status = ready
                .and_then(|ready| ready["status"].as_str())
                .unwrap_or("none");
            readiness.insert(name(&node).to_owned(), status.to_owned());
        }
        self.each(&readiness)
    }

    /// When each lease was renewed, by its own stamp.
    pub async fn stamps(&self) -> Result<Vec<DateTime<Utc>>> {
        self.each(&renew_times(&self.api).await?)
    }

    /// How long ago that was.
    pub async fn ages(&self) -> Result<Vec<Duration>> {
        let (stamps, now) = (self.stamps().await?, Utc::now());
        let age = |stamp: DateTime<Utc>| (now - stamp).to_std().unwrap_or_default();
        Ok(stamps.into_iter().map(age).collect())
    }

    /// What is known of each node.
    fn each<T: Clone>(&self, known: &BTreeMap<String, T>) -> Result<Vec<T>> {
        let of = |name: &String| known.get(name).cloned().with_context(|| name.clone());
        self.names().iter().map(of).collect()
    }
}

/// When the leases of a cluster's nodes were renewed, by their own stamps.
pub async fn renew_times(api: &KubeApi) -> Result<BTreeMap<String, DateTime<Utc>>> {
    let leases = api.list(LEASES).await?;
    let renewed = |lease: &Value| Some((name(lease).to_owned(), renew_time(lease)?));
    Ok(leases.iter().filter_map(renewed).collect())
}

/// The renewTime of a lease, if it has one.
pub fn renew_time(lease: &Value) -> Option<DateTime<Utc>> {
    let stamp = DateTime::parse_from_rfc3339(lease["spec"]["renewTime"].as_str()?);
    Some(stamp.ok()?.to_utc())
}

impl LeaseWriter for KubeApi {
    async fn renew(&self, node: &str) -> bool {
        let renewal = json!({"spec": {"renewTime": stamp(TimeDelta::zero())}});
        self.merge(&format!("{LEASES}/{node}"), &renewal)
            .await
            .is_ok()
    }
}
