//! Which shoots are probed: one task per shoot, started, notified and ended as its Cluster changes.

use std::collections::HashMap;
use std::time::Duration;

use common::view::Key;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::config::ResourceRef;
use crate::core::lifecycle::{Lifecycle, ShootSettings, is_in_operation, lifecycle, settings};
use crate::core::shoot::Start;
use crate::core::span;
use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::shoot::{self, Identity};

/// After so long without a panic the earlier ones of a shoot's task are forgotten.
const CALM: Duration = Duration::from_secs(3600);

pub struct Manager {
    shared: Shared,
    probes: HashMap<String, Running>,
    tasks: JoinSet<HeldDown>,
}

type HeldDown = Vec<ResourceRef>;

struct Running {
    uid: String,
    began: Began,
    started: Instant,
    settings: watch::Sender<ShootSettings>,
    cancel: CancellationToken,
    task: Id,
}

#[derive(Clone, Copy)]
struct Began {
    start: Start,
    /// How often its task has panicked without a calm time in between.
    panics: u32,
}

impl Manager {
    pub fn new(shared: Shared) -> Self {
        Self { shared, probes: HashMap::new(), tasks: JoinSet::new() }
    }

    /// Follows the Clusters until cancelled, then ends all probes.
    pub async fn run(mut self, mut changes: mpsc::Receiver<Key>, cancelled: CancellationToken) {
        loop {
            tokio::select! {
                () = cancelled.cancelled() => break,
                Some(key) = changes.recv() => self.follow(&key.name).await,
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => drop(self.ended(ended)),
            }
        }
        for running in self.probes.values() {
            running.cancel.cancel();
        }
        while self.tasks.join_next().await.is_some() {}
    }

    async fn follow(&mut self, namespace: &str) {
        let cluster = self.shared.seed.clusters.get("", namespace);
        self.shared.owners().follow(namespace, cluster.is_some(), self.shared.clock.now());
        let Some(cluster) = cluster else {
            self.shared.statuses.set_state(namespace, None);
            self.shared.statuses.history.forgo(namespace);
            return self.stop(namespace, "cluster_deleted").await;
        };
        if self.probes.get(namespace).is_some_and(|running| running.uid != cluster.uid) {
            self.stop(namespace, "cluster_replaced").await;
        }
        let ClusterState { uid, seed, shoot } = cluster.as_ref();
        let shoot = match shoot {
            Some(Ok(shoot)) => shoot,
            Some(Err(error)) => {
                // An existing probe stays as it is (D-13).
                self.shared.statuses.set_state(namespace, Some("unreadable"));
                return tracing::warn!(namespace, error, "Cluster holds a shoot that cannot be understood");
            }
            None => {
                self.shared.statuses.set_state(namespace, Some("no_shoot"));
                return tracing::warn!(namespace, "Cluster holds no shoot");
            }
        };
        let lifecycle = lifecycle(shoot, seed.name.as_deref());
        self.shared.statuses.set_state(namespace, Some(lifecycle.as_str()));
        match (lifecycle, self.probes.get(namespace)) {
            (Lifecycle::Stop(reason), _) => self.stop(namespace, reason.into_str()).await,
            (Lifecycle::Wait(_), Some(running)) => running.apply_settings(settings(shoot)),
            (Lifecycle::Wait(reason), None) => tracing::debug!(namespace, reason = reason.into_str(), "shoot is not probed yet"),
            (Lifecycle::Probe(settings), Some(running)) => running.apply_settings(settings),
            (Lifecycle::Probe(settings), None) => {
                let now = self.shared.clock.now();
                let delay = span(self.shared.config.borrow().initial_delay);
                let in_operation = is_in_operation(shoot, delay, self.shared.clock.wall(now));
                self.start(namespace, uid.clone(), settings, Began { start: Start { eligible: now, in_operation }, panics: 0 });
            }
        }
    }

    fn start(&mut self, namespace: &str, uid: String, settings: ShootSettings, began: Began) {
        let span = tracing::info_span!("shoot", namespace);
        // Every replica probes, so this alone does not say who leads.
        let role = self.shared.role.standing().role;
        span.in_scope(|| tracing::info!(role, "shoot is probed from now on"));
        let (settings, receiver) = watch::channel(settings);
        let cancel = CancellationToken::new();
        let identity = Identity { namespace: namespace.to_owned(), uid: uid.clone(), start: began.start };
        // In a box, or the task would have room for it twice: before and after the wait.
        let probe = Box::pin(shoot::run(identity, self.shared.clone(), receiver, cancel.clone()));
        let waited = cancel.clone().run_until_cancelled_owned(tokio::time::sleep(after_panics(began.panics)));
        let probe = async move {
            match waited.await {
                Some(()) => probe.await,
                None => HeldDown::new(),
            }
        };
        let task = self.tasks.spawn(probe.instrument(span)).id();
        let running = Running { uid, began, started: Instant::now(), settings, cancel, task };
        self.probes.insert(namespace.to_owned(), running);
    }

    /// Ends a probe and waits for its end, so that a successor never meets it (D-14, D-63).
    async fn stop(&mut self, namespace: &str, reason: &'static str) {
        let Some(running) = self.probes.remove(namespace) else { return };
        tracing::info!(namespace, reason, "probe ends");
        running.cancel.cancel();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            let (id, held_down) = self.ended(ended);
            if !held_down.is_empty() {
                // As the Go original: whoever ends the probe decides about what it held down (D-49).
                self.shared.metrics.probes_ended_while_held_down.inc();
                let held_down: Vec<String> = held_down.iter().map(ToString::to_string).collect();
                tracing::warn!(namespace, held_down = held_down.join(", "), "probe ended, what it holds down stays at 0");
            }
            if id == running.task {
                return;
            }
        }
    }

    /// Notes the end of a task; one that ended by itself has panicked and is replaced, without harm to the others.
    fn ended(&mut self, ended: Result<(Id, HeldDown), JoinError>) -> (Id, HeldDown) {
        let (id, held_down) = ended.unwrap_or_else(|error| (error.id(), HeldDown::new()));
        let by_itself = self.probes.extract_if(|_, running| running.task == id).next();
        if let Some((namespace, running)) = by_itself {
            self.shared.metrics.panics.inc();
            tracing::error!(namespace, "probe panicked and is restarted");
            let settings = running.settings.borrow().clone();
            let before = if running.started.elapsed() < CALM { running.began.panics } else { 0 };
            self.start(&namespace, running.uid, settings, Began { panics: before.saturating_add(1), ..running.began });
        }
        (id, held_down)
    }
}

/// A task that panics again and again does so at most once a minute.
fn after_panics(panics: u32) -> Duration {
    let seconds = if panics == 0 { 0 } else { 1_u64 << (panics - 1).min(6) };
    Duration::from_secs(seconds.min(60))
}

impl Running {
    fn apply_settings(&self, settings: ShootSettings) {
        self.settings.send_if_modified(|known| std::mem::replace(known, settings) != *known);
    }
}

#[cfg(test)]
mod tests;
