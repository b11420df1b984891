//! A restore by hand, whether or not a prober runs. It drives the prober's state machine, so that
//! order, delays, remembered replicas, conflicts and retries are the same.
//!
//! ```text
//! probe: leases --> paused Shoot --> verdict
//! next: leases, or --force --> Shoot, as the leader's --> writes, until nothing is left to restore
//! ```
//!
//! It never scales down: it ends as soon as the prober would.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use prober_core::config::{Dependent, DependentId, ResourceRef};
use prober_core::options::ResolvedOptions;
use prober_core::plan::Direction;
use prober_core::refusal::Refusal;
use prober_core::replicas::scale_up;
use prober_core::shoot::{Environment, Report, Start};
use prober_core::verdict::{Scope, Verdict};
use tokio::time::Instant;

use crate::driver::{Driver, Reporter, ShootContext};
use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::shoot_client::error::ProbeError;

/// Limits after which a restore stops before its end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time for the verdict, and for each event of a restore.
    pub timeout: Duration,
    pub failed_probes: u32,
}

#[derive(Debug)]
pub enum RestoreEvent {
    /// Replicas before and after: the same where only annotations were removed.
    Written {
        resource: ResourceRef,
        before: i32,
        after: i32,
        used_default_replicas: bool,
    },
    NotReady(ResourceRef),
    /// It could not be scaled within its timeout; the rest goes on without it.
    LeftBehind(ResourceRef),
    KeepsChanging(ResourceRef),
    Failed(ResourceRef, Refusal),
}

/// Reason why a restore stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    #[error("the leases say that the nodes have lost the way to their API server again")]
    Outage,
    #[error("its Cluster says that it is not to be probed any more")]
    NotProbed,
    #[error("whether the nodes reach their API server is not known any more: {0}")]
    Unknown(String),
    #[error("nothing more could be written within {} s", .0.as_secs())]
    Stuck(Duration),
}

/// True if only what is held down comes back; the namespaces may say so where they cannot be read.
pub fn only_held_down(options: Option<ResolvedOptions>) -> bool {
    options.is_none_or(|options| options.restore_only_held_down.value)
}

pub struct ManualRestore {
    driver: Driver<RestoreReporter>,
    last_event: Instant,
}

struct RestoreReporter {
    forced: bool,
    /// Dependents to restore; `None` before the restore has begun, so that nothing is written.
    scope: Option<Scope>,
    /// Reason why the last probe was not complete.
    failure: Option<String>,
    events: VecDeque<RestoreEvent>,
    end: Option<Result<(), Stopped>>,
}

impl ManualRestore {
    /// With `forced` the shoot is not probed, and its Cluster is not asked whether it may be.
    pub fn new(shared: Shared, namespace: &str, cluster: Arc<ClusterState>, forced: bool) -> Self {
        let start = Start {
            eligible: shared.clock.now(),
            in_operation: true,
        };
        let mut driver = Driver::new(shared, namespace, cluster, start, |_| RestoreReporter {
            forced,
            scope: None,
            failure: None,
            events: VecDeque::new(),
            end: None,
        });
        if forced {
            driver.skip_probes();
        }
        Self {
            driver,
            last_event: Instant::now(),
        }
    }

    /// Probes until the verdict is clear, and writes nothing. Fails with the reason why it is not
    /// known.
    pub async fn probe(&mut self, limits: Limits) -> Result<Verdict, String> {
        let deadline = Instant::now() + limits.timeout;
        self.driver.wake();
        loop {
            let verdict = self.verdict();
            // Any hold may end when nodes are seen to renew.
            let is_clear = verdict
                .as_ref()
                .is_ok_and(|verdict| verdict.aim().is_some());
            if is_clear || self.has_failed(limits) || Instant::now() >= deadline {
                return verdict;
            }
            self.driver.step_until(deadline).await;
        }
    }

    fn has_failed(&self, limits: Limits) -> bool {
        self.driver.context().shoot.failures() >= limits.failed_probes
    }

    /// Dependents that may come back: those of a verdict that says "up", and otherwise only what
    /// carries the marker.
    pub fn scope(&self) -> Scope {
        match self.verdict().map(Verdict::aim) {
            Ok(Some((Direction::Up, scope))) => scope,
            _ => Scope::HeldDown,
        }
    }

    /// Writes from now on.
    pub fn begin(&mut self) {
        let scope = self.scope();
        self.driver.reporter_mut().scope = Some(scope);
        self.last_event = Instant::now();
        self.driver.wake();
    }

    /// Next event of a restore that has begun; `None` when it is over.
    pub async fn next(&mut self, limits: Limits) -> Result<Option<RestoreEvent>, Stopped> {
        let limit = limits.timeout + self.longest_scale_up();
        loop {
            let reporter = self.driver.reporter_mut();
            if let Some(event) = reporter.events.pop_front() {
                self.last_event = Instant::now();
                return Ok(Some(event));
            }
            if let Some(end) = reporter.end.take() {
                return end.map(|()| None);
            }
            if self.driver.context().shoot.scaling().is_none() && self.remaining().is_empty() {
                return Ok(None);
            }
            if self.has_failed(limits) {
                let failure = self.driver.reporter_mut().failure.take();
                return Err(Stopped::Unknown(failure.unwrap_or_default()));
            }
            if self.last_event.elapsed() >= limit {
                return Err(Stopped::Stuck(limit));
            }
            self.driver.step_until(self.last_event + limit).await;
        }
    }

    /// Longest time for a dependent, its tries included.
    fn longest_scale_up(&self) -> Duration {
        let duration = |Dependent { scale_up, .. }: &Dependent| {
            scale_up.initial_delay.saturating_add(4 * scale_up.timeout)
        };
        let dependents = self.driver.context().config.dependents.iter();
        dependents.map(duration).max().unwrap_or_default()
    }

    /// Dependents that a restore would still write.
    pub fn remaining(&self) -> Vec<&ResourceRef> {
        let ShootContext {
            namespace,
            shared,
            config,
            shoot,
            ..
        } = self.driver.context();
        let only_held_down = only_held_down(shared.seed.options(config, namespace));
        let scope = self.driver.reporter().scope;
        let scope = scope.unwrap_or_else(|| self.scope());
        shoot
            .dependents()
            .filter(|dependent| {
                dependent
                    .observed()
                    .is_some_and(|observed| scale_up(observed, scope, only_held_down).is_some())
            })
            .map(|dependent| &dependent.resource)
            .collect()
    }

    /// Verdict of the last probe, or the reason why it is not known.
    fn verdict(&self) -> Result<Verdict, String> {
        self.driver.context().shoot.verdict().ok_or_else(|| {
            let failure = self.driver.reporter().failure.clone();
            failure.unwrap_or_else(|| "there is no answer yet".to_owned())
        })
    }
}

impl Reporter for RestoreReporter {
    /// Lifts a pause, which binds the prober and not whoever asks for a restore.
    fn adjust(&mut self, env: &mut Environment<'_>) {
        env.options.restore_only_held_down.value |= env.paused.is_none();
        env.options.scale_up_stabilization.value = Duration::ZERO;
        env.paused = Some(self.scope.is_none());
        env.is_ours |= self.forced;
    }

    fn report(&mut self, context: &ShootContext, report: Report) {
        let resource = |at: DependentId| context.config.dependent(at).resource.clone();
        let mut happened = |event| self.events.push_back(event);
        match report {
            Report::Written {
                dependent, change, ..
            } => happened(RestoreEvent::Written {
                resource: resource(dependent),
                before: change.base.replicas,
                after: change.replicas(),
                used_default_replicas: change.write.used_default_replicas,
            }),
            Report::NotScaled(at, Direction::Up, refusal) => {
                happened(RestoreEvent::Failed(resource(at), refusal));
            }
            Report::NotReady(at) => happened(RestoreEvent::NotReady(resource(at))),
            Report::LeftBehind(at) => happened(RestoreEvent::LeftBehind(resource(at))),
            Report::KeepsChanging(at) => happened(RestoreEvent::KeepsChanging(resource(at))),
            Report::MachinesUnknown => {
                self.failure = Some("the seed's Machines are not known".to_owned());
            }
            Report::Ended(Direction::Up, ..) => {
                self.end.get_or_insert(Ok(()));
            }
            Report::Abandoned(_) | Report::Begun(Direction::Down) => {
                let stopped = match context.shoot.verdict() {
                    Some(Verdict::ScaleDown) => Stopped::Outage,
                    _ => Stopped::NotProbed,
                };
                self.end.get_or_insert(Err(stopped));
            }
            // A dry run's, and those of a scaling down that never begins here.
            Report::Found
            | Report::Begun(Direction::Up)
            | Report::NotOwner(_)
            | Report::Waits(..)
            | Report::Ended(Direction::Down, ..)
            | Report::NotScaled(_, Direction::Down, _)
            | Report::WouldWrite(..) => {}
        }
    }

    fn probe_failed(&mut self, _context: &ShootContext, error: &ProbeError) {
        self.failure = Some(error.to_string());
    }
}
