//! A seed and a shoot in memory, with nodes that renew their leases, stand-ins for the seed's
//! kubelets, and a prober.
//!
//! None of them uses a socket to get to another, so that a test may pause tokio's clock: it then takes
//! no longer than it computes.

use std::ffi::OsString;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, MemoryApi, Options, Record, Store};
use clap::Parser;
use common::flags::AgentArgs;
use common::transport::Dialer;
use prober::Host;
use prober::shoot_client::resources::Resources;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::PATIENCE;
use testbed::control_plane::reserve_port;
use testbed::gardener::{self, PROTECTED, REPLICAS};
pub use testbed::gardener::{CA, KCM, MCM};
use testbed::kubelets::Kubelets;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use testbed::wall;
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::log::{self, SEED_TOKEN, SHOOT_TOKEN};

pub const NAMESPACE: &str = "shoot--p--s";
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const DEPLOYMENTS: &str = "deployments.apps";
const CLUSTERS: &str = "clusters.extensions.gardener.cloud";
/// Within this time a prober that is asked to stop has stopped (rule 85).
const STOP: Duration = Duration::from_secs(5);

/// The three dependents with the levels of Gardener's config, without its delay.
pub const CONFIG: &str = "\
kubeConfigSecretName: shoot-access-dependency-watchdog-probe
probeInterval: 1s
initialDelay: 0s
probeTimeout: 2s
dependentResourceInfos:
- ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}
  scaleUp: {level: 0}
  scaleDown: {level: 1}
- ref: {kind: Deployment, name: machine-controller-manager, apiVersion: apps/v1}
  scaleUp: {level: 1}
  scaleDown: {level: 0}
- ref: {kind: Deployment, name: cluster-autoscaler, apiVersion: apps/v1}
  optional: true
  scaleUp: {level: 2}
  scaleDown: {level: 0}
";

pub struct ProberWorld {
    pub seed: Arc<MemoryApi>,
    pub shoot: Arc<MemoryApi>,
    pub nodes: MemoryNodes,
    _kubelets: Kubelets,
    files: TempDir,
    /// The flags that say where the prober serves; nowhere, unless changed before it starts.
    pub servers: Vec<String>,
    /// The ports of these.
    held: Vec<TcpSocket>,
    /// In the order of their starts.
    probers: Vec<(CancellationToken, JoinHandle<anyhow::Result<()>>)>,
}

impl ProberWorld {
    /// An address on loopback that nobody else is given.
    pub fn address(&mut self) -> SocketAddr {
        let held = reserve_port(0).expect("a free port");
        let address = held.local_addr().expect("an address");
        self.held.push(held);
        address
    }

    /// A healthy shoot with three nodes and all dependents at 1; no prober yet.
    pub async fn new() -> Self {
        Self::of(MemoryShootPlan::default()).await
    }

    /// The same with nodes that renew otherwise, or another grace.
    pub async fn of(plan: MemoryShootPlan<'static>) -> Self {
        // Another test of this process may have installed it already.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        wall::follow_tokio();
        let authority = Authority::new().expect("an authority");
        let start = || async {
            let resources = gardener::resources();
            let options = Options {
                resources,
                ..Options::default()
            };
            let server = MemoryApi::start(&authority, options).await;
            Arc::new(server.expect("an API server"))
        };
        let (seed, shoot) = (start().await, start().await);
        log::listen();
        seed.access().grant(SEED_TOKEN, gardener::seed_prober());
        let plan = MemoryShootPlan {
            namespace: NAMESPACE,
            token: SHOOT_TOKEN,
            ..plan
        };
        let nodes = plan.furnish(seed.store(), &shoot).expect("an empty seed");
        let kubelets = Kubelets::start(seed.store(), &[DEPLOYMENTS], Duration::ZERO);
        let files = tempfile::tempdir().expect("a folder");
        let servers = ["metrics", "health", "pprof"]
            .map(|server| format!("--{server}-bind-addr=0"))
            .to_vec();
        Self {
            seed,
            shoot,
            nodes,
            _kubelets: kubelets,
            files,
            servers,
            held: vec![],
            probers: vec![],
        }
    }

    /// The same with a prober that has seen the leases change.
    pub async fn running() -> Self {
        Self::running_with(CONFIG).await
    }

    /// The same with another config.
    pub async fn running_with(config: &str) -> Self {
        let mut world = Self::new().await;
        world.start(config);
        // With an initial delay of 0 the second probe follows the first at once; by the third every
        // lease was seen to change.
        world.probes(3).await;
        world
    }

    pub fn write_config(&self, config: &str) {
        std::fs::write(self.files.path().join("config.yaml"), config).expect("a file");
    }

    pub fn start(&mut self, config: &str) {
        self.write_config(config);
        self.join(SEED_TOKEN);
    }

    /// Starts one more replica, which asks the seed with this token.
    pub fn join(&mut self, token: &str) {
        let path = |name: &str| self.files.path().join(name);
        let kubeconfig = format!("kubeconfig-{}", self.probers.len());
        std::fs::write(path(&kubeconfig), self.seed.kubeconfig(token)).expect("a file");
        let flag =
            |flag: &str, file: &str| OsString::from(format!("--{flag}={}", path(file).display()));
        let mut words = vec![
            "prober".into(),
            flag("config-file", "config.yaml"),
            flag("kubeconfig", &kubeconfig),
        ];
        words.extend(self.servers.iter().map(OsString::from));
        let args = AgentArgs::try_parse_from(words).expect("these flags exist");
        let stop = CancellationToken::new();
        let prober = prober::run_on(self.host(), args, stop.clone());
        self.probers.push((stop, tokio::spawn(prober)));
    }

    fn host(&self) -> Host {
        let to = |server: &Arc<MemoryApi>| {
            let server = server.clone();
            Dialer::new(move |_| ready(server.dial()))
        };
        Host {
            wall_clock: wall::now,
            seed: to(&self.seed),
            resources: Resources::dialing(to(&self.shoot)),
        }
    }

    /// Ends the prober that was started first, which must not take long.
    pub async fn stop(&mut self) {
        let (stop, task) = self.probers.remove(0);
        stop.cancel();
        timeout(STOP, task)
            .await
            .expect("it stops in time")
            .expect("no panic")
            .expect("no error");
    }

    /// The same as a crash would: nothing is finished.
    pub async fn kill(&mut self) {
        let (_, task) = self.probers.remove(0);
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
    }

    /// Ends everything; nothing that was asked for may have been forbidden, and no credential may
    /// have been shown.
    pub async fn end(mut self) {
        while !self.probers.is_empty() {
            self.stop().await;
        }
        for api in [&self.seed, &self.shoot] {
            let forbidden: Vec<Record> = api
                .requests()
                .all()
                .into_iter()
                .filter(|record| record.status == Some(403))
                .collect();
            assert!(forbidden.is_empty(), "{forbidden:?}");
        }
        let events = json!(self.seed.store().list("events", None));
        log::check("an Event", &events.to_string());
    }

    pub fn apply(&self, object: Value) {
        self.seed.store().apply(object).expect("applied");
    }

    /// Changes the embedded shoot.
    pub fn change_shoot(&self, change: impl FnOnce(&mut Value)) {
        self.seed
            .store()
            .update(CLUSTERS, "", NAMESPACE, |cluster| {
                change(&mut cluster["spec"]["shoot"])
            })
            .expect("changed");
    }

    /// Sets an annotation of a namespace; a null removes it.
    pub fn annotate(&self, namespace: &str, key: &str, value: Value) {
        if self.seed.store().get("namespaces", "", namespace).is_none() {
            self.apply(gardener::namespace(namespace));
        }
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.seed
            .store()
            .patch("namespaces", "", namespace, &patch)
            .expect("annotated");
    }

    pub fn delete_cluster(&self) {
        self.seed
            .store()
            .delete(CLUSTERS, "", NAMESPACE)
            .expect("deleted");
    }

    pub fn delete(&self, deployment: &str) {
        self.seed
            .store()
            .delete(DEPLOYMENTS, NAMESPACE, deployment)
            .expect("deleted");
    }

    /// Changes a dependent as someone else would.
    pub fn change(&self, deployment: &str, change: impl FnOnce(&mut Value)) {
        self.seed
            .store()
            .update(DEPLOYMENTS, NAMESPACE, deployment, change)
            .expect("changed");
    }

    /// Holds a dependent down as the prober does.
    pub fn hold_down(&self, deployment: &str, memory: &str) {
        self.change(deployment, |object| {
            object["spec"]["replicas"] = json!(0);
            object["metadata"]["annotations"] = json!({ REPLICAS: memory, PROTECTED: "" });
        });
    }

    pub fn dependent(&self, name: &str) -> DependentReplicas {
        dependent(self.seed.store(), name).expect("it exists")
    }

    /// Waits until the dependents KCM, MCM and CA are as wanted.
    pub async fn until(&self, wanted: [DependentReplicas; 3]) {
        let reached = self.seed.store().wait_for(|store| {
            let found = [KCM, MCM, CA].map(|name| dependent(store, name).unwrap_or_default());
            (found == wanted).then_some(())
        });
        let reached = timeout(PATIENCE, reached).await;
        assert!(
            reached.is_ok(),
            "not {wanted:?} but {:?}",
            [KCM, MCM, CA].map(|name| self.dependent(name))
        );
    }

    /// Waits until one Deployment is as wanted.
    pub async fn until_it_is(&self, name: &str, wanted: DependentReplicas) {
        let reached = self
            .seed
            .store()
            .wait_for(|store| (dependent(store, name)? == wanted).then_some(()));
        assert!(
            timeout(PATIENCE, reached).await.is_ok(),
            "{name} is {:?}",
            self.dependent(name)
        );
    }

    /// Waits for an Event about a dependent.
    pub async fn event(&self, reason: &'static str, name: &'static str) {
        let event = self.seed.store().wait_for(move |store| {
            let about = |event: &Value| {
                event["reason"] == reason
                    && event["message"]
                        .as_str()
                        .is_some_and(|text| text.contains(name))
            };
            store.list("events", None).iter().any(about).then_some(())
        });
        assert!(
            timeout(PATIENCE, event).await.is_ok(),
            "no {reason} of {name}"
        );
    }

    /// Waits until the shoot has answered so many more probes.
    pub async fn probes(&self, count: usize) {
        let before = self.shoot.requests().count(answered);
        let more = self.shoot.requests().wait_for(|all| {
            let answers = all.iter().filter(|record| answered(record)).count();
            (answers >= before + count).then_some(())
        });
        timeout(PATIENCE, more).await.expect("the shoot is probed");
    }

    /// The names that writes were asked for, in the order of their arrival.
    pub fn written(&self) -> Vec<String> {
        self.seed
            .requests()
            .all()
            .into_iter()
            .filter(scales)
            .map(|record| record.name)
            .collect()
    }

    /// Waits until so many writes were asked for.
    pub async fn writes(&self, count: usize) {
        let writes = self.seed.requests().wait_for(|all| {
            (all.iter().filter(|record| scales(record)).count() >= count).then_some(())
        });
        assert!(
            timeout(PATIENCE, writes).await.is_ok(),
            "{count} writes, but there were {:?}",
            self.written()
        );
    }
}

/// Whether a request is a write to a dependent; Events are none, nor is the Lease of the election.
pub fn scales(record: &Record) -> bool {
    record.is_write()
        && record.path.starts_with("/apis/")
        && !record.resource.starts_with("leases.")
}

fn answered(record: &Record) -> bool {
    record.path == LEASES && record.status == Some(200)
}

/// What matters of a dependent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DependentReplicas {
    pub replicas: i64,
    pub memory: Option<String>,
    pub marker: bool,
}

/// As an untouched dependent is.
pub fn at(replicas: i64) -> DependentReplicas {
    DependentReplicas {
        replicas,
        ..DependentReplicas::default()
    }
}

/// As a dependent is that is held down.
pub fn held(memory: &str) -> DependentReplicas {
    DependentReplicas {
        replicas: 0,
        memory: Some(memory.to_owned()),
        marker: true,
    }
}

fn dependent(store: &Store, name: &str) -> Option<DependentReplicas> {
    let object = store.get(DEPLOYMENTS, NAMESPACE, name)?;
    let annotation = |key: &str| {
        object["metadata"]["annotations"][key]
            .as_str()
            .map(str::to_owned)
    };
    Some(DependentReplicas {
        replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
        memory: annotation(REPLICAS),
        marker: annotation(PROTECTED).is_some(),
    })
}
