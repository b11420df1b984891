//! Tasks of the shoots: each is started, notified and ended as its Cluster changes.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use common::backoff::Backoff;
use common::view::Key;
use futures::FutureExt;
use futures::future::join_all;
use prober_core::config::ResourceRef;
use prober_core::lifecycle::{Lifecycle, is_in_operation};
use prober_core::shoot::Start;
use prober_core::span;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::task::{self, Ends};

/// Longest wait before a probe that has panicked starts again: one that always does so panics at
/// most once a minute.
const MAX_RESTART_WAIT: Duration = Duration::from_secs(60);
/// Time without a panic after which the next one is not waited for: the probe starts again soon.
const CALM: Duration = Duration::from_secs(3600);

pub(crate) struct Manager {
    shared: Shared,
    process: CancellationToken,
    probes: BTreeMap<String, Running>,
}

struct Running {
    uid: String,
    cancel: CancellationToken,
    task: AbortOnDropHandle<Vec<ResourceRef>>,
}

impl Manager {
    /// Of a probe that ends before `process` does, nothing under way is awaited: other Clusters
    /// would wait, too.
    pub(crate) fn new(shared: Shared, process: CancellationToken) -> Self {
        Self {
            shared,
            process,
            probes: BTreeMap::new(),
        }
    }

    /// Follows the Clusters until the process ends, then ends all probes.
    pub(crate) async fn run(mut self, mut changes: mpsc::Receiver<Key>) {
        let process = self.process.clone();
        while let Some(Some(key)) = process.run_until_cancelled(changes.recv()).await {
            self.follow(&key.name).await;
        }
        process.cancelled().await;
        self.probes
            .values()
            .for_each(|running| running.cancel.cancel());
        join_all(self.probes.into_values().map(|running| running.task)).await;
    }

    async fn follow(&mut self, namespace: &str) {
        let Shared {
            clock,
            seed,
            statuses,
            ..
        } = &self.shared;
        let cluster = seed.clusters.get("", namespace);
        let has_owner = cluster
            .as_ref()
            .is_some_and(|cluster| !cluster.is_self_hosted());
        statuses.owners.update(namespace, has_owner, clock.now());
        statuses.set_cluster(namespace, cluster.as_deref());
        let Some(cluster) = cluster else {
            return self.stop(namespace, "cluster_deleted").await;
        };
        if self
            .probes
            .get(namespace)
            .is_some_and(|running| running.uid != cluster.uid)
        {
            self.stop(namespace, "cluster_replaced").await;
        }
        let is_probed = self.probes.contains_key(namespace);
        match (&cluster.shoot, &cluster.lifecycle) {
            // An existing probe stays as it is.
            (None, _) => tracing::warn!(namespace, "Cluster holds no shoot"),
            (Some(Err(error)), _) => tracing::warn!(
                namespace,
                error,
                "Cluster holds a shoot that cannot be understood"
            ),
            (_, Some(Lifecycle::Stop(reason))) => self.stop(namespace, reason.into_str()).await,
            (_, Some(Lifecycle::Wait(reason))) if !is_probed => tracing::debug!(
                namespace,
                reason = reason.into_str(),
                "shoot is not probed yet"
            ),
            (Some(Ok(shoot)), Some(Lifecycle::Probe)) if !is_probed => {
                let now = self.shared.clock.now();
                let delay = span(self.shared.config.borrow().initial_delay);
                let start = Start {
                    eligible: now,
                    in_operation: is_in_operation(shoot, delay, self.shared.clock.wall(now)),
                };
                self.start(namespace, &cluster, start);
            }
            // It may have other settings.
            _ => self.shared.seed.wakers.wake(namespace),
        }
    }

    fn start(&mut self, namespace: &str, cluster: &Arc<ClusterState>, start: Start) {
        // Of the highest level, so that lines of every level name the shoot.
        let span = tracing::error_span!("shoot", namespace);
        // Every replica probes, so this alone does not say who leads.
        let role = self.shared.election.status().role.into_str();
        span.in_scope(|| tracing::info!(role, "shoot is probed from now on"));
        let cancel = CancellationToken::new();
        let (shared, cancelled) = (self.shared.clone(), cancel.clone());
        let process = self.process.clone();
        let (name, state) = (namespace.to_owned(), Arc::clone(cluster));
        let probing = async move {
            let probe = || {
                let (shared, state) = (shared.clone(), Arc::clone(&state));
                let ends = Ends {
                    shoot: cancelled.clone(),
                    process: process.clone(),
                };
                task::run(shared, &name, state, start, None, ends)
            };
            restarted_on_panic(probe, &shared.metrics.panics, &cancelled).await
        };
        let running = Running {
            uid: cluster.uid.clone(),
            cancel,
            task: AbortOnDropHandle::new(tokio::spawn(probing.instrument(span))),
        };
        self.probes.insert(namespace.to_owned(), running);
    }

    /// Ends a probe and waits for its end, so that two probes of one shoot never overlap.
    async fn stop(&mut self, namespace: &str, reason: &'static str) {
        let Some(Running { cancel, task, .. }) = self.probes.remove(namespace) else {
            return;
        };
        tracing::info!(namespace, reason, "probe ends");
        cancel.cancel();
        let held_down = task.await.unwrap_or_default();
        if !held_down.is_empty() {
            // As in the Go original, whoever ends the probe decides about what it held down.
            self.shared.metrics.probes_ended_while_held_down.inc();
            let held_down: Vec<String> = held_down.iter().map(ToString::to_string).collect();
            tracing::warn!(
                namespace,
                held_down = held_down.join(", "),
                "probe ended, what it holds down stays at 0"
            );
        }
    }
}

/// Runs a probe to its end, and starts it again after each panic, which affects no other shoot.
async fn restarted_on_panic<P>(
    probe: impl Fn() -> P,
    panics: &Counter,
    cancelled: &CancellationToken,
) -> Vec<ResourceRef>
where
    P: Future<Output = Vec<ResourceRef>>,
{
    let fresh = || Backoff::new(Duration::from_secs(1), MAX_RESTART_WAIT);
    let mut backoff = fresh();
    loop {
        let started = Instant::now();
        // In a box, or the task would have room for it twice: before and after it is begun.
        if let Ok(held_down) = AssertUnwindSafe(Box::pin(probe())).catch_unwind().await {
            return held_down;
        }
        panics.inc();
        tracing::error!("probe panicked and is restarted");
        if started.elapsed() >= CALM {
            backoff = fresh();
        }
        let wait = sleep(backoff.wait());
        if cancelled.run_until_cancelled(wait).await.is_none() {
            return Vec::new();
        }
    }
}

#[cfg(test)]
mod tests;
