//! A seed and a shoot in memory, with nodes that renew their leases, stand-ins for the seed's
//! kubelets, and probers.
//!
//! Nobody needs a socket to get to another, and tokio's paused clock stands still while somebody asks
//! what a prober serves: a test takes no longer than it computes.

use std::ffi::OsString;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, Fault, FaultId, MemoryApi, Options, Record, Store, When};
use chrono::SecondsFormat;
use clap::Parser;
use common::flags::AgentArgs;
use common::transport::Dialer;
use futures::FutureExt;
use prober::Host;
use prober::shoot_client::resources::Resources;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::control_plane::reserve_port;
use testbed::gardener::{self, PROTECTED, REPLICAS};
pub use testbed::gardener::{CA, KCM, MCM};
use testbed::kubelets::Kubelets;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use testbed::{PATIENCE, page, wall};
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::log::{self, SEED_TOKEN, SHOOT_TOKEN};

pub const NAMESPACE: &str = "shoot--p--s";
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
pub const DEPLOYMENTS: &str = "deployments.apps";
pub const MACHINES: &str = "machines.machine.sapcloud.io";
const CLUSTERS: &str = "clusters.extensions.gardener.cloud";
/// The Lease of the election.
pub const LOCK: &str = "dwd-prober-leader-election";
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
    /// Flags of probers that start from now on.
    pub flags: Vec<&'static str>,
    /// What the owner record says, if it can be resolved, and how often it was asked for.
    pub owner: watch::Sender<(Option<&'static str>, usize)>,
    /// In the order of their starts.
    probers: Vec<RunningProber>,
}

struct RunningProber {
    stop: CancellationToken,
    work: JoinHandle<anyhow::Result<()>>,
    /// Where it serves metrics, and all else.
    ports: [TcpSocket; 2],
}

impl ProberWorld {
    /// A healthy shoot with three nodes and all dependents at 1, on the seed `here`; no prober yet.
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
        log::listen();
        let authority = Authority::new().expect("an authority");
        let start = async || {
            let options = Options {
                resources: gardener::resources(),
                ..Options::default()
            };
            let server = MemoryApi::start(&authority, options).await;
            Arc::new(server.expect("an API server"))
        };
        let (seed, shoot) = (start().await, start().await);
        seed.access().grant(SEED_TOKEN, gardener::seed_prober());
        let plan = MemoryShootPlan {
            namespace: NAMESPACE,
            token: SHOOT_TOKEN,
            ..plan
        };
        let world = Self {
            nodes: plan.furnish(seed.store(), &shoot).expect("an empty seed"),
            _kubelets: Kubelets::start(seed.store(), &[DEPLOYMENTS], Duration::ZERO),
            seed,
            shoot,
            files: tempfile::tempdir().expect("a folder"),
            flags: vec![],
            owner: watch::Sender::default(),
            probers: vec![],
        };
        let internal = json!([{"name": "internal", "url": "https://api.s.p.internal.example.org"}]);
        world.change_cluster(json!({
            "seed": {"metadata": {"name": "here", "uid": "an-id"}},
            "shoot": {"status": {"advertisedAddresses": internal}},
        }));
        world
    }

    /// The same with a prober that has seen the leases change.
    pub async fn running() -> Self {
        Self::running_with(CONFIG).await
    }

    /// The same with another config.
    pub async fn running_with(config: &str) -> Self {
        Self::new().await.started(config).await
    }

    /// The same with a prober that has seen the leases change.
    pub async fn started(mut self, config: &str) -> Self {
        self.start(config);
        // With an initial delay of 0 the second probe follows the first at once; by the third every
        // lease was seen to change.
        self.probes(3).await;
        self
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
        let ports = [0, 0].map(|any| reserve_port(any).expect("a free port"));
        let [metrics, health] = ports.each_ref().map(address);
        let words = [
            "prober".to_owned(),
            format!("--config-file={}", path("config.yaml").display()),
            format!("--kubeconfig={}", path(&kubeconfig).display()),
            format!("--metrics-bind-address={metrics}"),
            format!("--health-bind-addr={health}"),
            "--pprof-bind-addr=0".to_owned(),
        ];
        let words = words.into_iter().map(OsString::from);
        let args = AgentArgs::try_parse_from(words.chain(self.flags.iter().map(OsString::from)));
        let stop = CancellationToken::new();
        let work = prober::run_on(self.host(), args.expect("these flags exist"), stop.clone());
        self.probers.push(RunningProber {
            stop,
            work: tokio::spawn(work),
            ports,
        });
    }

    fn host(&self) -> Host {
        let owner = self.owner.clone();
        let records = move |_| {
            owner.send_modify(|(_, asked)| *asked += 1);
            let (says, _) = *owner.borrow();
            ready(says.map(|says| vec![says.to_owned()])).boxed()
        };
        Host {
            wall_clock: wall::now,
            seed: dialer(&self.seed),
            resources: Resources::dialing(dialer(&self.shoot)).with_records(records),
        }
    }

    /// Ends the prober that was started first, which must not take long.
    pub async fn stop(&mut self) {
        let RunningProber { stop, work, .. } = self.probers.remove(0);
        stop.cancel();
        let ended = timeout(STOP, work).await.expect("it stops in time");
        ended.expect("no panic").expect("no error");
    }

    /// The same as a crash would: nothing is finished.
    pub async fn kill(&mut self) {
        let work = self.probers.remove(0).work;
        work.abort();
        assert!(work.await.is_err_and(|error| error.is_cancelled()));
    }

    /// Ends everything; nothing that was asked for may have been forbidden, and no credential may
    /// have been shown.
    pub async fn end(mut self) {
        while !self.probers.is_empty() {
            self.stop().await;
        }
        let is_forbidden = |record: &Record| record.status == Some(403);
        for api in [&self.seed, &self.shoot] {
            let all = api.requests().all();
            assert!(!all.iter().any(is_forbidden), "{all:?}");
        }
        let events = json!(self.seed.store().list("events", None));
        log::check("an Event", &events.to_string());
    }

    pub fn apply(&self, object: Value) {
        self.seed.store().apply(object).expect("applied");
    }

    /// Applies another shoot that is like this one, and shares its API server.
    pub fn apply_shoot(&self, namespace: &str) {
        for node in self.nodes.names() {
            self.apply(gardener::machine(namespace, node));
        }
        for name in [KCM, MCM, CA] {
            self.apply(gardener::deployment(namespace, name, 1));
        }
        let kubeconfig = self.shoot.kubeconfig(SHOOT_TOKEN);
        self.apply(gardener::probe_secret(namespace, &kubeconfig));
        self.apply(gardener::cluster(namespace, Some("4s")));
    }

    /// Changes the Cluster by a merge patch of its spec.
    pub fn change_cluster(&self, spec: Value) {
        let (store, patch) = (self.seed.store(), json!({ "spec": spec }));
        let changed = store.patch(CLUSTERS, "", NAMESPACE, &patch);
        changed.expect("a Cluster");
    }

    pub fn set_grace(&self, grace: &str) {
        let kcm = json!({"nodeMonitorGracePeriod": grace});
        let kubernetes = json!({"kubeControllerManager": kcm});
        self.change_cluster(json!({"shoot": {"spec": {"kubernetes": kubernetes}}}));
    }

    /// Sets an annotation of a namespace; a null removes it.
    pub fn annotate(&self, namespace: &str, key: &str, value: Value) {
        let store = self.seed.store();
        if store.get("namespaces", "", namespace).is_none() {
            self.apply(gardener::namespace(namespace));
        }
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let patched = store.patch("namespaces", "", namespace, &patch);
        patched.expect("annotated");
    }

    pub fn delete_cluster(&self) {
        let deleted = self.seed.store().delete(CLUSTERS, "", NAMESPACE);
        deleted.expect("a Cluster");
    }

    pub fn delete(&self, deployment: &str) {
        let store = self.seed.store();
        let deleted = store.delete(DEPLOYMENTS, NAMESPACE, deployment);
        deleted.expect("a Deployment");
    }

    /// Changes a dependent as someone else would.
    pub fn change(&self, deployment: &str, change: impl FnOnce(&mut Value)) {
        let store = self.seed.store();
        let changed = store.update(DEPLOYMENTS, NAMESPACE, deployment, change);
        changed.expect("a Deployment");
    }

    pub fn scale(&self, deployment: &str, replicas: i64) {
        self.change(deployment, |object| {
            object["spec"]["replicas"] = replicas.into()
        });
    }

    /// Holds a dependent down as the prober does.
    pub fn hold_down(&self, deployment: &str, memory: &str) {
        self.change(deployment, |object| {
            object["spec"]["replicas"] = json!(0);
            object["metadata"]["annotations"] = json!({ REPLICAS: memory, PROTECTED: "" });
        });
    }

    /// Requests to the seed meet a fault from now on.
    pub fn fails(&self, when: When, fault: Fault) -> FaultId {
        self.seed.faults().add(when, fault)
    }

    /// Something happens while a write to a dependent arrives.
    pub fn at_writes_to(&self, name: &'static str, act: impl Fn(&Store) + Send + Sync + 'static) {
        let store = self.seed.store().clone();
        let acts = move |record: &Record| {
            if scales(record) && record.name == name {
                act(&store);
            }
            false
        };
        self.fails(When::matches(acts), Fault::Stall);
    }

    /// Waits until so many requests have met a fault of the seed.
    pub async fn met(&self, fault: FaultId, count: u64) {
        let met = timeout(PATIENCE, self.seed.faults().met(fault, count));
        met.await.expect("it is met");
    }

    /// KCM, MCM and CA as they are.
    pub fn states(&self) -> [DependentReplicas; 3] {
        states(self.seed.store())
    }

    /// Waits until KCM, MCM and CA are as wanted.
    pub async fn until(&self, wanted: [DependentReplicas; 3]) {
        let store = self.seed.store();
        let reached = store.wait_for(|store| (states(store) == wanted).then_some(()));
        let reached = timeout(PATIENCE, reached).await;
        assert!(reached.is_ok(), "not {wanted:?} but {:?}", self.states());
    }

    pub async fn until_held(&self) {
        self.until(ALL_HELD.map(held)).await;
    }

    pub async fn until_up(&self) {
        self.until([at(1), at(1), at(1)]).await;
    }

    /// All nodes lose their way to the API server, and all is held down.
    pub async fn outage(&self) {
        self.nodes.cut_all();
        self.until_held().await;
    }

    /// It is over, and all is up again.
    pub async fn recovery(&self) {
        self.nodes.heal_all();
        self.until_up().await;
    }

    /// Another replica holds the Lease for ten minutes; whoever starts from now on is a candidate.
    pub fn hold_lease(&mut self) {
        let now = wall::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        let spec = json!({
            "holderIdentity": "another", "leaseDurationSeconds": 600, "acquireTime": now, "renewTime": now, "leaseTransitions": 0,
        });
        let metadata = json!({ "name": LOCK, "namespace": "garden" });
        self.apply(json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec }));
        self.flags.push("--enable-leader-election=true");
    }

    /// Waits until one Deployment is as wanted.
    pub async fn until_it_is(&self, name: &str, wanted: DependentReplicas) {
        let store = self.seed.store();
        let reached = store.wait_for(|store| (dependent(store, name) == wanted).then_some(()));
        let reached = timeout(PATIENCE, reached).await;
        let found = dependent(store, name);
        assert!(reached.is_ok(), "{name} is {found:?}");
    }

    /// Waits for an Event with this text in its message.
    pub async fn event(&self, reason: &str, text: &str) -> Value {
        let event = self.seed.store().wait_for(|store| {
            let says = |event: &Value| {
                let message = event["message"].as_str();
                event["reason"] == reason && message.is_some_and(|said| said.contains(text))
            };
            store.list("events", None).into_iter().find(says)
        });
        let event = timeout(PATIENCE, event).await;
        assert!(event.is_ok(), "no {reason} of {text}");
        event.expect("just asserted")
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

    /// Waits until the owner record was asked for so many more times.
    pub async fn owner_asked(&self, count: usize) {
        let mut owner = self.owner.subscribe();
        let (_, before) = *owner.borrow();
        let more = owner.wait_for(|(_, asked)| *asked >= before + count);
        let more = timeout(PATIENCE, more).await.expect("it is asked for");
        more.expect("a sender");
    }

    /// The owner record says this from now on.
    pub fn own(&self, says: Option<&'static str>) {
        self.owner.send_modify(|(said, _)| *said = says);
    }

    /// The names that writes were asked for, in the order of their arrival.
    pub fn written(&self) -> Vec<String> {
        let all = self.seed.requests().all().into_iter();
        all.filter(scales).map(|record| record.name).collect()
    }

    /// Waits until so many writes were asked for.
    pub async fn writes(&self, count: usize) {
        let writes = self.seed.requests().wait_for(|all| {
            (all.iter().filter(|record| scales(record)).count() >= count).then_some(())
        });
        let waited = timeout(PATIENCE, writes).await;
        assert!(waited.is_ok(), "not {count} but {:?}", self.written());
    }

    /// Where the last prober serves metrics, and all else.
    pub fn served_at(&self) -> [SocketAddr; 2] {
        let last = self.probers.last().expect("a prober");
        last.ports.each_ref().map(address)
    }

    /// A page of the last prober, once it serves.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let [metrics, health] = self.served_at();
        let at = if path == "/metrics" { metrics } else { health }.to_string();
        let served = async {
            loop {
                if let Ok(served) = page::get(&at, path, PATIENCE).await {
                    return served;
                }
                sleep(MOMENT).await;
            }
        };
        let served = timeout(PATIENCE, served).await.expect("it serves");
        log::check(path, &served.1);
        served
    }

    /// The text of the last prober's status page.
    pub async fn page(&self) -> String {
        let (status, page) = self.get("/").await;
        assert_eq!(status, 200);
        page
    }

    /// Waits until the last prober's status has something to show, and returns that.
    pub async fn status<T>(&self, shows: impl Fn(&Value) -> Option<T>) -> T {
        let shown = async {
            loop {
                let (_, body) = self.get("/statusz.json").await;
                if let Some(shown) = shows(&serde_json::from_str(&body).expect("JSON")) {
                    return shown;
                }
                sleep(MOMENT).await;
            }
        };
        timeout(PATIENCE, shown).await.expect("it is shown")
    }

    /// A metric of the last prober; `None` if it is not served.
    pub async fn metric(&self, series: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics").await;
        let served = page::ScrapedMetrics::read(&text).expect("metrics");
        served.values.get(series).copied()
    }

    /// Waits until a metric of the last prober has this value.
    pub async fn until_metric(&self, series: &str, value: f64) {
        let reached = async {
            while self.metric(series).await != Some(value) {
                sleep(MOMENT).await;
            }
        };
        let reached = timeout(PATIENCE, reached).await;
        let found = self.metric(series).await;
        assert!(reached.is_ok(), "{series} is {found:?}");
    }

    /// Waits until the last complete probe has found so many leases expired, and for two more
    /// probes.
    pub async fn until_expired(&self, count: f64) {
        self.until_metric("dwd_leases{state=\"expired\"}", count)
            .await;
        self.probes(2).await;
    }
}

/// The memory of KCM, MCM and CA in an outage.
const ALL_HELD: [&str; 3] = ["1", "1", "1"];
/// Time between two looks at what is served.
const MOMENT: Duration = Duration::from_millis(100);

/// The way to a server without sockets.
pub fn dialer(server: &Arc<MemoryApi>) -> Dialer {
    let server = server.clone();
    Dialer::new(move |_| ready(server.dial()))
}

fn address(port: &TcpSocket) -> SocketAddr {
    port.local_addr().expect("an address")
}

/// Whether a request is a write to a dependent; Events are none, nor is the Lease of the election.
pub fn scales(record: &Record) -> bool {
    record.is_write()
        && record.path.starts_with("/apis/")
        && !record.resource.starts_with("leases.")
}

/// Writes to one dependent.
pub fn writes_to(name: &'static str) -> When {
    When::matches(move |record| scales(record) && record.name == name)
}

fn answered(record: &Record) -> bool {
    record.path == LEASES && record.status == Some(200)
}

/// What matters of a dependent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DependentReplicas {
    replicas: i64,
    memory: Option<String>,
    marker: bool,
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

fn states(store: &Store) -> [DependentReplicas; 3] {
    [KCM, MCM, CA].map(|name| dependent(store, name))
}

/// As an untouched one at 0 where there is none.
fn dependent(store: &Store, name: &str) -> DependentReplicas {
    let Some(object) = store.get(DEPLOYMENTS, NAMESPACE, name) else {
        return DependentReplicas::default();
    };
    let annotation = |key: &str| object["metadata"]["annotations"][key].as_str();
    DependentReplicas {
        replicas: object["spec"]["replicas"].as_i64().unwrap_or(1),
        memory: annotation(REPLICAS).map(str::to_owned),
        marker: annotation(PROTECTED).is_some(),
    }
}
