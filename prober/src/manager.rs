//! Tasks of the shoots: each is started, notified and ended as its Cluster changes.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use common::backoff::Backoff;
use common::process::propagate_panic;
use common::view::Key;
use futures::FutureExt;
use futures::future::join_all;
use parking_lot::Mutex;
use prober_core::config::ResourceRef;
use prober_core::lifecycle::{Lifecycle, is_in_operation};
use prober_core::shoot::Start;
use prober_core::span;
use prober_core::verdict::Verdict;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, JoinMap};
use tracing::Instrument;

use crate::owner::dns::Resolver;
use crate::owner::{self, Standing};
use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::task::{self, Assignment};

/// Longest wait before a probe that has panicked starts again: one that always does so panics at
/// most once a minute.
const MAX_RESTART_WAIT: Duration = Duration::from_secs(60);
/// Time without a panic after which the next one is not waited for: the probe starts again soon.
const CALM: Duration = Duration::from_secs(3600);

pub(crate) struct Manager {
    shared: Shared,
    probes: BTreeMap<String, Running>,
    /// Of the owner records; `None` while the config has no ownerCheck.
    resolver: Option<Arc<Resolver>>,
    /// Each ends when the shoot's standing has changed.
    owner_checks: JoinMap<String, ()>,
}

struct Running {
    shoot: Arc<Assignment>,
    task: AbortOnDropHandle<Vec<ResourceRef>>,
}

impl Manager {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared,
            probes: BTreeMap::new(),
            resolver: None,
            owner_checks: JoinMap::new(),
        }
    }

    /// Follows the Clusters and their owners until the process ends, then ends all probes.
    pub(crate) async fn run(mut self, mut changes: mpsc::Receiver<Key>) {
        let (shutdown, mut configs) = (self.shared.shutdown.clone(), self.shared.config.clone());
        self.follow_config().await;
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Ok(()) = configs.changed() => self.follow_config().await,
                Some((namespace, ended)) = self.owner_checks.join_next() => {
                    propagate_panic(ended);
                    self.follow(&namespace).await;
                }
                Some(key) = changes.recv() => self.follow(&key.name).await,
            }
        }
        join_all(self.probes.into_values().map(|running| running.task)).await;
    }

    /// Applies the config's check of owner records to all shoots, at once. What is known of a shoot
    /// stays as long as its question does.
    async fn follow_config(&mut self) {
        let check = self.shared.config.borrow().owner_check.clone();
        if self.resolver.as_ref().map(|resolver| &resolver.check) == check.as_ref() {
            return;
        }
        self.owner_checks = JoinMap::new();
        self.resolver = check.map(|check| {
            tracing::info!(name = %check.name, value = %check.value, "owner records are checked");
            Arc::new(Resolver::new(check, &self.shared.resources))
        });
        for (key, _) in self.shared.seed.clusters.all() {
            self.shared.statuses.owner(&key.name, |record| {
                if let Some(record) = record {
                    record.check_at_once();
                }
            });
            self.follow(&key.name).await;
        }
    }

    /// Begins or ends the check of a shoot's owner record. Returns what follows for its task, as
    /// [`Standing::decree`].
    fn check_owner(
        &mut self,
        namespace: &str,
        has_owner: bool,
    ) -> Result<Option<Verdict>, Standing> {
        let statuses = &self.shared.statuses;
        let Some(resolver) = self.resolver.as_ref().filter(|_| has_owner) else {
            self.owner_checks.abort(namespace);
            statuses.owner(namespace, |record| *record = None);
            return Ok(None);
        };
        let standing = statuses.owner(namespace, |record| record.get_or_insert_default().standing);
        if !self.owner_checks.contains_key(namespace) {
            let checks = owner::follow(
                self.shared.clone(),
                Arc::clone(resolver),
                namespace.to_owned(),
            );
            self.owner_checks.spawn(namespace.to_owned(), checks);
        }
        standing.decree(resolver.check.on_loss)
    }

    async fn follow(&mut self, namespace: &str) {
        let cluster = self.shared.seed.clusters.get("", namespace);
        let statuses = &self.shared.statuses;
        statuses.set_cluster(namespace, cluster.as_deref());
        let has_owner = cluster
            .as_ref()
            .is_some_and(|cluster| !cluster.is_self_hosted());
        let decree = self.check_owner(namespace, has_owner);
        let Some(cluster) = cluster else {
            return self.stop(namespace, "cluster_deleted", false).await;
        };
        self.follow_cluster(namespace, &cluster, decree).await;
    }

    async fn follow_cluster(
        &mut self,
        namespace: &str,
        cluster: &Arc<ClusterState>,
        decree: Result<Option<Verdict>, Standing>,
    ) {
        let is_wanted = cluster.lifecycle == Some(Lifecycle::Probe);
        let probed = self.probes.get(namespace).map(|running| &running.shoot);
        let ends = match (probed, &cluster.lifecycle) {
            (Some(shoot), _) if shoot.cluster.uid != cluster.uid => Some("cluster_replaced"),
            // As for a migration: what comes next begins as for a new shoot.
            (Some(shoot), _) if decree != Ok(shoot.decree) => Some("owner_changed"),
            (_, Some(Lifecycle::Stop(reason))) => Some(reason.into_str()),
            _ => None,
        };
        if let Some(reason) = ends {
            let is_followed = is_wanted && decree == Ok(None);
            self.stop(namespace, reason, is_followed).await;
        }
        match (&cluster.shoot, decree) {
            // An existing probe stays as it is.
            (None, _) => tracing::warn!(namespace, "Cluster holds no shoot"),
            (Some(Err(error)), _) => tracing::warn!(
                namespace,
                error,
                "Cluster holds a shoot that cannot be understood"
            ),
            // It may have other settings.
            _ if self.probes.contains_key(namespace) => self.shared.seed.wakers.wake(namespace),
            (Some(Ok(shoot)), Ok(decree)) if is_wanted => {
                let now = self.shared.clock.now();
                let delay = span(self.shared.config.borrow().initial_delay);
                let start = Start {
                    eligible: now,
                    in_operation: is_in_operation(shoot, delay, self.shared.clock.wall(now)),
                };
                self.start(Assignment {
                    namespace: namespace.to_owned(),
                    cluster: Arc::clone(cluster),
                    start,
                    decree,
                    cancel: self.shared.shutdown.child_token(),
                    confirmed: Mutex::default(),
                });
            }
            _ => {}
        }
    }

    fn start(&mut self, shoot: Assignment) {
        let shoot = Arc::new(shoot);
        // Of the highest level, so that lines of every level name the shoot.
        let span = tracing::error_span!("shoot", namespace = shoot.namespace);
        // Every replica probes, so this alone does not say who leads.
        let role = self.shared.election.status().role.into_str();
        let decreed = shoot.decree.map(<&str>::from);
        span.in_scope(|| tracing::info!(role, decreed, "shoot is probed from now on"));
        let (shared, assigned) = (self.shared.clone(), Arc::clone(&shoot));
        let probing = async move {
            let probe = || task::run(&shared, &assigned);
            restarted_on_panic(probe, &shared.metrics.panics, &assigned.cancel).await
        };
        let task = AbortOnDropHandle::new(tokio::spawn(probing.instrument(span)));
        let namespace = shoot.namespace.clone();
        self.probes.insert(namespace, Running { shoot, task });
    }

    /// Ends a probe and waits for its end, so that two probes of one shoot never overlap. What it
    /// held down is restored by the one that follows it at once, if there is one.
    async fn stop(&mut self, namespace: &str, reason: &'static str, is_followed: bool) {
        let Some(Running { shoot, task }) = self.probes.remove(namespace) else {
            return;
        };
        tracing::info!(namespace, reason, "probe ends");
        shoot.cancel.cancel();
        let held_down = task.await.unwrap_or_default();
        if !held_down.is_empty() && !is_followed {
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
