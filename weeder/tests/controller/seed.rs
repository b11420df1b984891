//! A seed with Gardener's rights for the weeder, and the words to fill it.

use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, MemoryApi, Options, Record};
use common::leader_election::Role;
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
pub const API: &str = "kube-apiserver";

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
        soon("the end of the weeder", self.task)
            .await
            .expect("no panic");
    }

    /// The config changes to Gardener's with these lines.
    pub fn reconfigure(&self, lines: &str) {
        self.configs.send_replace(config(&gardeners(lines)));
    }

    /// ... or to another one.
    pub fn reconfigure_to(&self, text: &str) {
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
        let value = |line: &String| {
            line.strip_prefix(metric)?
                .strip_prefix(' ')?
                .parse::<u64>()
                .ok()
        };
        let counted = async {
            while !self
                .shown()
                .iter()
                .filter_map(value)
                .any(|value| value >= least)
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon(metric, counted).await;
    }
}

/// Gardener's config with the default watchDuration, and these lines.
pub fn gardeners(lines: &str) -> String {
    let gardeners = include_str!("../../../config/weeder.yaml").replace("watchDuration: 5m0s", "");
    format!("{gardeners}\n{lines}")
}

fn config(text: &str) -> Arc<weeder_core::config::Config> {
    Arc::new(weeder::config::parse(text).unwrap().config)
}

pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("awaited in vain: {what}"))
}

impl WeederSeed {
    pub async fn start() -> Self {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let server = MemoryApi::start(&Authority::new().unwrap(), Options::default())
            .await
            .unwrap();
        crate::log::listen();
        server.access().grant(TOKEN, gardener::seed_weeder());
        Self { server }
    }

    pub async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::from_yaml(&self.server.kubeconfig(TOKEN)).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Gardener's config with another watchDuration, and these lines.
    pub async fn start_weeder_with(&self, lines: &str, role: Role) -> RunningWeeder {
        let (configs, receiver) = watch::channel(config(&gardeners(lines)));
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
        let weeder = self.start_weeder_with("", Role::Alone).await;
        self.watched(1).await;
        weeder
    }

    /// Waits until slices and pods have been watched so many times.
    pub async fn watched(&self, times: usize) {
        let begun = |record: &Record, resource: &str| {
            record.verb == "watch" && record.resource == resource && record.status == Some(200)
        };
        let watches = self.server.requests().wait_for(|records| {
            let count = |resource| {
                records
                    .iter()
                    .filter(|record| begun(record, resource))
                    .count()
            };
            (count("pods") >= times && count(SLICES) >= times).then_some(())
        });
        soon("the watches", watches).await;
    }

    pub fn apply(&self, object: Value) {
        self.server.store().apply(object).unwrap();
    }

    /// The slice of a Service has these endpoints, each ready or not.
    pub fn slice(&self, namespace: &str, service: &str, endpoints: &[(&str, bool)]) {
        let endpoint = |(pod, ready): &(&str, bool)| {
            let target = json!({"kind": "Pod", "name": pod, "namespace": namespace, "uid": pod});
            json!({"addresses": ["10.0.0.1"], "conditions": {"ready": ready, "serving": ready}, "targetRef": target})
        };
        let endpoints: Vec<Value> = endpoints.iter().map(endpoint).collect();
        self.apply(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"namespace": namespace, "name": service, "labels": {"kubernetes.io/service-name": service}},
            "endpoints": endpoints, "ports": [],
        }));
    }

    /// A Service that was not ready is ready.
    pub fn recover(&self, namespace: &str, service: &str) {
        self.slice(namespace, service, &[("endpoint", false)]);
        self.slice(namespace, service, &[("endpoint", true)]);
    }

    /// Where one deletion per owner is the limit: `p` is deleted in an open window of namespace
    /// `a`, and `q` crash-loops beside it.
    pub async fn reach_the_limit(&self) {
        self.watched(1).await;
        self.recover("a", ETCD);
        self.apply(pod("a", "p", "apiserver"));
        self.gone("a", "p").await;
        self.apply(pod("a", "q", "apiserver"));
        self.settle().await;
    }

    /// Waits until a pod is gone.
    pub async fn gone(&self, namespace: &str, name: &str) {
        let gone = self
            .server
            .store()
            .wait_for(|store| store.get("pods", namespace, name).is_none().then_some(()));
        soon(&format!("the deletion of {namespace}/{name}"), gone).await;
    }

    /// Waits until one more recovery in a namespace of its own has been acted upon: what was to
    /// happen before has happened.
    pub async fn settle(&self) {
        let namespace = format!("settle-{}", self.server.store().revision());
        self.apply(pod(&namespace, "barrier", "apiserver"));
        self.recover(&namespace, ETCD);
        self.gone(&namespace, "barrier").await;
    }

    /// Waits until a weeder that may delete nothing has seen all that was applied: what cannot be
    /// understood comes last, and is counted.
    pub async fn seen(&self, weeder: &RunningWeeder) {
        let mut unreadable = pod("unreadable", "p", "apiserver");
        unreadable["status"] = json!(8);
        self.apply(unreadable);
        self.slice("unreadable", ETCD, &[]);
        let mut slice = self.server.store().get(SLICES, "unreadable", ETCD).unwrap();
        slice["endpoints"] = json!(8);
        self.apply(slice);
        for resource in ["pods", "endpointslices"] {
            let metric = format!("dwd_weeder_unreadable_objects_total{{resource=\"{resource}\"}}");
            weeder.counts(&metric, 1).await;
        }
    }

    pub fn has(&self, namespace: &str, name: &str) -> bool {
        self.server.store().get("pods", namespace, name).is_some()
    }

    /// The DELETEs so far in one namespace.
    pub fn deletes(&self, namespace: &str) -> Vec<Record> {
        let of_namespace =
            |record: &Record| record.verb == "delete" && record.namespace == namespace;
        self.server
            .requests()
            .all()
            .into_iter()
            .filter(of_namespace)
            .collect()
    }

    /// Waits until a DELETE of this pod has been answered so.
    pub async fn answered(&self, name: &str, status: u16) {
        let answered = self.server.requests().wait_for(|records| {
            let is_it = |record: &Record| {
                record.verb == "delete" && record.name == name && record.status == Some(status)
            };
            records.iter().any(is_it).then_some(())
        });
        soon(&format!("{status} for {name}"), answered).await;
    }
}

/// A pod of the control plane that crash-loops. Its UID is its own whenever it is made.
pub fn pod(namespace: &str, name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": namespace, "name": name, "labels": {"gardener.cloud/role": "controlplane", "role": role},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": role, "uid": role, "controller": true}],
        },
        "spec": {"containers": [{"name": "c", "image": "c"}]},
        "status": {"containerStatuses": [{"name": "c", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
    })
}

/// The same pod, with an owner of its own.
pub fn owned_alone(mut pod: Value) -> Value {
    pod["metadata"]["ownerReferences"][0]["uid"] = pod["metadata"]["name"].clone();
    pod
}

/// The same pod in good health.
pub fn healthy(namespace: &str, name: &str, role: &str) -> Value {
    let mut pod = pod(namespace, name, role);
    pod["status"] =
        json!({"containerStatuses": [{"name": "c", "ready": true, "state": {"running": {}}}]});
    pod
}
