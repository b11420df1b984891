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

use crate::owner::resolver::Resolver;
use crate::owner::{self, Standing};
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
    /// Of the owner records; `None` while the config has no ownerCheck.
    resolver: Option<Arc<Resolver>>,
    owner_checks: JoinMap<String, ()>,
    /// Takes shoots whose owners have changed.
    changed: mpsc::Sender<Key>,
}

struct Running {
    uid: String,
    decree: Option<Verdict>,
    cancel: CancellationToken,
    task: AbortOnDropHandle<Vec<ResourceRef>>,
}

impl Manager {
    /// Of a probe that ends before `process` does, nothing under way is awaited: other Clusters
    /// would wait, too.
    pub(crate) fn new(
        shared: Shared,
        process: CancellationToken,
        changed: mpsc::Sender<Key>,
    ) -> Self {
        Self {
            shared,
            process,
            probes: BTreeMap::new(),
            resolver: None,
            owner_checks: JoinMap::new(),
            changed,
        }
    }

    /// Follows the Clusters and their owners until the process ends, then ends all probes.
    pub(crate) async fn run(mut self, mut changes: mpsc::Receiver<Key>) {
        let (process, mut configs) = (self.process.clone(), self.shared.config.clone());
        self.follow_config().await;
        loop {
            tokio::select! {
                biased;
                () = process.cancelled() => break,
                Ok(()) = configs.changed() => self.follow_config().await,
                Some((namespace, ended)) = self.owner_checks.join_next() => {
                    propagate_panic(ended);
                    self.follow(&namespace).await;
                }
                Some(key) = changes.recv() => self.follow(&key.name).await,
            }
        }
        self.probes
            .values()
            .for_each(|running| running.cancel.cancel());
        join_all(self.probes.into_values().map(|running| running.task)).await;
    }

    /// Applies the config's check of owner records to all shoots. What is known of them stays.
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
        let owners = self.shared.owners();
        let Some(resolver) = self.resolver.as_ref().filter(|_| has_owner) else {
            self.owner_checks.abort(namespace);
            owners.remove(namespace);
            return Ok(None);
        };
        let standing = owners.add(namespace, &resolver.check, self.shared.clock.now());
        if !self.owner_checks.contains_key(namespace) {
            let (resolver, changed) = (Arc::clone(resolver), self.changed.clone());
            let check = owner::check(self.shared.clone(), resolver, namespace.to_owned(), changed);
            self.owner_checks.spawn(namespace.to_owned(), check);
        }
        standing.decree(resolver.check.on_loss)
    }

    async fn follow(&mut self, namespace: &str) {
        let cluster = self.shared.seed.clusters.get("", namespace);
        let has_owner = cluster
            .as_ref()
            .is_some_and(|cluster| !cluster.is_self_hosted());
        let decree = self.check_owner(namespace, has_owner);
        let statuses = &self.shared.statuses;
        statuses.set_cluster(namespace, cluster.as_deref());
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
        let is_followed = is_wanted && decree == Ok(None);
        match self.probes.get(namespace) {
            Some(running) if running.uid != cluster.uid => {
                self.stop(namespace, "cluster_replaced", is_followed).await;
            }
            // As for a migration: what comes next begins as for a new shoot.
            Some(running) if decree != Ok(running.decree) => {
                self.stop(namespace, "owner_changed", is_followed).await;
            }
            _ => {}
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
            (_, Some(Lifecycle::Stop(reason))) => {
                self.stop(namespace, reason.into_str(), false).await;
            }
            (_, Some(Lifecycle::Wait(reason))) if !is_probed => tracing::debug!(
                namespace,
                reason = reason.into_str(),
                "shoot is not probed yet"
            ),
            (Some(Ok(shoot)), Some(Lifecycle::Probe)) if !is_probed => {
                let Ok(decree) = decree else { return };
                let now = self.shared.clock.now();
                let delay = span(self.shared.config.borrow().initial_delay);
                let start = Start {
                    eligible: now,
                    in_operation: is_in_operation(shoot, delay, self.shared.clock.wall(now)),
                };
                self.start(namespace, cluster, start, decree);
            }
            // It may have other settings.
            _ => self.shared.seed.wakers.wake(namespace),
        }
    }

    fn start(
        &mut self,
        namespace: &str,
        cluster: &Arc<ClusterState>,
        start: Start,
        decree: Option<Verdict>,
    ) {
        // Of the highest level, so that lines of every level name the shoot.
        let span = tracing::error_span!("shoot", namespace);
        // Every replica probes, so this alone does not say who leads.
        let role = self.shared.election.status().role.into_str();
        let decreed = decree.map(<&str>::from);
        span.in_scope(|| tracing::info!(role, decreed, "shoot is probed from now on"));
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
                task::run(shared, &name, state, start, decree, ends)
            };
            restarted_on_panic(probe, &shared.metrics.panics, &cancelled).await
        };
        let running = Running {
            uid: cluster.uid.clone(),
            decree,
            cancel,
            task: AbortOnDropHandle::new(tokio::spawn(probing.instrument(span))),
        };
        self.probes.insert(namespace.to_owned(), running);
    }

    /// Ends a probe and waits for its end, so that two probes of one shoot never overlap. What it
    /// held down is restored by the one that follows it at once, if there is one.
    async fn stop(&mut self, namespace: &str, reason: &'static str, is_followed: bool) {
        let Some(Running { cancel, task, .. }) = self.probes.remove(namespace) else {
            return;
        };
        tracing::info!(namespace, reason, "probe ends");
        cancel.cancel();
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
