//! Which shoots are probed: one task per shoot, started, notified and ended as its Cluster changes.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use common::backoff::Backoff;
use common::view::Key;
use futures::FutureExt;
use futures::future::join_all;
use prober_core::config::ResourceRef;
use prober_core::lifecycle::{Lifecycle, ShootSettings, is_in_operation, lifecycle, settings};
use prober_core::shoot::Start;
use prober_core::span;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::shoot::{self, Identity};

/// The longest wait before a probe that has panicked starts again: one that always does so panics
/// at most once a minute.
const MAX_RESTART_WAIT: Duration = Duration::from_secs(60);
/// A probe that went on for so long before it panicked starts again soon, whatever happened before.
const CALM: Duration = Duration::from_secs(3600);

pub struct Manager {
    shared: Shared,
    probes: HashMap<String, Running>,
}

type HeldDown = Vec<ResourceRef>;

struct Running {
    uid: String,
    settings: watch::Sender<ShootSettings>,
    cancel: CancellationToken,
    task: AbortOnDropHandle<HeldDown>,
}

impl Manager {
    pub fn new(shared: Shared) -> Self {
        Self {
            shared,
            probes: HashMap::new(),
        }
    }

    /// Follows the Clusters until cancelled, then ends all probes.
    pub async fn run(mut self, mut changes: mpsc::Receiver<Key>, cancelled: CancellationToken) {
        while let Some(Some(key)) = cancelled.run_until_cancelled(changes.recv()).await {
            self.follow(&key.name).await;
        }
        cancelled.cancelled().await;
        self.probes
            .values()
            .for_each(|running| running.cancel.cancel());
        join_all(self.probes.into_values().map(|running| running.task)).await;
    }

    async fn follow(&mut self, namespace: &str) {
        let cluster = self.shared.seed.clusters.get("", namespace);
        let owned = cluster
            .as_ref()
            .is_some_and(|cluster| !cluster.is_self_hosted());
        self.shared
            .owners()
            .update(namespace, owned, self.shared.clock.now());
        let Some(cluster) = cluster else {
            self.shared.statuses.set_state(namespace, None);
            return self.stop(namespace, "cluster_deleted").await;
        };
        if self
            .probes
            .get(namespace)
            .is_some_and(|running| running.uid != cluster.uid)
        {
            self.stop(namespace, "cluster_replaced").await;
        }
        let ClusterState { uid, seed, shoot } = cluster.as_ref();
        let shoot = match shoot {
            Some(Ok(shoot)) => shoot,
            Some(Err(error)) => {
                // An existing probe stays as it is (D-13).
                self.shared
                    .statuses
                    .set_state(namespace, Some("unreadable"));
                return tracing::warn!(
                    namespace,
                    error,
                    "Cluster holds a shoot that cannot be understood"
                );
            }
            None => {
                self.shared.statuses.set_state(namespace, Some("no_shoot"));
                return tracing::warn!(namespace, "Cluster holds no shoot");
            }
        };
        let lifecycle = lifecycle(shoot, seed.name.as_deref());
        self.shared
            .statuses
            .set_state(namespace, Some(lifecycle.as_str()));
        match (lifecycle, self.probes.get(namespace)) {
            (Lifecycle::Stop(reason), _) => self.stop(namespace, reason.into_str()).await,
            (_, Some(running)) => {
                let settings = settings(shoot);
                running
                    .settings
                    .send_if_modified(|known| std::mem::replace(known, settings) != *known);
            }
            (Lifecycle::Wait(reason), None) => tracing::debug!(
                namespace,
                reason = reason.into_str(),
                "shoot is not probed yet"
            ),
            (Lifecycle::Probe(settings), None) => {
                let now = self.shared.clock.now();
                let delay = span(self.shared.config.borrow().initial_delay);
                let in_operation = is_in_operation(shoot, delay, self.shared.clock.wall(now));
                self.start(
                    namespace,
                    uid.clone(),
                    settings,
                    Start {
                        eligible: now,
                        in_operation,
                    },
                );
            }
        }
    }

    fn start(&mut self, namespace: &str, uid: String, settings: ShootSettings, start: Start) {
        let span = tracing::info_span!("shoot", namespace);
        // Every replica probes, so this alone does not say who leads.
        let role = self.shared.role.standing().role;
        span.in_scope(|| tracing::info!(role, "shoot is probed from now on"));
        let identity = Identity {
            namespace: namespace.to_owned(),
            uid: uid.clone(),
            start,
        };
        let (settings, receiver) = watch::channel(settings);
        let cancel = CancellationToken::new();
        let (shared, cancelled) = (self.shared.clone(), cancel.clone());
        let task = async move {
            let probe = || {
                shoot::run(
                    identity.clone(),
                    shared.clone(),
                    receiver.clone(),
                    cancelled.clone(),
                )
            };
            restarted_on_panic(probe, &shared.metrics.panics, &cancelled).await
        };
        let task = AbortOnDropHandle::new(tokio::spawn(task.instrument(span)));
        self.probes.insert(
            namespace.to_owned(),
            Running {
                uid,
                settings,
                cancel,
                task,
            },
        );
    }

    /// Ends a probe and waits for its end, so that a successor never meets it (D-14, D-63).
    async fn stop(&mut self, namespace: &str, reason: &'static str) {
        let Some(Running { cancel, task, .. }) = self.probes.remove(namespace) else {
            return;
        };
        tracing::info!(namespace, reason, "probe ends");
        cancel.cancel();
        let held_down = task.await.unwrap_or_default();
        if !held_down.is_empty() {
            // As the Go original: whoever ends the probe decides about what it held down (D-49).
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

/// Runs a probe to its end, and from the beginning each time that it panics: the probes of other
/// shoots go on meanwhile.
async fn restarted_on_panic<P>(
    probe: impl Fn() -> P,
    panics: &Counter,
    cancelled: &CancellationToken,
) -> HeldDown
where
    P: Future<Output = HeldDown>,
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
            return HeldDown::new();
        }
    }
}

#[cfg(test)]
mod tests;
