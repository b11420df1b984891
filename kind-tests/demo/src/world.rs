//! A seed, three shoots, and what the probers would find there in a Gardener landscape.

use std::time::Duration;

use anyhow::Result;
use api_server::{Authority, MemoryApi, Options, User};
use chrono::Utc;
use serde_json::{Value, json};
use testbed::gardener;
use testbed::kubelets::Kubelets;
use testbed::memory::{LeaseRenewer, MemoryNodes, MemoryShootPlan};
use testbed::seed::ReplicaState;
use testbed::shoot::renew_time;
use tokio::time::Instant;

use crate::lifecycle::NodeLifecycle;
use crate::scene::{DEPENDENTS, DemoScene, NODES, REPLICAS, ShootScene};

/// How long pods take to become ready or to be gone: between 1 and 2 s, as small pods on an idle
/// node do.
const POD_TIME: Duration = Duration::from_millis(1500);
/// The Lease by which the replicas elect their leader.
const LEASE: &str = "dwd-prober-leader-election";
const LEASES: &str = "leases.coordination.k8s.io";
const DEPLOYMENTS: &str = "deployments.apps";

/// All that the probers can reach.
pub struct DemoWorld {
    pub seed: MemoryApi,
    /// One loses the way to its nodes; to the next the same happens, and Gardener moves it to
    /// another seed meanwhile; the last is healthy.
    pub shoots: [DemoShoot; 3],
    started: Instant,
    _kubelets: Kubelets,
}

/// One shoot: its API server and its nodes.
pub struct DemoShoot {
    name: &'static str,
    /// The namespace of its control plane in the seed.
    pub namespace: String,
    pub api: MemoryApi,
    nodes: MemoryNodes,
    lifecycle: NodeLifecycle,
}

impl DemoWorld {
    /// Builds everything; from then on leases are renewed, and the time of the demo runs.
    pub async fn build() -> Result<Self> {
        let authority = Authority::new()?;
        let options = Options {
            resources: gardener::resources(),
            ..Options::default()
        };
        let seed = MemoryApi::start(&authority, options).await?;
        for name in REPLICAS {
            // One account for both in a real seed; here the log of requests is to tell them apart.
            seed.access().grant(
                name,
                User {
                    name: name.to_owned(),
                    ..gardener::seed_prober()
                },
            );
        }
        seed.store().create(gardener::namespace("garden"))?;
        let shoot = async |name| DemoShoot::furnish(&authority, &seed, name).await;
        let shoots = [
            shoot("cut-off").await?,
            shoot("moving").await?,
            shoot("healthy").await?,
        ];
        let kubelets = Kubelets::start(seed.store(), &[DEPLOYMENTS], POD_TIME);
        Ok(Self {
            seed,
            shoots,
            started: Instant::now(),
            _kubelets: kubelets,
        })
    }

    /// Seconds since the beginning.
    pub fn seconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.started).as_secs_f64()
    }

    /// What there is to see now, after the node lifecycle controllers have acted.
    pub fn scene(&mut self) -> DemoScene {
        let now = self.seconds(Instant::now());
        // The holder is the host's name and a random part; after a leader's sudden death for some
        // time still the dead one.
        let lease = self
            .seed
            .store()
            .get(LEASES, "garden", LEASE)
            .unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"]
            .as_str()
            .and_then(|holder| holder.split('_').next());
        DemoScene {
            now,
            leader: REPLICAS.into_iter().find(|name| Some(*name) == holder),
            // Each keeps one connection to each.
            watched: self
                .shoots
                .iter()
                .all(|shoot| shoot.api.connections().handshakes >= REPLICAS.len() as u64),
            shoots: self
                .shoots
                .each_mut()
                .map(|shoot| shoot.scene(&self.seed, now)),
        }
    }

    /// The network between the nodes of two shoots and their API servers breaks. What there is to
    /// see then.
    pub fn cut(&mut self) -> DemoScene {
        self.shoots[..2]
            .iter()
            .for_each(|shoot| shoot.nodes.cut_all());
        self.scene()
    }

    pub fn reconnect(&self) {
        self.shoots[..2]
            .iter()
            .for_each(|shoot| shoot.nodes.heal_all());
    }

    /// Gardener decides to move a shoot to another seed.
    pub fn migrate(&self) -> Result<()> {
        let operation = json!({"spec": {"shoot": {"status": {"lastOperation": {"type": "Migrate", "state": "Processing", "progress": 0}}}}});
        self.seed.store().patch(
            "clusters.extensions.gardener.cloud",
            "",
            &self.shoots[1].namespace,
            &operation,
        )?;
        Ok(())
    }

    /// Gardener's own controllers take a control plane that moves away out of service.
    pub fn take_down(&self) -> Result<()> {
        for (name, _) in DEPENDENTS {
            self.seed.store().patch(
                DEPLOYMENTS,
                &self.shoots[1].namespace,
                name,
                &json!({"spec": {"replicas": 0}}),
            )?;
        }
        Ok(())
    }
}

impl DemoShoot {
    async fn furnish(authority: &Authority, seed: &MemoryApi, name: &'static str) -> Result<Self> {
        let api = MemoryApi::start(authority, Options::default()).await?;
        let namespace = format!("shoot--demo--{name}");
        seed.store().create(gardener::namespace(&namespace))?;
        let plan = MemoryShootPlan {
            namespace: &namespace,
            nodes: NODES,
            renewer: LeaseRenewer::default(),
            grace: None,
            deployments: &DEPENDENTS,
            ..MemoryShootPlan::default()
        };
        let nodes = plan.furnish(seed.store(), &api)?;
        Ok(Self {
            name,
            namespace,
            api,
            nodes,
            lifecycle: NodeLifecycle::default(),
        })
    }

    /// Its nodes as its API server knows them, and its control plane in the seed.
    fn scene(&mut self, seed: &MemoryApi, now: f64) -> ShootScene {
        let lease = |node: &String| {
            self.api
                .store()
                .get(LEASES, "kube-node-lease", node)
                .unwrap_or_default()
        };
        let ages: Vec<f64> = self
            .nodes
            .names()
            .iter()
            .map(|node| age(&lease(node)))
            .collect();
        let dependent = |name| {
            seed.store()
                .get(DEPLOYMENTS, &self.namespace, name)
                .unwrap_or_default()
        };
        let dependents = DEPENDENTS.map(|(name, _)| ReplicaState::of(&dependent(name)));
        let countdown = self.lifecycle.step(dependents[0].ready > 0, &ages, now);
        ShootScene {
            name: self.name,
            ages,
            dependents,
            countdown,
            unknown_nodes: self.lifecycle.unknown_nodes,
        }
    }
}

/// Seconds since a lease was renewed.
fn age(lease: &Value) -> f64 {
    let renewed = renew_time(lease);
    renewed.map_or(0.0, |renewed| (Utc::now() - renewed).as_seconds_f64())
}
