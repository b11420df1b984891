//! The kubelets of one shoot: nodes that renew their leases, each at a phase of its own, until all lose their way at once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use testbed::api::{Hearts, gardener};
use testbed::manifests::MACHINES;
use testbed::{KubeApi, eventually};

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// How long it takes until all nodes have renewed: a beat, and more on a busy machine.
const RENEWING: Duration = Duration::from_secs(60);
/// By how much a renewal may come late on a busy machine.
const LATE: TimeDelta = TimeDelta::seconds(1);
/// Objects that are created or deleted at the same time.
const AT_ONCE: usize = 8;

/// The kubelets of one shoot.
pub struct Kubelets {
    shoot: KubeApi,
    seed: KubeApi,
    namespace: String,
    machines: String,
    grace: Duration,
    hearts: Hearts<KubeApi>,
}

impl Kubelets {
    /// None yet, of the shoot whose namespace on the seed this is.
    pub fn new(shoot: KubeApi, seed: KubeApi, namespace: &str, grace: Duration) -> Self {
        Self {
            seed,
            namespace: namespace.to_owned(),
            machines: format!("{MACHINES}/namespaces/{namespace}/machines"),
            grace,
            // As kubelets have it.
            hearts: Hearts::new(shoot.clone(), grace / 4),
            shoot,
        }
    }

    /// Several shoots may share an API server.
    fn name(&self, number: usize) -> String {
        format!("{}-{number}", self.namespace)
    }

    /// Lets nodes come or go until there are so many.
    pub async fn set_count(&mut self, count: usize, random: &mut StdRng) -> Result<()> {
        let before = self.hearts.names().len();
        let going: Vec<String> = (count..before).map(|number| self.name(number)).collect();
        let coming: Vec<String> = (before..count).map(|number| self.name(number)).collect();
        going.iter().for_each(|name| self.hearts.leave(name));
        self.hearts.settled().await;
        stream::iter(going).map(|name| self.remove(name)).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        stream::iter(&coming).map(|name| self.join(name)).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        for name in coming {
            self.hearts.join(&name, self.random_phase(random), TimeDelta::zero());
        }
        Ok(())
    }

    async fn join(&self, name: &str) -> Result<()> {
        let lease = gardener::lease(name, self.grace.as_secs(), TimeDelta::zero());
        let machine = gardener::machine(&self.namespace, name);
        self.shoot.create(NODES, &gardener::node(name, "pool")).await?;
        self.post_ready(name).await?;
        self.shoot.create(LEASES, &lease).await?;
        self.seed.create(&self.machines, &machine).await?;
        self.seed.merge(&format!("{}/{name}/status", self.machines), &json!({"status": machine["status"]})).await?;
        Ok(())
    }

    async fn remove(&self, name: String) -> Result<()> {
        self.seed.delete(&format!("{}/{name}", self.machines)).await?;
        self.shoot.delete(&format!("{NODES}/{name}")).await?;
        self.shoot.delete(&format!("{LEASES}/{name}")).await
    }

    /// Posts a node's status, as its kubelet does when it has the way to do so.
    async fn post_ready(&self, name: &str) -> Result<()> {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        });
        let status = json!({"status": {"conditions": [ready]}});
        self.shoot.merge(&format!("{NODES}/{name}/status"), &status).await?;
        Ok(())
    }

    /// All nodes lose their way to the API server. No renewal lands after this has returned; it returns the moment.
    pub async fn cut(&self) -> DateTime<Utc> {
        self.hearts.cut_all();
        self.hearts.settled().await;
        Utc::now()
    }

    /// The way is there again: each node renews within a beat, from now on at a new phase, and posts its status. Returns when each
    /// renews first, in order.
    pub async fn heal(&self, random: &mut StdRng) -> Result<Vec<DateTime<Utc>>> {
        let healed = Utc::now();
        let mut phases: Vec<Duration> = self.hearts.names().iter().map(|_| self.random_phase(random)).collect();
        self.hearts.heal_at(&phases);
        try_join_all(self.hearts.names().iter().map(|name| self.post_ready(name))).await?;
        phases.sort_unstable();
        Ok(phases.into_iter().map(|phase| healed + phase).collect())
    }

    fn random_phase(&self, random: &mut StdRng) -> Duration {
        self.hearts.beat().mul_f64(random.random())
    }

    /// The stamps that the leases carry.
    pub async fn stamps(&self) -> Result<Vec<DateTime<Utc>>> {
        let list = self.shoot.get(LEASES).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let prefix = format!("{}-", self.namespace);
        let is_ours = |lease: &&Value| lease["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(&prefix));
        items.iter().filter(is_ours).map(stamp).collect()
    }

    /// Waits until every node has renewed within a beat.
    pub async fn are_fresh(&self) -> Result<()> {
        let beat = TimeDelta::from_std(self.hearts.beat())?;
        eventually("every node has renewed within a beat", RENEWING, async || {
            let oldest = self.stamps().await?.into_iter().min().context("no lease")?;
            let age = Utc::now() - oldest;
            ensure!(age <= beat + LATE, "the oldest lease is {age} old");
            Ok(())
        })
        .await
    }
}

fn stamp(lease: &Value) -> Result<DateTime<Utc>> {
    let stamp = lease["spec"]["renewTime"].as_str().context("a lease without renewTime")?;
    Ok(DateTime::parse_from_rfc3339(stamp)?.with_timezone(&Utc))
}
