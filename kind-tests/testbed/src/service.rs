//! A Service in a shoot, with a pod on each of some nodes, and which of these its EndpointSlices
//! call ready.
//!
//! ```text
//! kubelet --Ready--> pod --endpointslice-controller--> EndpointSlice --watch--> Endpoints
//!                     ^-- not Ready: node-lifecycle-controller, as soon as the node is Unknown
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::kube_api::{Change, KubeApi};
use crate::wait::eventually;

const NAME: &str = "web";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
/// How long a watch that broke waits before it begins again.
const PAUSE: Duration = Duration::from_millis(200);

/// The Service of one shoot. Dropping it ends the watch.
pub struct Service {
    api: KubeApi,
    /// Each is named for its node.
    pods: BTreeSet<String>,
    /// How many there ever were.
    serial: usize,
    endpoints: Arc<Mutex<Endpoints>>,
    _watch: JoinSet<()>,
}

/// What the EndpointSlices have said.
#[derive(Debug, Default)]
pub struct Endpoints {
    /// Whether each pod is ready, by EndpointSlice.
    slices: BTreeMap<String, BTreeMap<String, bool>>,
    /// The pods that were ever not ready.
    pub lost: BTreeSet<String>,
    /// Since when none is ready.
    none_since: Option<Instant>,
    /// How long none was, before that.
    without: Duration,
}

impl Service {
    /// Creates it, with no pod yet.
    pub async fn create(api: &KubeApi) -> Result<Self> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
            "spec": {"selector": {"app": NAME}, "ports": [{"port": 80}]},
        });
        eventually("the API server has its namespaces", async || {
            api.create(SERVICES, &service).await
        })
        .await?;
        let endpoints = Arc::new(Mutex::new(Endpoints::default()));
        let _watch = JoinSet::from_iter([follow(api.clone(), endpoints.clone())]);
        Ok(Self {
            api: api.clone(),
            pods: BTreeSet::new(),
            serial: 0,
            endpoints,
            _watch,
        })
    }

    /// The same with pods on these nodes, see [`Service::run_on`].
    pub async fn over(api: &KubeApi, nodes: &[String]) -> Result<Self> {
        let mut service = Self::create(api).await?;
        service.run_on(nodes).await?;
        Ok(service)
    }

    /// Runs a pod on each of these nodes, and on no other, and waits until kube-controller-manager
    /// has made ready endpoints of all. From then on it is counted what is lost.
    pub async fn run_on(&mut self, nodes: &[String]) -> Result<()> {
        let nodes: BTreeSet<String> = nodes.iter().cloned().collect();
        for gone in &self.pods - &nodes {
            self.api.delete(&format!("{PODS}/{gone}")).await?;
        }
        for new in &nodes - &self.pods {
            self.serial += 1;
            self.run(&new, self.serial).await?;
        }
        self.pods = nodes;
        self.report(&self.pods).await?;
        eventually("all endpoints are ready", async || {
            let ready = self.endpoints().ready();
            ensure!(ready == self.pods.len(), "{ready} of {}", self.pods.len());
            Ok(())
        })
        .await?;
        let mut endpoints = self.endpoints();
        *endpoints = Endpoints {
            slices: std::mem::take(&mut endpoints.slices),
            ..Endpoints::default()
        };
        endpoints.count(Instant::now());
        Ok(())
    }

    async fn run(&self, node: &str, number: usize) -> Result<()> {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            // Static, so that a drain leaves it alone: no kubelet is there to confirm its end.
            "metadata": {"name": node, "labels": {"app": NAME}, "annotations": {"kubernetes.io/config.mirror": NAME}},
            "spec": {"nodeName": node, "containers": [{"name": NAME, "image": NAME}]},
        });
        self.api.create(PODS, &pod).await?;
        let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
        let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}});
        self.api
            .merge(&format!("{PODS}/{node}/status"), &status)
            .await
            .map(drop)
    }

    /// The kubelets report those pods as Ready again that others have set to not Ready.
    pub async fn report_lost(&self) -> Result<()> {
        let lost = self.endpoints().lost.clone();
        self.report(&lost).await
    }

    async fn report(&self, pods: &BTreeSet<String>) -> Result<()> {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        try_join_all(pods.iter().map(async |pod| {
            self.api
                .merge(&format!("{PODS}/{pod}/status"), &ready)
                .await
        }))
        .await?;
        Ok(())
    }

    /// What its EndpointSlices have said.
    pub fn endpoints(&self) -> MutexGuard<'_, Endpoints> {
        lock(&self.endpoints)
    }

    /// Deletes it and its pods.
    pub async fn end(self) -> Result<()> {
        self.api.delete(&format!("{SERVICES}/{NAME}")).await?;
        self.api
            .delete(&format!("{PODS}?labelSelector=app={NAME}"))
            .await?;
        self.api
            .delete(&format!(
                "{SLICES}?labelSelector=kubernetes.io/service-name={NAME}"
            ))
            .await
    }
}

impl Endpoints {
    /// How many are ready.
    pub fn ready(&self) -> usize {
        self.slices
            .values()
            .flat_map(BTreeMap::values)
            .filter(|is_ready| **is_ready)
            .count()
    }

    /// How long none was ready until now.
    pub fn without(&self, now: Instant) -> Duration {
        self.without + self.none_since.map_or(Duration::ZERO, |since| now - since)
    }

    fn apply(&mut self, change: &Change, now: Instant) {
        let (Change::Set(slice) | Change::Gone(slice)) = change;
        let name = slice["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.slices.remove(&name);
        if let (Change::Set(_), Some(endpoints)) = (change, slice["endpoints"].as_array()) {
            let pod = |it: &serde_json::Value| {
                Some((
                    it["targetRef"]["name"].as_str()?.to_owned(),
                    it["conditions"]["ready"] == true,
                ))
            };
            self.slices
                .insert(name, endpoints.iter().filter_map(pod).collect());
        }
        self.count(now);
    }

    fn count(&mut self, now: Instant) {
        let not_ready = self
            .slices
            .values()
            .flatten()
            .filter(|(_, is_ready)| !**is_ready);
        self.lost.extend(not_ready.map(|(pod, _)| pod.clone()));
        if self.ready() == 0 {
            self.none_since.get_or_insert(now);
        } else if let Some(since) = self.none_since.take() {
            self.without += now - since;
        }
    }
}

fn lock(endpoints: &Mutex<Endpoints>) -> MutexGuard<'_, Endpoints> {
    endpoints.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow(api: KubeApi, endpoints: Arc<Mutex<Endpoints>>) {
    loop {
        let _ = api
            .follow(SLICES, |change| {
                lock(&endpoints).apply(&change, Instant::now())
            })
            .await;
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_count_as_lost_once_they_were_not_ready_and_time_without_any_adds_up() {
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let slice = |name: &str, ready: &[(&str, bool)]| {
            let endpoint = |(pod, ready): &(&str, bool)| json!({"targetRef": {"name": pod}, "conditions": {"ready": ready}});
            Change::Set(
                json!({"metadata": {"name": name}, "endpoints": ready.iter().map(endpoint).collect::<Vec<_>>()}),
            )
        };
        let mut endpoints = Endpoints::default();
        for (second, change, ready, without) in [
            (0, slice("x", &[("a", true), ("b", true)]), 2, 0),
            (1, slice("x", &[("a", true), ("b", false)]), 1, 0),
            (2, slice("x", &[("a", false), ("b", false)]), 0, 0),
            (5, slice("y", &[("c", true)]), 1, 3),
            (6, slice("x", &[("b", true)]), 2, 3),
            (7, Change::Gone(json!({"metadata": {"name": "y"}})), 1, 3),
            (
                8,
                Change::Set(json!({"metadata": {"name": "x"}, "endpoints": null})),
                0,
                3,
            ),
            (9, slice("z", &[]), 0, 4),
        ] {
            endpoints.apply(&change, at(second));
            assert_eq!(
                (endpoints.ready(), endpoints.without(at(second)).as_secs()),
                (ready, without),
                "at {second}"
            );
        }
        assert_eq!(
            endpoints.lost,
            BTreeSet::from(["a".to_owned(), "b".to_owned()])
        );
    }
}
