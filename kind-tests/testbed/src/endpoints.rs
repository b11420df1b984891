//! Which endpoints of a Service are ready, as its EndpointSlices say, and which were lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::kube_api::{KubeApi, ObjectChange};
use crate::objects::{items, name};
use crate::wait::eventually;

/// Follows the EndpointSlices of a Service. Dropping it ends the watch.
pub struct EndpointWatch {
    endpoints: Arc<Mutex<ReadyEndpoints>>,
    _watch: JoinSet<()>,
}

/// What the EndpointSlices have said.
#[derive(Debug, Default)]
pub struct ReadyEndpoints {
    /// Whether each pod is ready, by EndpointSlice.
    slices: BTreeMap<String, BTreeMap<String, bool>>,
    /// The pods that were ever not ready.
    pub lost: BTreeSet<String>,
    /// The least that were ever ready.
    pub least: usize,
    /// Since when none is ready.
    none_since: Option<Instant>,
    /// How long none was, before that.
    without: Duration,
}

impl EndpointWatch {
    /// Follows a Service.
    pub fn start(api: &KubeApi, namespace: &str, service: &str) -> Self {
        let endpoints = Arc::new(Mutex::new(ReadyEndpoints::default()));
        let slices = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
        );
        let (api, watched) = (api.clone(), endpoints.clone());
        let watch = async move {
            let observe = |change| watched.lock().apply(&change, Instant::now());
            api.keep_following(&slices, observe).await;
        };
        Self {
            endpoints,
            _watch: JoinSet::from_iter([watch]),
        }
    }

    /// What the EndpointSlices have said.
    pub fn get(&self) -> MutexGuard<'_, ReadyEndpoints> {
        self.endpoints.lock()
    }

    /// Waits until `count` are ready, and counts from then on what is lost.
    pub async fn all_ready(&self, count: usize) -> Result<()> {
        eventually("all endpoints are ready", async || {
            let mut endpoints = self.get();
            let ready = endpoints.ready();
            ensure!(ready == count, "{ready} of {count}");
            endpoints.restart(Instant::now());
            Ok(())
        })
        .await
    }
}

impl ReadyEndpoints {
    /// How many are ready.
    pub fn ready(&self) -> usize {
        self.pods().filter(|(_, is_ready)| **is_ready).count()
    }

    /// How long none was ready until now.
    pub fn without(&self, now: Instant) -> Duration {
        self.without + self.none_since.map_or(Duration::ZERO, |since| now - since)
    }

    fn pods(&self) -> impl Iterator<Item = (&String, &bool)> {
        self.slices.values().flatten()
    }

    fn apply(&mut self, change: &ObjectChange, now: Instant) {
        match change {
            ObjectChange::Gone(slice) => drop(self.slices.remove(name(slice))),
            ObjectChange::Set(slice) => {
                let pods = items(&slice["endpoints"]).filter_map(|endpoint| {
                    let pod = endpoint["targetRef"]["name"].as_str()?;
                    Some((pod.to_owned(), endpoint["conditions"]["ready"] == true))
                });
                self.slices.insert(name(slice).to_owned(), pods.collect());
            }
        }
        self.count(now);
    }

    /// Forgets what was lost until now.
    fn restart(&mut self, now: Instant) {
        *self = Self {
            slices: std::mem::take(&mut self.slices),
            least: usize::MAX,
            ..Self::default()
        };
        self.count(now);
    }

    fn count(&mut self, now: Instant) {
        let not_ready = self
            .slices
            .values()
            .flatten()
            .filter(|(_, is_ready)| !**is_ready);
        self.lost.extend(not_ready.map(|(pod, _)| pod.clone()));
        self.least = self.least.min(self.ready());
        if self.ready() == 0 {
            self.none_since.get_or_insert(now);
        } else if let Some(since) = self.none_since.take() {
            self.without += now - since;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_count_as_lost_once_they_were_not_ready_and_time_without_any_adds_up() {
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let slice = |name: &str, ready: &[(&str, bool)]| {
            let endpoint = |(pod, ready): &(&str, bool)| json!({"targetRef": {"name": pod}, "conditions": {"ready": ready}});
            ObjectChange::Set(
                json!({"metadata": {"name": name}, "endpoints": ready.iter().map(endpoint).collect::<Vec<_>>()}),
            )
        };
        let mut endpoints = ReadyEndpoints::default();
        for (second, change, ready, without) in [
            (0, slice("x", &[("a", true), ("b", true)]), 2, 0),
            (1, slice("x", &[("a", true), ("b", false)]), 1, 0),
            (2, slice("x", &[("a", false), ("b", false)]), 0, 0),
            (5, slice("y", &[("c", true)]), 1, 3),
            (6, slice("x", &[("b", true)]), 2, 3),
            (
                7,
                ObjectChange::Gone(json!({"metadata": {"name": "y"}})),
                1,
                3,
            ),
            (
                8,
                ObjectChange::Set(json!({"metadata": {"name": "x"}, "endpoints": null})),
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
