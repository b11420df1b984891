//! The kubelets of one shoot: nodes that renew their leases, each at a phase of its own, until all lose their way at once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use kind_tests::manifests::MACHINES;
use kind_tests::{KubeApi, eventually};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::sync::{RwLock, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// A kubelet that could not renew tries again after this time, which doubles up to the next one (its lease controller's back-off).
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(7);
/// How long a kubelet waits for the answer to a renewal (nodeStatusUpdateFrequency).
const PATIENCE: Duration = Duration::from_secs(10);
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
    count: usize,
    /// Whether there is a way to the API server. Whoever renews holds it for reading, so once it is closed no renewal
    /// is under way any more.
    way: Arc<RwLock<bool>>,
    /// Tells every heart the phase at which it begins anew.
    hearts: JoinSet<()>,
    phases: Vec<watch::Sender<Duration>>,
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

impl Kubelets {
    /// None yet, of the shoot whose namespace on the seed this is.
    pub fn new(shoot: KubeApi, seed: KubeApi, namespace: &str, grace: Duration) -> Self {
        Self {
            shoot,
            seed,
            namespace: namespace.to_owned(),
            machines: format!("{MACHINES}/namespaces/{namespace}/machines"),
            grace,
            count: 0,
            way: Arc::new(RwLock::new(true)),
            hearts: JoinSet::new(),
            phases: Vec::new(),
        }
    }

    /// Several shoots may share an API server.
    fn name(&self, number: usize) -> String {
        format!("{}-{number}", self.namespace)
    }

    /// A quarter of the grace, as kubelets have it.
    pub fn beat(&self) -> Duration {
        self.grace / 4
    }

    /// Lets nodes come or go until there are so many.
    pub async fn set_count(&mut self, count: usize, random: &mut StdRng) -> Result<()> {
        if count < self.count {
            // A heart whose phase is no longer told of ends; the others beat on.
            self.phases.truncate(count);
            while self.hearts.len() > count {
                self.hearts.join_next().await.context("a heart more than there are nodes")??;
            }
            let names = (count..self.count).map(|number| self.name(number));
            stream::iter(names).map(|name| self.remove(name)).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        } else {
            let names = (self.count..count).map(|number| self.name(number));
            stream::iter(names).map(|name| self.join(name)).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        }
        self.count = count;
        for number in self.phases.len()..count {
            let (sender, phase) = watch::channel(random_phase(self.beat(), random));
            self.phases.push(sender);
            let path = format!("{LEASES}/{}", self.name(number));
            self.hearts.spawn(heart(self.shoot.clone(), path, self.beat(), phase, self.way.clone()));
        }
        Ok(())
    }

    async fn join(&self, name: String) -> Result<()> {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"worker.gardener.cloud/pool": "pool"}},
        });
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": self.grace.as_secs(), "renewTime": now()},
        });
        let machine = json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": name, "labels": {"node": name}}, "spec": {},
        });
        self.shoot.create(NODES, &node).await?;
        self.post_ready(&name).await?;
        self.shoot.create(LEASES, &lease).await?;
        self.seed.create(&self.machines, &machine).await?;
        let running = json!({"status": {"currentStatus": {"phase": "Running"}}});
        self.seed.merge(&format!("{}/{name}/status", self.machines), &running).await?;
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
        *self.way.write().await = false;
        Utc::now()
    }

    /// The way is there again: each node renews within a beat, from now on at a new phase, and posts its status. Returns when each
    /// renews first, in order.
    pub async fn heal(&self, random: &mut StdRng) -> Result<Vec<DateTime<Utc>>> {
        let healed = Utc::now();
        let mut phases: Vec<Duration> = self.phases.iter().map(|_| random_phase(self.beat(), random)).collect();
        for (phase, &chosen) in self.phases.iter().zip(&phases) {
            phase.send_replace(chosen);
        }
        *self.way.write().await = true;
        let names: Vec<String> = (0..self.count).map(|number| self.name(number)).collect();
        try_join_all(names.iter().map(|name| self.post_ready(name))).await?;
        phases.sort_unstable();
        Ok(phases.into_iter().map(|phase| healed + phase).collect())
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
        let beat = TimeDelta::from_std(self.beat())?;
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

fn random_phase(beat: Duration, random: &mut StdRng) -> Duration {
    beat.mul_f64(random.random())
}

/// Renews a lease every beat, first at the phase; begins again whenever a new phase is told.
async fn heart(api: KubeApi, path: String, beat: Duration, mut phase: watch::Receiver<Duration>, way: Arc<RwLock<bool>>) {
    let (mut next, mut retry) = (Instant::now() + *phase.borrow_and_update(), FIRST_RETRY);
    loop {
        tokio::select! {
            () = sleep_until(next) => {
                let open = way.read().await;
                let renewed = !*open || is_renewed(&api, &path).await;
                next = Instant::now() + if renewed { beat } else { retry };
                retry = if renewed { FIRST_RETRY } else { (retry * 2).min(LONGEST_RETRY) };
            }
            changed = phase.changed() => {
                if changed.is_err() {
                    return;
                }
                next = Instant::now() + *phase.borrow_and_update();
            }
        }
    }
}

/// Whether a renewal is answered before a kubelet gives it up, which is after its renewal's interval.
async fn is_renewed(api: &KubeApi, path: &str) -> bool {
    let renewal = json!({"spec": {"renewTime": now()}});
    timeout(PATIENCE, api.merge(path, &renewal)).await.is_ok_and(|answer| answer.is_ok())
}
