//! Which shoots are probed: one task per shoot, started, told and ended as its Cluster changes.

use std::collections::HashMap;

use common::view::Key;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::core::lifecycle::{Lifecycle, ShootSettings, lifecycle, settings};
use crate::seed::ClusterState;
use crate::shoot::{self, Shared};

/// Owns the tasks of all shoots.
pub struct Manager {
    shared: Shared,
    probes: HashMap<String, Running>,
    tasks: JoinSet<()>,
    /// The tasks that have not ended yet.
    namespaces: HashMap<Id, String>,
}

struct Running {
    uid: String,
    settings: watch::Sender<ShootSettings>,
    cancel: CancellationToken,
    task: Id,
}

impl Manager {
    /// A manager without probes.
    pub fn new(shared: Shared) -> Self {
        Self { shared, probes: HashMap::new(), tasks: JoinSet::new(), namespaces: HashMap::new() }
    }

    /// Follows the Clusters until cancelled, then ends all probes.
    pub async fn run(mut self, mut changes: mpsc::Receiver<Key>, cancelled: CancellationToken) {
        loop {
            tokio::select! {
                () = cancelled.cancelled() => break,
                Some(key) = changes.recv() => self.follow(&key.name).await,
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => self.ended(ended),
            }
        }
        for running in self.probes.values() {
            running.cancel.cancel();
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Makes the probe of one shoot what its Cluster says.
    async fn follow(&mut self, namespace: &str) {
        let cluster = self.shared.seed.clusters.get("", namespace);
        let Some(cluster) = cluster else {
            self.shared.board.note_state(namespace, None);
            return self.stop(namespace, "cluster_deleted").await;
        };
        if self.probes.get(namespace).is_some_and(|running| running.uid != cluster.uid) {
            self.stop(namespace, "cluster_replaced").await;
        }
        let ClusterState { uid, shoot } = cluster.as_ref();
        let shoot = match shoot {
            Some(Ok(shoot)) => shoot,
            Some(Err(error)) => {
                // An existing probe stays as it is (D-13).
                self.shared.board.note_state(namespace, Some("unreadable"));
                return tracing::warn!(namespace, error, "Cluster holds a shoot that cannot be understood");
            }
            None => {
                self.shared.board.note_state(namespace, Some("no_shoot"));
                return tracing::warn!(namespace, "Cluster holds no shoot");
            }
        };
        let lifecycle = lifecycle(shoot);
        self.shared.board.note_state(namespace, Some(lifecycle.as_str()));
        match lifecycle {
            Lifecycle::Stop(reason) => self.stop(namespace, reason.as_str()).await,
            Lifecycle::Wait(reason) => match self.probes.get(namespace) {
                Some(running) => running.tell(settings(shoot)),
                None => tracing::debug!(namespace, reason = reason.as_str(), "shoot is not probed yet"),
            },
            Lifecycle::Probe(settings) => match self.probes.get(namespace) {
                Some(running) => running.tell(settings),
                None => self.start(namespace, uid.clone(), settings),
            },
        }
    }

    fn start(&mut self, namespace: &str, uid: String, settings: ShootSettings) {
        let span = tracing::info_span!("shoot", namespace);
        span.in_scope(|| tracing::info!("probe starts"));
        let (settings, receiver) = watch::channel(settings);
        let cancel = CancellationToken::new();
        let eligible = self.shared.clock.now();
        let probe = shoot::run(namespace.to_owned(), self.shared.clone(), receiver, eligible, cancel.clone());
        let task = self.tasks.spawn(probe.instrument(span)).id();
        self.namespaces.insert(task, namespace.to_owned());
        self.probes.insert(namespace.to_owned(), Running { uid, settings, cancel, task });
    }

    /// Ends a probe and waits for its end, so that a successor never meets it (D-14, D-63).
    async fn stop(&mut self, namespace: &str, reason: &'static str) {
        let Some(running) = self.probes.remove(namespace) else { return };
        tracing::info!(namespace, reason, "probe ends");
        running.cancel.cancel();
        while self.namespaces.contains_key(&running.task)
            && let Some(ended) = self.tasks.join_next_with_id().await
        {
            self.ended(ended);
        }
    }

    /// Notes the end of a task; one that ended by itself has panicked and is replaced, without harm to the others.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let Some(namespace) = self.namespaces.remove(&id) else { return };
        if panicked
            && self.probes.get(&namespace).is_some_and(|running| running.task == id)
            && let Some(running) = self.probes.remove(&namespace)
        {
            self.shared.metrics.panicked();
            tracing::error!(namespace, "probe panicked and starts anew");
            let settings = running.settings.borrow().clone();
            self.start(&namespace, running.uid, settings);
        }
    }
}

impl Running {
    fn tell(&self, settings: ShootSettings) {
        self.settings.send_if_modified(|known| {
            let changed = *known != settings;
            *known = settings;
            changed
        });
    }
}
