//! A restore by hand, whether or not a prober runs. It drives the prober's state machine, so that
//! order, delays, remembered replicas, conflicts and retries are the same.
//!
//! ```text
//! somebody's word that the nodes are healthy --> Shoot, as the leader's --> writes, until nothing is left to restore
//! ```
//!
//! It restores what carries the marker, never scales down, and does not probe.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use prober_core::config::{Dependent, DependentId, ResourceRef};
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

/// Time for each event of a restore, besides what the config gives its slowest dependent.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Nothing more could be written in time.
#[derive(Debug, thiserror::Error)]
#[error("nothing more could be written within {} s", .0.as_secs())]
pub struct Stuck(Duration);

pub struct ManualRestore {
    driver: Driver<RestoreReporter>,
    last_event: Instant,
}

#[derive(Default)]
struct RestoreReporter {
    events: VecDeque<RestoreEvent>,
    has_ended: bool,
}

impl ManualRestore {
    /// Begins to restore.
    pub fn start(shared: Shared, namespace: &str, cluster: Arc<ClusterState>) -> Self {
        let start = Start {
            eligible: shared.clock.now(),
            in_operation: true,
        };
        let reporter = |_| RestoreReporter::default();
        let mut driver = Driver::new(shared, namespace, cluster, start, reporter);
        driver.decree(Verdict::ScaleUpHeldDown);
        driver.wake();
        Self {
            driver,
            last_event: Instant::now(),
        }
    }

    /// Next event; `None` when the restore is over. Can be cancelled at any time.
    pub async fn next(&mut self) -> Result<Option<RestoreEvent>, Stuck> {
        let limit = PATIENCE + self.longest_scale_up();
        loop {
            let reporter = self.driver.reporter_mut();
            let (event, has_ended) = (reporter.events.pop_front(), reporter.has_ended);
            if let Some(event) = event {
                self.last_event = Instant::now();
                return Ok(Some(event));
            }
            let is_idle = self.driver.context().shoot.scaling().is_none();
            if has_ended || is_idle && self.remaining().is_empty() {
                return Ok(None);
            }
            if self.last_event.elapsed() >= limit {
                return Err(Stuck(limit));
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

    /// Dependents that are still to be restored.
    pub fn remaining(&self) -> Vec<&ResourceRef> {
        let dependents = self.driver.context().shoot.dependents();
        dependents
            .filter(|dependent| {
                dependent
                    .observed()
                    .is_some_and(|observed| scale_up(observed, Scope::HeldDown, true).is_some())
            })
            .map(|dependent| &dependent.resource)
            .collect()
    }
}

impl Reporter for RestoreReporter {
    /// Lifts a pause, which binds the prober and not whoever asks for a restore.
    fn adjust(&mut self, env: &mut Environment<'_>) {
        env.options.restore_only_held_down.value = true;
        env.options.scale_up_stabilization.value = Duration::ZERO;
        env.paused = Some(false);
        env.is_ours = true;
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
            Report::Ended(Direction::Up, ..) => self.has_ended = true,
            // Those of probes, of a dry run, and of a scaling down, which there are none of here.
            Report::Found
            | Report::MachinesUnknown
            | Report::Begun(_)
            | Report::Abandoned(_)
            | Report::NotOwner(_)
            | Report::Waits(..)
            | Report::Ended(Direction::Down, ..)
            | Report::NotScaled(_, Direction::Down, _)
            | Report::WouldWrite(..) => {}
        }
    }

    fn probe_failed(&mut self, _context: &ShootContext, _error: &ProbeError) {}
}
