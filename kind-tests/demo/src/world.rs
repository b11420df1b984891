//! A seed, two shoots, what the probers would find there in a Gardener landscape, and the real
//! binary: two replicas of the prober, as processes with Gardener's own arguments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use api_server::{Authority, MemoryApi, Options, User};
use chrono::Utc;
use serde_json::Value;
use testbed::agent::{AgentKind, AgentStart, RunningAgent};
use testbed::kubelets::Kubelets;
use testbed::log::tail;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use testbed::seed::ReplicaState;
use testbed::shoot::renew_time;
use testbed::{ProberConfig, gardener, reaper};
use tokio::time::Instant;

use crate::scene::{DEPENDENTS, DemoScene, GRACE, NODES, REPLICAS, ShootScene};

/// Gardener's times that are shortened, for viewers.
pub const SHORTENED: &str = "probeInterval 10s (30s in Gardener), initialDelay 5s (30s), machine-controller-manager's delay 10s (30s)";
/// How long pods take to become ready or to be gone: between 1 and 2 s, as small pods on an idle
/// node do.
const POD_TIME: Duration = Duration::from_millis(1500);
/// The Lease by which the replicas elect their leader.
const LEASE: &str = "dwd-prober-leader-election";
const LEASES: &str = "leases.coordination.k8s.io";
const DEPLOYMENTS: &str = "deployments.apps";

/// The probers, and all that they can reach.
pub struct DemoWorld {
    pub seed: MemoryApi,
    /// One loses the way to its nodes; the other is healthy.
    pub shoots: [DemoShoot; 2],
    started: Instant,
    /// The replicas that run, by name.
    probers: BTreeMap<&'static str, RunningAgent>,
    /// Their files.
    folder: PathBuf,
    _kubelets: Kubelets,
}

/// One shoot: its API server and its nodes.
pub struct DemoShoot {
    /// The namespace of its control plane in the seed.
    pub namespace: String,
    pub api: MemoryApi,
    nodes: MemoryNodes,
    /// When kube-controller-manager last did not work, in seconds of the demo.
    rested: f64,
    unknown_nodes: usize,
}

impl DemoWorld {
    /// Builds everything; from then on leases are renewed, and the time of the demo runs. Whoever
    /// creates the Lease first leads.
    pub async fn build(binary: &Path) -> Result<Self> {
        let authority = Authority::new()?;
        let options = Options {
            resources: gardener::resources(),
            ..Options::default()
        };
        let seed = MemoryApi::start(&authority, options).await?;
        seed.store().create(gardener::namespace("garden"))?;
        let shoot = async |name| DemoShoot::furnish(&authority, &seed, name).await;
        let shoots = [shoot("cut-off").await?, shoot("healthy").await?];
        let kubelets = Kubelets::start(seed.store(), &[DEPLOYMENTS], POD_TIME);
        let config = ProberConfig {
            interval: "10s",
            initial_delay: "5s",
            // As long as a probe may take in Gardener's.
            timeout: "30s",
            machine_delay: "10s",
            ..ProberConfig::default()
        };
        let folder = reaper::folder("demo")?;
        let mut probers = BTreeMap::new();
        for name in REPLICAS {
            // One account for both in a real seed; here the log of requests is to tell them apart.
            let user = User {
                name: name.to_owned(),
                ..gardener::seed_prober()
            };
            seed.access().grant(name, user);
            let (kubeconfig, config) = (seed.kubeconfig(name), config.text());
            let kind = AgentKind::Prober;
            let mut start = AgentStart::new(kind, &folder, name, &kubeconfig, &config)?;
            start.binary = Some(binary.to_owned());
            // In a pod, the pod's name: by it the replica is called in the Lease.
            start.environment = vec![("HOSTNAME".to_owned(), name.to_owned())];
            probers.insert(name, start.run()?);
        }
        Ok(Self {
            seed,
            shoots,
            started: Instant::now(),
            probers,
            folder,
            _kubelets: kubelets,
        })
    }

    /// What there is to see now, after the node lifecycle controllers have acted.
    pub fn scene(&mut self) -> DemoScene {
        let now = self.started.elapsed().as_secs_f64();
        // The holder is the host's name and a random part; after a leader's sudden death for some
        // time still the dead one.
        let lease = self.seed.store().get(LEASES, "garden", LEASE);
        let lease = lease.unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str();
        let holder = holder.and_then(|holder| holder.split('_').next());
        // Each replica keeps one connection to each.
        let is_watched =
            |shoot: &DemoShoot| shoot.api.connections().handshakes >= REPLICAS.len() as u64;
        DemoScene {
            now,
            leader: REPLICAS.into_iter().find(|name| Some(*name) == holder),
            watched: self.shoots.iter().all(is_watched),
            shoots: self
                .shoots
                .each_mut()
                .map(|shoot| shoot.scene(&self.seed, now)),
        }
    }

    /// The network between the nodes of a shoot and its API server breaks. What there is to see
    /// then.
    pub fn cut(&mut self) -> DemoScene {
        self.shoots[0].nodes.cut_all();
        self.scene()
    }

    pub fn reconnect(&self) {
        self.shoots[0].nodes.heal_all();
    }

    /// Kills a replica as the kernel does when memory is short: it gets no chance to give up the
    /// Lease.
    pub fn kill(&mut self, name: &str) {
        self.probers.remove(name);
    }

    /// Asks a replica to end, and returns its exit code; `None` if it has to be killed.
    pub async fn end(&mut self, name: &str) -> Option<i32> {
        let prober = self.probers.remove(name)?;
        prober.terminate().await.ok()?.code()
    }

    /// Prints the ends of the replicas' logs.
    pub fn print_logs(&self) {
        for name in REPLICAS {
            let log = self.folder.join(format!("{name}.log"));
            println!("\nThe end of {name}'s log:\n{}", tail(&log, 25, ""));
        }
    }
}

impl DemoShoot {
    async fn furnish(authority: &Authority, seed: &MemoryApi, name: &str) -> Result<Self> {
        let api = MemoryApi::start(authority, Options::default()).await?;
        let namespace = format!("shoot--demo--{name}");
        seed.store().create(gardener::namespace(&namespace))?;
        let plan = MemoryShootPlan {
            namespace: &namespace,
            nodes: NODES,
            beat: Duration::from_secs(10),
            grace: None,
            deployments: &DEPENDENTS,
        };
        let nodes = plan.furnish(seed.store(), &api)?;
        Ok(Self {
            namespace,
            api,
            nodes,
            rested: 0.0,
            unknown_nodes: 0,
        })
    }

    /// Its nodes as its API server knows them, and its control plane in the seed.
    fn scene(&mut self, seed: &MemoryApi, now: f64) -> ShootScene {
        let lease = |node: &String| {
            let lease = self.api.store().get(LEASES, "kube-node-lease", node);
            age(&lease.unwrap_or_default())
        };
        let ages: Vec<f64> = self.nodes.names().iter().map(lease).collect();
        let dependent = |name| {
            let object = seed.store().get(DEPLOYMENTS, &self.namespace, name);
            ReplicaState::of(&object.unwrap_or_default())
        };
        let dependents = DEPENDENTS.map(|(name, _)| dependent(name));
        // What the node lifecycle controller of kube-controller-manager, which is not built here,
        // would do: mark nodes Unknown that were silent for too long. It works only while its pod is
        // ready, and one that starts knows nothing of the silence before.
        if dependents[0].ready == 0 {
            self.rested = now;
        }
        let silences = ages.iter().map(|age| age.min(now - self.rested));
        let unknown = silences.filter(|silence| *silence >= GRACE).count();
        self.unknown_nodes = self.unknown_nodes.max(unknown);
        ShootScene {
            ages,
            dependents,
            unknown_nodes: self.unknown_nodes,
        }
    }
}

/// Seconds since a lease was renewed.
fn age(lease: &Value) -> f64 {
    let renewed = renew_time(lease);
    renewed.map_or(0.0, |renewed| (Utc::now() - renewed).as_seconds_f64())
}
