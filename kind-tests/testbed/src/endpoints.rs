//! Which endpoints of a Service are ready, as its EndpointSlices say, and which were lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;

use crate::followed::Followed;
use crate::kube_api::{KubeApi, ObjectChange};
use crate::objects::{items, name};
use crate::wait::eventually;

/// Follows the EndpointSlices of a Service. Dropping it ends the watch.
pub type EndpointWatch = Followed<ReadyEndpoints>;

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
    pub fn of(api: &KubeApi, namespace: &str, service: &str) -> Self {
        let slices = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
        );
        Self::start(api, slices, ReadyEndpoints::default(), |seen, change| {
            seen.apply(&change, Instant::now());
        })
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
