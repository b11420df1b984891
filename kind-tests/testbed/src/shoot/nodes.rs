//! The nodes of a shoot: kubelets that renew their leases, and what may go wrong with them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::gardener;
use crate::kube_api::KubeApi;
use crate::objects::name;
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

    /// One more node, which renews first after `phase`. Returns its name.
    pub async fn join(&mut self, phase: Duration) -> Result<String> {
        let name = format!("{}-{}", self.prefix, self.names().len() + 1);
        let objects = [
            gardener::node(&name, "worker"),
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

    /// Reports a node condition.
    pub async fn report(&self, index: usize, kind: &str, status: &str, reason: &str) -> Result<()> {
        let (path, now) = (
            format!("{NODES}/{}/status", self.names()[index]),
            Utc::now(),
        );
        let condition = json!({"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now});
        let status = json!({"status": {"conditions": [condition]}});
        self.api.merge_items(&path, &status).await
    }

    /// When each lease was renewed, by its own stamp.
    pub async fn stamps(&self) -> Result<Vec<DateTime<Utc>>> {
        let stamps = renew_times(&self.api).await?;
        let of = |name: &String| stamps.get(name).copied().with_context(|| name.clone());
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
    lease["spec"]["renewTime"].as_str()?.parse().ok()
}

impl LeaseWriter for KubeApi {
    async fn renew(&self, node: &str) -> bool {
        let renewal = json!({"spec": {"renewTime": stamp(TimeDelta::zero())}});
        let renewed = self.merge(&format!("{LEASES}/{node}"), &renewal).await;
        renewed.is_ok()
    }
}
