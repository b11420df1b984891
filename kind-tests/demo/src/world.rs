//! The stage: a seed, three shoots, and what the probers would find there in a Gardener landscape.

use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
pub use testbed::api::gardener::{CA, KCM, MCM};
use testbed::api::{Authority, Heart, Kubelets, MemoryApi, Nodes, Options, Record, ShootPlan, User, gardener};

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

/// The three parts in the play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    CutOff,
    Moving,
    Healthy,
}

impl Part {
    pub const ALL: [Self; 3] = [Self::CutOff, Self::Moving, Self::Healthy];

    /// The namespace of its control plane in the seed.
    pub fn namespace(self) -> &'static str {
        match self {
            Self::CutOff => "shoot--demo--cut-off",
            Self::Moving => "shoot--demo--moving",
            Self::Healthy => "shoot--demo--healthy",
        }
    }

    /// What the audience calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CutOff => "cut-off",
            Self::Moving => "moving",
            Self::Healthy => "healthy",
        }
    }
}

/// One shoot: its API server and its nodes.
pub struct Shoot {
    pub part: Part,
    pub api: MemoryApi,
    pub nodes: Nodes,
}

/// All that the prober can reach.
pub struct World {
    pub seed: MemoryApi,
    pub shoots: Vec<Shoot>,
    _kubelets: Kubelets,
}

/// What a Deployment looks like at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    pub name: String,
    pub wanted: i64,
    pub ready: i64,
    /// The replicas annotation.
    pub remembered: Option<String>,
    /// Whether the marker of a scale-down is there.
    pub held: bool,
}

/// What a node looks like at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub name: String,
    /// Seconds since it last renewed its lease.
    pub age: f64,
    /// Whether it was given up.
    pub unknown: bool,
}

impl World {
    /// Builds everything; from then on the nodes' hearts beat.
    pub async fn build() -> Result<Self> {
        let authority = Authority::new()?;
        let seed = MemoryApi::start(&authority, Options::default()).await.context("no API server for the seed")?;
        for name in REPLICAS {
            // One account for both in a real seed; here the log of requests is to tell them apart.
            seed.access().grant(name, User { name: name.to_owned(), ..gardener::seed_prober() });
        }
        seed.store().create(gardener::namespace("garden"))?;
        let mut shoots = Vec::new();
        for part in Part::ALL {
            let api = MemoryApi::start(&authority, Options::default()).await.context("no API server for a shoot")?;
            let (heart, namespace) = (Heart::default(), part.namespace());
            seed.store().create(gardener::namespace(namespace))?;
            let plan =
                ShootPlan { namespace, nodes: NODES, heart, grace: None, deployments: &DEPENDENTS, ..ShootPlan::default() };
            let nodes = plan.furnish(seed.store(), &api)?;
            shoots.push(Shoot { part, api, nodes });
        }
        let kubelets = Kubelets::start(seed.store(), &["deployments.apps"], POD_TIME);
        Ok(Self { seed, shoots, _kubelets: kubelets })
    }

    pub fn shoot(&self, part: Part) -> &Shoot {
        self.shoots.iter().find(|shoot| shoot.part == part).expect("every part is played")
    }

    /// The Deployments of a shoot's control plane, in the order of [`DEPENDENTS`].
    pub fn deployments(&self, part: Part) -> Vec<Deployment> {
        let read = |(name, _): (&str, i64)| {
            let value = self.seed.store().get("deployments.apps", part.namespace(), name)?;
            let annotations = &value["metadata"]["annotations"];
            Some(Deployment {
                name: name.to_owned(),
                wanted: value["spec"]["replicas"].as_i64().unwrap_or(1),
                ready: value["status"]["readyReplicas"].as_i64().unwrap_or(0),
                remembered: annotations[gardener::REPLICAS].as_str().map(str::to_owned),
                held: !annotations[gardener::PROTECTED].is_null(),
            })
        };
        DEPENDENTS.into_iter().filter_map(read).collect()
    }

    /// The nodes of a shoot, as its API server knows them.
    pub fn nodes(&self, part: Part) -> Vec<Node> {
        let store = self.shoot(part).api.store();
        let leases = store.list("leases.coordination.k8s.io", Some("kube-node-lease"));
        leases
            .iter()
            .map(|lease| {
                let name = lease["metadata"]["name"].as_str().unwrap_or_default();
                let node = store.get("nodes", "", name).unwrap_or_default();
                Node { name: name.to_owned(), age: age(lease), unknown: ready_condition(&node) == "Unknown" }
            })
            .collect()
    }

    /// The replica that the Lease names; after a leader's sudden death for some time still the dead one.
    pub fn leader(&self) -> Option<String> {
        let lease = self.seed.store().get("leases.coordination.k8s.io", "garden", LEASE)?;
        // The host's name and a random part.
        lease["spec"]["holderIdentity"].as_str()?.split('_').next().filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// Whether every replica has looked at every shoot; each keeps one connection to each.
    pub fn is_watched(&self) -> bool {
        self.shoots.iter().all(|shoot| shoot.api.connections().handshakes >= REPLICAS.len() as u64)
    }

    /// The messages of the Events with a reason.
    pub fn events(&self, reason: &str) -> Vec<String> {
        let events = self.seed.store().list("events", Some("garden"));
        let of_reason = events.iter().filter(|event| event["reason"] == reason);
        of_reason.filter_map(|event| event["message"].as_str().map(str::to_owned)).collect()
    }

    /// Writes to Deployments by one replica.
    pub fn scale_writes(&self, replica: &str) -> usize {
        let scales = |record: &Record| record.is_write() && record.resource.starts_with("deployments.apps");
        self.seed.requests().count(|record| scales(record) && record.user == replica)
    }

    /// Gardener decides to move a shoot to another seed.
    pub fn begin_migration(&self, part: Part) -> Result<()> {
        let operation =
            json!({"spec": {"shoot": {"status": {"lastOperation": {"type": "Migrate", "state": "Processing", "progress": 0}}}}});
        self.seed.store().patch("clusters.extensions.gardener.cloud", "", part.namespace(), &operation)?;
        Ok(())
    }

    /// Gardener's own controllers take a control plane that moves away out of service.
    pub fn take_down(&self, part: Part) -> Result<()> {
        for (name, _) in DEPENDENTS {
            self.seed.store().patch("deployments.apps", part.namespace(), name, &json!({"spec": {"replicas": 0}}))?;
        }
        Ok(())
    }

    /// Answers that said 403, from any API server.
    pub fn refusals(&self) -> usize {
        let apis = self.shoots.iter().map(|shoot| &shoot.api).chain([&self.seed]);
        apis.map(|api| api.requests().count(|record| record.status == Some(403))).sum()
    }

    /// Ends everything and waits for it.
    pub async fn end(self) {
        for shoot in self.shoots {
            drop(shoot.nodes);
            shoot.api.shutdown().await;
        }
        self.seed.shutdown().await;
    }
}

/// Seconds since a lease was renewed.
pub fn age(lease: &Value) -> f64 {
    let stamp = lease["spec"]["renewTime"].as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    stamp.map_or(0.0, |stamp| (Utc::now() - stamp.to_utc()).as_seconds_f64())
}

/// The status of a node's Ready condition.
pub fn ready_condition(node: &Value) -> &str {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .find(|condition| condition["type"] == "Ready")
        .and_then(|ready| ready["status"].as_str())
        .unwrap_or_default()
}
