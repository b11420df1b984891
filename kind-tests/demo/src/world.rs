//! The stage: a seed, three shoots, and what the probers would find there in a Gardener landscape.

use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testbed::api::{MemoryApi, Options, User};
use testbed::authority::Authority;
use testbed::gardener;
pub use testbed::gardener::{CA, KCM, MCM};
use testbed::kubelets::Kubelets;
use testbed::memory::{Heart, Nodes, ShootPlan};
use testbed::seed::Dependent;
use tokio::time::Instant;

use crate::lifecycle::NodeLifecycle;
use crate::scene::{Node, Scene, ShootScene};

/// Kubernetes' default for `nodeMonitorGracePeriod`, in seconds: silent for so long, a node is given up.
pub const GRACE: f64 = 40.0;
/// The prober calls a lease expired after three quarters of the grace period (rule 47), in seconds.
pub const EXPIRED: f64 = 30.0;
/// How long pods take to become ready or to be gone: between 1 and 2 s, as small pods on an idle node do.
const POD_TIME: Duration = Duration::from_millis(1500);
/// Nodes of each shoot.
pub const NODES: usize = 5;
/// How many of them must be expired for the verdict: 60 % (rule 22).
pub const NEEDED: usize = 3;

/// The Deployments that are scaled, with the replicas they have to begin with.
pub const DEPENDENTS: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];
/// The replicas of the prober, by the names of their pods.
pub const REPLICAS: [&str; 2] = ["prober-a", "prober-b"];
/// The Lease by which they elect their leader.
const LEASE: &str = "dwd-prober-leader-election";
/// The collections that are read here.
const LEASES: &str = "leases.coordination.k8s.io";
const DEPLOYMENTS: &str = "deployments.apps";

/// All that the probers can reach.
pub struct World {
    pub seed: MemoryApi,
    /// Loses the way to its nodes.
    pub cut_off: Shoot,
    /// The same, and Gardener moves it to another seed meanwhile.
    pub moving: Shoot,
    pub healthy: Shoot,
    started: Instant,
    _kubelets: Kubelets,
}

/// One shoot: its API server and its nodes.
pub struct Shoot {
    /// What the audience calls it.
    pub name: &'static str,
    /// The namespace of its control plane in the seed.
    pub namespace: String,
    pub api: MemoryApi,
    nodes: Nodes,
    lifecycle: NodeLifecycle,
}

impl World {
    /// Builds everything; from then on the nodes' hearts beat, and the time of the play runs.
    pub async fn build() -> Result<Self> {
        let authority = Authority::new()?;
        let seed = MemoryApi::start(&authority, Options::default()).await.context("no API server for the seed")?;
        for name in REPLICAS {
            // One account for both in a real seed; here the log of requests is to tell them apart.
            seed.access().grant(name, User { name: name.to_owned(), ..gardener::seed_prober() });
        }
        seed.store().create(gardener::namespace("garden"))?;
        Ok(Self {
            cut_off: Shoot::furnish(&authority, &seed, "cut-off").await?,
            moving: Shoot::furnish(&authority, &seed, "moving").await?,
            healthy: Shoot::furnish(&authority, &seed, "healthy").await?,
            started: Instant::now(),
            _kubelets: Kubelets::start(seed.store(), &[DEPLOYMENTS], POD_TIME),
            seed,
        })
    }

    pub fn shoots(&self) -> [&Shoot; 3] {
        [&self.cut_off, &self.moving, &self.healthy]
    }

    /// Seconds since the beginning.
    pub fn seconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.started).as_secs_f64()
    }

    /// Lets the node lifecycle controllers act.
    pub fn step(&mut self) {
        let now = self.seconds(Instant::now());
        for shoot in [&mut self.cut_off, &mut self.moving, &mut self.healthy] {
            let scene = shoot.scene(&self.seed, now);
            shoot.lifecycle.step(shoot.api.store(), &scene, now);
        }
    }

    /// What there is to see now.
    pub fn scene(&self) -> Scene {
        let now = self.seconds(Instant::now());
        // The holder is the host's name and a random part; after a leader's sudden death for some time still the dead one.
        let lease = self.seed.store().get(LEASES, "garden", LEASE).unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str().and_then(|holder| holder.split('_').next());
        Scene {
            now,
            leader: REPLICAS.into_iter().find(|name| Some(*name) == holder),
            // Each keeps one connection to each.
            watched: self.shoots().iter().all(|shoot| shoot.api.connections().handshakes >= REPLICAS.len() as u64),
            shoots: self.shoots().map(|shoot| shoot.scene(&self.seed, now)),
        }
    }

    /// The network between the nodes of two shoots and their API servers breaks.
    pub fn cut(&self) {
        self.cut_off.nodes.cut_all();
        self.moving.nodes.cut_all();
    }

    pub fn heal(&self) {
        self.cut_off.nodes.heal_all();
        self.moving.nodes.heal_all();
    }

    /// Gardener decides to move a shoot to another seed.
    pub fn migrate(&self) -> Result<()> {
        let operation =
            json!({"spec": {"shoot": {"status": {"lastOperation": {"type": "Migrate", "state": "Processing", "progress": 0}}}}});
        self.seed.store().patch("clusters.extensions.gardener.cloud", "", &self.moving.namespace, &operation)?;
        Ok(())
    }

    /// Gardener's own controllers take a control plane that moves away out of service.
    pub fn take_down(&self) -> Result<()> {
        for (name, _) in DEPENDENTS {
            self.seed.store().patch(DEPLOYMENTS, &self.moving.namespace, name, &json!({"spec": {"replicas": 0}}))?;
        }
        Ok(())
    }

    /// Ends everything and waits for it.
    pub async fn end(self) {
        for Shoot { nodes, api, .. } in [self.cut_off, self.moving, self.healthy] {
            drop(nodes);
            api.shutdown().await;
        }
        self.seed.shutdown().await;
    }
}

impl Shoot {
    async fn furnish(authority: &Authority, seed: &MemoryApi, name: &'static str) -> Result<Self> {
        let api = MemoryApi::start(authority, Options::default()).await.context("no API server for a shoot")?;
        let namespace = format!("shoot--demo--{name}");
        seed.store().create(gardener::namespace(&namespace))?;
        let plan = ShootPlan {
            namespace: &namespace,
            nodes: NODES,
            heart: Heart::default(),
            grace: None,
            deployments: &DEPENDENTS,
            ..ShootPlan::default()
        };
        let nodes = plan.furnish(seed.store(), &api)?;
        Ok(Self { name, namespace, api, nodes, lifecycle: NodeLifecycle::default() })
    }

    /// Its nodes as its API server knows them, and its control plane in the seed.
    fn scene(&self, seed: &MemoryApi, now: f64) -> ShootScene {
        let node = |name: &String| {
            let lease = self.api.store().get(LEASES, "kube-node-lease", name).unwrap_or_default();
            let node = self.api.store().get("nodes", "", name).unwrap_or_default();
            Node { name: name.clone(), age: age(&lease), unknown: NodeLifecycle::has_given_up(&node) }
        };
        let nodes: Vec<Node> = self.nodes.names().iter().map(node).collect();
        let dependent = |name| seed.store().get(DEPLOYMENTS, &self.namespace, name).unwrap_or_default();
        let silences = nodes.iter().filter(|node| !node.unknown).filter_map(|node| self.lifecycle.silence(node.age, now));
        ShootScene {
            name: self.name,
            dependents: DEPENDENTS.map(|(name, _)| Dependent::of(&dependent(name))),
            countdown: silences.max_by(f64::total_cmp).map(|longest| GRACE - longest),
            given_up: self.lifecycle.given_up,
            nodes,
        }
    }
}

/// Seconds since a lease was renewed.
fn age(lease: &Value) -> f64 {
    let stamp = lease["spec"]["renewTime"].as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    stamp.map_or(0.0, |stamp| (Utc::now() - stamp.to_utc()).as_seconds_f64())
}
