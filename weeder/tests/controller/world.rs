//! A seed in memory with Gardener's rights for the weeder, the words to fill it, and a weeder.
//!
//! The weeder needs no socket to get to the seed, and tokio's paused clock stands still while somebody
//! asks what it serves: a test takes no longer than it computes.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, Fault, FaultId, MemoryApi, Options, Record, When};
use clap::Parser;
use common::flags::AgentArgs;
use common::metrics::RequestCounter;
use common::seed_client::{self, KubeconfigChoice};
use common::transport::Dialer;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::control_plane::reserve_port;
use testbed::page::ScrapedMetrics;
use testbed::{PATIENCE, gardener, page};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::log::{self, TOKEN};

pub const SLICES: &str = "endpointslices.discovery.k8s.io";
pub const ETCD: &str = "etcd-main-client";
pub const LEASES: &str = "leases.coordination.k8s.io";
pub const LOCK: &str = "dwd-weeder-leader-election";
/// A candidate for the lead.
pub const ELECTS: &str = "--enable-leader-election=true";

pub struct WeederWorld {
    pub server: Arc<MemoryApi>,
    files: TempDir,
    /// Where the weeder serves metrics, and all else.
    ports: [TcpSocket; 2],
    weeder: Option<(CancellationToken, JoinHandle<anyhow::Result<()>>)>,
}

/// Gardener's config, whose watchDuration is the default.
pub fn gardeners() -> &'static str {
    include_str!("../../../config/weeder.yaml")
}

pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("awaited in vain: {what}"))
}

impl WeederWorld {
    /// A seed; no weeder yet.
    pub async fn new() -> Self {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let authority = Authority::new().unwrap();
        let server = MemoryApi::start(&authority, Options::default());
        let server = Arc::new(server.await.unwrap());
        log::listen();
        server.access().grant(TOKEN, gardener::seed_weeder());
        Self {
            server,
            files: tempfile::tempdir().unwrap(),
            ports: [0, 0].map(|any| reserve_port(any).unwrap()),
            weeder: None,
        }
    }

    /// The same with a weeder that has begun to watch, with these flags.
    pub async fn weeded(flags: &[&str]) -> Self {
        let mut world = Self::new().await;
        world.start(flags);
        world.watched(1).await;
        world
    }

    pub fn configure(&self, text: &str) -> String {
        self.write("config.yaml", text)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub fn start(&mut self, flags: &[&str]) {
        let [metrics, health] = [0, 1].map(|port| self.address(port));
        let words = [
            "weeder",
            &format!("--config-file={}", self.configure(gardeners())),
            &format!("--kubeconfig={}", self.kubeconfig()),
            &format!("--metrics-bind-addr={metrics}"),
            &format!("--health-bind-addr={health}"),
        ];
        let args = AgentArgs::try_parse_from(words.iter().chain(flags)).expect("these flags exist");
        let stop = CancellationToken::new();
        let weeder = tokio::spawn(weeder::run_on(self.dialer(), args, stop.clone()));
        self.weeder = Some((stop, weeder));
    }

    fn kubeconfig(&self) -> String {
        self.write("kubeconfig", &self.server.kubeconfig(TOKEN))
    }

    /// The way to the seed.
    fn dialer(&self) -> Dialer {
        let server = Arc::clone(&self.server);
        Dialer::new(move |_| ready(server.dial()))
    }

    /// Asks the weeder to end, and waits until it has.
    pub async fn end(&mut self) {
        let (stop, weeder) = self.weeder.take().unwrap();
        stop.cancel();
        let ended = soon("the end of the process", weeder).await;
        ended.expect("no panic").expect("no error");
    }

    fn address(&self, port: usize) -> String {
        self.ports[port].local_addr().unwrap().to_string()
    }

    async fn served(&self, port: usize, path: &str) -> (u16, String) {
        let at = self.address(port);
        let served = async {
            loop {
                if let Ok(served) = page::get(&at, path, PATIENCE).await {
                    return served;
                }
                sleep(MOMENT).await;
            }
        };
        let served = soon("an answer", served).await;
        log::check(&served.1);
        served
    }

    /// Waits until an endpoint has this status, and a line of this text.
    pub async fn answers(&self, path: &str, status: u16, line: &str) {
        let answers = async {
            loop {
                let (found, text) = self.served(1, path).await;
                if found == status && text.contains(line) {
                    break;
                }
                sleep(MOMENT).await;
            }
        };
        soon(&format!("{path} with {status} and {line}"), answers).await;
    }

    pub async fn metrics(&self) -> ScrapedMetrics {
        ScrapedMetrics::read(&self.served(0, "/metrics").await.1).unwrap()
    }

    /// Waits until a metric has this value.
    pub async fn counts(&self, series: &str, value: f64) {
        let counted = async {
            while self.metrics().await.values.get(series) != Some(&value) {
                sleep(MOMENT).await;
            }
        };
        soon(&format!("{series} {value}"), counted).await;
    }

    /// A client of the seed with the weeder's rights.
    pub async fn client(&self) -> Client {
        let file = self.kubeconfig();
        let (choice, counter) = (
            KubeconfigChoice::path(Some(Path::new(&file))),
            RequestCounter::default(),
        );
        let client = seed_client::connect(self.dialer(), choice, &counter);
        client.await.unwrap()
    }

    /// Requests meet a fault.
    pub fn fails(&self, when: When, fault: Fault) -> FaultId {
        self.server.faults().add(when, fault)
    }

    /// Waits until slices and pods have been watched so many times.
    pub async fn watched(&self, times: usize) {
        let watches = self.server.requests().wait_for(|records| {
            let begun = |resource| {
                let begun = |record: &&Record| {
                    record.verb == "watch"
                        && record.resource == resource
                        && record.status == Some(200)
                };
                records.iter().filter(begun).count() >= times
            };
            (begun("pods") && begun(SLICES)).then_some(())
        });
        soon("the watches", watches).await;
    }

    pub fn apply(&self, object: Value) {
        self.server.store().apply(object).unwrap();
    }

    /// A pod of a ReplicaSet of its own crash-loops, and depends on etcd.
    pub fn crash(&self, namespace: &str, name: &str) {
        self.apply(pod(namespace, name));
    }

    /// The slice of a Service has one endpoint, ready or not.
    pub fn slice(&self, namespace: &str, service: &str, is_ready: bool) {
        let target =
            json!({"kind": "Pod", "name": service, "namespace": namespace, "uid": service});
        let conditions = json!({"ready": is_ready, "serving": is_ready});
        self.apply(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"namespace": namespace, "name": service, "labels": {"kubernetes.io/service-name": service}},
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": target}], "ports": [],
        }));
    }

    /// A Service that was not ready is ready.
    pub fn recover(&self, namespace: &str, service: &str) {
        self.slice(namespace, service, false);
        self.slice(namespace, service, true);
    }

    /// Waits until a pod is gone.
    pub async fn gone(&self, namespace: &str, name: &str) {
        let is_gone = self.server.store().wait_for(|store| {
            let pod = store.get("pods", namespace, name);
            pod.is_none().then_some(())
        });
        soon(&format!("the deletion of {namespace}/{name}"), is_gone).await;
    }

    /// Waits until one more recovery in a namespace of its own has been acted upon: what was to
    /// happen before has happened.
    pub async fn settle(&self) {
        let namespace = format!("settle-{}", self.server.store().revision());
        self.crash(&namespace, "barrier");
        self.recover(&namespace, ETCD);
        self.gone(&namespace, "barrier").await;
    }

    pub fn has(&self, namespace: &str, name: &str) -> bool {
        self.server.store().get("pods", namespace, name).is_some()
    }

    pub fn lists(&self) -> Vec<Record> {
        let records = self.server.requests().all().into_iter();
        records.filter(|record| record.verb == "list").collect()
    }
}

/// Time between two looks at what is served.
const MOMENT: Duration = Duration::from_millis(50);

/// A pod of the control plane that crash-loops. Its UID is its own whenever it is made.
pub fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": namespace, "name": name, "labels": {"gardener.cloud/role": "controlplane", "role": "apiserver"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true}],
        },
        "spec": {"containers": [{"name": "c", "image": "c"}]},
        "status": {"containerStatuses": [{"name": "c", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
    })
}

/// The same pod in good health.
pub fn healthy(namespace: &str, name: &str) -> Value {
    let mut pod = pod(namespace, name);
    pod["status"] =
        json!({"containerStatuses": [{"name": "c", "ready": true, "state": {"running": {}}}]});
    pod
}
