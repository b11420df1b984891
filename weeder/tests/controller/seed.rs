//! A seed with Gardener's rights for the weeder, and the words to fill it.

use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, MemoryApi, Options, Record};
use common::events::Events;
use common::flags::LeaderElection;
use common::leader_election::{LeaderElector, Role};
use common::metrics::Registry;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use testbed::PATIENCE;
use testbed::gardener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use weeder::controller::{Controller, Instruments};

use crate::log::{self, TOKEN};

pub const SLICES: &str = "endpointslices.discovery.k8s.io";
pub const ETCD: &str = "etcd-main-client";

pub struct WeederSeed {
    pub server: MemoryApi,
}

pub struct RunningWeeder {
    task: JoinHandle<()>,
    cancel: CancellationToken,
    configs: watch::Sender<Arc<weeder_core::config::Config>>,
    pub instruments: Instruments,
}

impl RunningWeeder {
    /// Asks it to end and waits until it has. It has shown no credential.
    pub async fn end(self) {
        log::check(&self.shown().join("\n"));
        self.cancel.cancel();
        let ended = soon("the end of the weeder", self.task).await;
        ended.expect("no panic");
    }

    pub fn reconfigure(&self, text: &str) {
        self.configs.send_replace(config(text));
    }

    /// The lines of its metrics that are not 0.
    pub fn shown(&self) -> Vec<String> {
        let mut registry = Registry::default();
        self.instruments.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text.lines()
            .filter(|line| line.starts_with("dwd_weeder_") && !line.ends_with(" 0"))
            .map(str::to_owned)
            .collect()
    }

    /// Waits until a metric has at least this value.
    pub async fn counts(&self, metric: &str, least: u64) {
        let value = |line: &String| line.strip_prefix(metric)?.trim().parse::<u64>().ok();
        until(metric, async || {
            self.shown()
                .iter()
                .filter_map(value)
                .any(|value| value >= least)
        })
        .await;
    }
}

/// Gardener's config, whose watchDuration is the default.
pub fn gardeners() -> &'static str {
    include_str!("../../../config/weeder.yaml")
}

fn config(text: &str) -> Arc<weeder_core::config::Config> {
    Arc::new(weeder::config::parse(text).unwrap().config)
}

pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("awaited in vain: {what}"))
}

/// Asks again and again until it is so.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    soon(what, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

impl WeederSeed {
    pub async fn start() -> Self {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let authority = Authority::new().unwrap();
        let server = MemoryApi::start(&authority, Options::default());
        let server = server.await.unwrap();
        log::listen();
        server.access().grant(TOKEN, gardener::seed_weeder());
        Self { server }
    }

    pub async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::from_yaml(&self.server.kubeconfig(TOKEN)).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.unwrap();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// A candidate for the weeder's Lease.
    pub async fn elector(&self, renew_deadline: u64) -> (LeaderElector, Role) {
        let settings = LeaderElection {
            enabled: true,
            namespace: "garden".to_owned(),
            lease_duration: Duration::from_secs(renew_deadline + 5),
            renew_deadline: Duration::from_secs(renew_deadline),
            retry_period: Duration::from_secs(1),
        };
        let (lease, identity) = ("dwd-weeder-leader-election", "me".to_owned());
        LeaderElector::new(
            self.client().await,
            settings,
            lease,
            identity,
            Events::none(),
        )
    }

    pub async fn start_weeder_as(&self, role: Role) -> RunningWeeder {
        let (configs, receiver) = watch::channel(config(gardeners()));
        let (cancel, instruments) = (CancellationToken::new(), Instruments::default());
        let controller = Controller::new(self.client().await, receiver, role, instruments.clone());
        let task = tokio::spawn(controller.run(cancel.clone()));
        RunningWeeder {
            task,
            cancel,
            configs,
            instruments,
        }
    }

    /// A weeder that has begun to watch.
    pub async fn start_weeder(&self) -> RunningWeeder {
        let weeder = self.start_weeder_as(Role::Alone).await;
        self.watched(1).await;
        weeder
    }

    /// Waits until slices and pods have been watched so many times.
    pub async fn watched(&self, times: usize) {
        let watches = self.server.requests().wait_for(|records| {
            let count = |resource| {
                let begun = |record: &&Record| {
                    record.verb == "watch"
                        && record.resource == resource
                        && record.status == Some(200)
                };
                records.iter().filter(begun).count()
            };
            (count("pods") >= times && count(SLICES) >= times).then_some(())
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
        let store = self.server.store();
        let gone =
            store.wait_for(|store| store.get("pods", namespace, name).is_none().then_some(()));
        soon(&format!("the deletion of {namespace}/{name}"), gone).await;
    }

    /// Waits until one more recovery in a namespace of its own has been acted upon: what was to
    /// happen before has happened.
    pub async fn settle(&self) {
        let namespace = format!("settle-{}", self.server.store().revision());
        self.crash(&namespace, "barrier");
        self.recover(&namespace, ETCD);
        self.gone(&namespace, "barrier").await;
    }

    /// Waits until a weeder that may delete nothing has seen all that was applied: what cannot be
    /// understood comes last, and is counted.
    pub async fn seen(&self, weeder: &RunningWeeder) {
        self.crash("unreadable", "p");
        self.slice("unreadable", ETCD, false);
        for (resource, name, field) in [("pods", "p", "status"), (SLICES, ETCD, "endpoints")] {
            let mut unreadable = self
                .server
                .store()
                .get(resource, "unreadable", name)
                .unwrap();
            unreadable[field] = json!(8);
            self.apply(unreadable);
            let resource = resource.split('.').next().unwrap();
            let metric = format!("dwd_weeder_unreadable_objects_total{{resource=\"{resource}\"}}");
            weeder.counts(&metric, 1).await;
        }
    }

    pub fn has(&self, namespace: &str, name: &str) -> bool {
        self.server.store().get("pods", namespace, name).is_some()
    }

    pub fn lists(&self) -> Vec<Record> {
        let records = self.server.requests().all().into_iter();
        records.filter(|record| record.verb == "list").collect()
    }
}

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
