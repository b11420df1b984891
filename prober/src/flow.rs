//! Scale flows: the plan of one direction, carried out level by level while the verdict stays live.
//!
//! Down: protection beats neatness (D-35). A level starts when the one before it is at 0 ready pods, after 5 s, or shortly
//! before kube-controller-manager would act, whichever comes first; nothing that fails stops anything else.
//! Up: strict order. A level starts when all of the one before it is written and ready, or 5 s after the write; what
//! cannot be written holds back the later levels.

mod tell;
mod tries;

use std::sync::Arc;
use std::time::Duration;

use common::events::Events;
use futures::FutureExt;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use self::tries::Tries;
use crate::config::{Config, Dependent, ResourceRef};
use crate::core::lifecycle::{Lifecycle, lifecycle};
use crate::core::memory::{self, Observed, Write};
use crate::core::moment::Moment;
use crate::core::plan::{Direction, levels};
use crate::core::verdict::{Scope, Verdict};
use crate::metrics::Metrics;
use crate::seed::Seed;
use crate::seed::dependent::{DependentView, Unavailable};
use crate::standstill::Standstill;
use crate::write::{WriteError, Writer};

/// How long a level waits at most for the pods of the one before it (rule 69).
const READY_WAIT: Duration = Duration::from_secs(5);
/// How often the watched state, which is in memory, is looked at while waiting for it.
const LOOK_AT_MEMORY: Duration = Duration::from_millis(50);

/// What the probes said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stand {
    /// What the last one said; none when it was not complete, or there was none.
    pub verdict: Option<Verdict>,
    /// The moment that the last complete one judged.
    pub judged_at: Moment,
}

impl Stand {
    /// Before the first probe.
    pub const UNKNOWN: Self = Self { verdict: None, judged_at: Moment::START };

    fn is_up(&self) -> bool {
        self.verdict.is_some_and(Verdict::is_up)
    }
}

/// What flows of one shoot work with.
#[derive(Clone)]
pub struct Flow {
    /// The shoot's namespace on the seed.
    pub namespace: String,
    /// The UID of its Cluster.
    pub uid: String,
    /// What is scaled, and how.
    pub config: Arc<Config>,
    /// What is known of the seed.
    pub seed: Arc<Seed>,
    /// The way to write.
    pub writer: Arc<Writer>,
    /// What the probes said.
    pub stand: watch::Receiver<Stand>,
    /// When this process stood still.
    pub standstill: Standstill,
    /// Asks for a probe, since what the last one said is out of date.
    pub look_wanted: Arc<Notify>,
    /// What is counted.
    pub metrics: Metrics,
    /// Tells operators.
    pub events: Events,
}

/// How a flow ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many resources were written.
    pub written: usize,
    /// How many could not be brought to where they should be.
    pub failed: usize,
}

impl Outcome {
    fn add(&mut self, result: &Result<Done, WriteError>) {
        match result {
            Ok(Done::Scaled | Done::Unmarked) => self.written += 1,
            Ok(Done::NothingToDo) => {}
            Err(_) => self.failed += 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    /// Its replicas were written.
    Scaled,
    /// Only annotations were written.
    Unmarked,
    NothingToDo,
}

/// What follows from how a resource is.
enum Decision {
    /// This is to be written, based on that.
    Write(Observed, Write),
    /// Nothing, since this was written although nobody told us.
    Landed(Observed, Write),
    Nothing,
}

/// That a write may be made now.
struct Allowed {
    /// The moment that the last complete probe judged.
    judged_at: Moment,
    /// Whether anything had to be waited for.
    waited: bool,
}

impl Flow {
    /// Whether a scale-up would find nothing to do; false when that is not known.
    pub fn at_rest(&self) -> bool {
        self.config.dependents.iter().all(|dependent| match self.observed(dependent) {
            Ok(observed) => observed.is_none_or(|observed| self.decide(Direction::Up, Scope::All, &observed).is_none()),
            Err(Unavailable::NoSuchKind { .. }) => true,
            Err(Unavailable::Unknown) => false,
        })
    }

    /// The dependents that carry the meltdown marker.
    pub fn held_down(&self) -> Vec<&ResourceRef> {
        let marked = |dependent: &&Dependent| matches!(self.observed(dependent), Ok(Some(observed)) if observed.marks.held_down);
        self.config.dependents.iter().filter(marked).map(|dependent| &dependent.resource).collect()
    }

    /// Whether a flow in this direction has something to do. Protection that cannot know that tries, and says so.
    pub fn is_due(&self, direction: Direction, scope: Scope) -> bool {
        let unknown = |dependent| matches!(self.observed(dependent), Err(Unavailable::Unknown));
        self.intended(direction, scope).next().is_some()
            || direction == Direction::Down && self.config.dependents.iter().any(unknown)
    }

    /// What a flow in this direction would write, as far as is known at present.
    pub fn intended(&self, direction: Direction, scope: Scope) -> impl Iterator<Item = (&ResourceRef, Arc<Observed>, Write)> {
        self.config.dependents.iter().filter_map(move |dependent| {
            let observed = self.observed(dependent).ok()??;
            let write = self.decide(direction, scope, &observed)?;
            Some((&dependent.resource, observed, write))
        })
    }

    /// Takes the dependents to 0. After `neat_until` (none: from the start) no level waits for another.
    pub async fn scale_down(self, neat_until: Option<Instant>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut running = FuturesUnordered::new();
        for level in levels(&self.config.dependents, Direction::Down) {
            let delay = level.iter().filter(|dependent| self.has_replicas(dependent)).map(|d| d.scale_down.initial_delay).max();
            let latest = Instant::now() + delay.unwrap_or_default() + READY_WAIT;
            let latest = neat_until.map_or_else(Instant::now, |neat| latest.min(neat));
            let mut open: Vec<&Dependent> = level.clone();
            running.extend(level.into_iter().map(|dependent| {
                let attempt = self.bring(dependent, Direction::Down);
                async move { (dependent, attempt.await) }
            }));
            while !open.is_empty() {
                tokio::select! {
                    biased;
                    Some((dependent, result)) = running.next() => {
                        outcome.add(&result);
                        let gone = result.is_err() || !self.is_going_down(dependent);
                        open.retain(|other| !(gone && other.resource == dependent.resource));
                    }
                    () = sleep_until(latest) => break,
                    () = sleep(LOOK_AT_MEMORY) => open.retain(|dependent| self.is_going_down(dependent)),
                }
            }
        }
        while let Some((_, result)) = running.next().await {
            outcome.add(&result);
        }
        outcome
    }

    /// Brings the dependents back.
    pub async fn scale_up(self) -> Outcome {
        let mut outcome = Outcome::default();
        for level in levels(&self.config.dependents, Direction::Up) {
            let attempts = level.into_iter().map(|dependent| async {
                let result = self.bring(dependent, Direction::Up).await;
                if matches!(result, Ok(Done::Scaled)) {
                    self.await_ready(dependent).await;
                }
                result
            });
            for result in join_all(attempts).await {
                outcome.add(&result);
            }
            if outcome.failed > 0 {
                break;
            }
        }
        outcome
    }

    /// Brings one resource to where it should be: decides by what is known, writes, and tries again where that helps.
    async fn bring(&self, dependent: &Dependent, direction: Direction) -> Result<Done, WriteError> {
        let resource = &dependent.resource;
        let began = Instant::now();
        let mut tries = Tries::new(direction, direction.info(dependent).timeout);
        loop {
            let error = match self.attempt(dependent, direction, &mut tries).await {
                Ok(Done::NothingToDo) => return Ok(Done::NothingToDo),
                Ok(done) => {
                    self.metrics.scaled(direction, resource, "written");
                    self.metrics.decided_and_written(direction, began.elapsed());
                    return Ok(done);
                }
                Err(error) => error,
            };
            let Some(pause) = tries.pause_after(&error) else {
                self.metrics.scaled(direction, resource, error.category());
                self.tell_failure(resource, direction, &error);
                tracing::error!(resource = %resource, direction = direction.as_str(), category = error.category(), error = %error, "resource cannot be scaled");
                return Err(error);
            };
            tracing::debug!(resource = %resource, direction = direction.as_str(), category = error.category(), error = %error, "scaling is tried again");
            sleep(pause).await;
        }
    }

    async fn attempt(&self, dependent: &Dependent, direction: Direction, tries: &mut Tries) -> Result<Done, WriteError> {
        let initial_delay = direction.info(dependent).initial_delay;
        let view = self.view(dependent)?;
        let mut decision = self.decision(&view, dependent, direction, tries).await?;
        // The delay is waited once, and only when there is something to scale (D-18, D-35).
        let scales = matches!(&decision, Decision::Write(_, write) if write.replicas.is_some());
        if scales && !tries.delayed && !initial_delay.is_zero() {
            tries.delayed = true;
            sleep(initial_delay).await;
            decision = self.decision(&view, dependent, direction, tries).await?;
        }
        if !matches!(decision, Decision::Write(..)) {
            return Ok(self.settled(dependent, direction, decision));
        }
        // Time may pass: what was decided before a wait is decided anew.
        let mut anew = direction == Direction::Up;
        let (_permit, judged_at) = loop {
            anew |= self.may_write(direction).await.waited;
            let permit = self.writer.turn(direction).await;
            // Others wait for the permit, so it is given back while the write has to wait for anything else.
            let Some(Allowed { judged_at, .. }) = self.may_write(direction).now_or_never() else {
                anew = true;
                continue;
            };
            if anew {
                decision = self.decision(&view, dependent, direction, tries).await?;
            }
            if direction == Direction::Down || self.says_up() {
                break (permit, judged_at);
            }
        };
        let Decision::Write(observed, write) = decision else { return Ok(self.settled(dependent, direction, decision)) };
        if write.fell_back {
            tracing::warn!(resource = %dependent.resource, memory = observed.marks.replicas, "remembered replicas cannot be used, scaling to 1");
        }
        let began = Instant::now();
        let written = within(tries.limit(), self.writer.write(&view, &self.namespace, (&observed, &write), judged_at)).await;
        tries.sent((&observed, &write), &written);
        match written {
            // It went away in the meantime; what follows under its name is another resource.
            Err(WriteError::Missing) => return Ok(Done::NothingToDo),
            result => result?,
        }
        Ok(self.done(dependent, direction, (&observed, &write), Some(began.elapsed())))
    }

    /// What an attempt comes to that has nothing to write.
    fn settled(&self, dependent: &Dependent, direction: Direction, decision: Decision) -> Done {
        match decision {
            Decision::Landed(observed, write) => self.done(dependent, direction, (&observed, &write), None),
            _ => Done::NothingToDo,
        }
    }

    /// Tells of a write that was made, and how long it `took` if that is known.
    fn done(
        &self,
        dependent: &Dependent,
        direction: Direction,
        (observed, write): (&Observed, &Write),
        took: Option<Duration>,
    ) -> Done {
        if write.fell_back {
            self.metrics.memory_fell_back();
        }
        tracing::info!(
            resource = %dependent.resource,
            direction = direction.as_str(),
            replicas_before = observed.replicas,
            replicas = write.replicas.unwrap_or(observed.replicas),
            marker_removed = write.marker == Some(memory::Mark::Remove),
            took_s = took.map(|took| took.as_secs_f64()),
            "resource written"
        );
        self.tell_write(&dependent.resource, observed, write);
        if write.replicas.is_some() { Done::Scaled } else { Done::Unmarked }
    }

    async fn decision(
        &self,
        view: &DependentView,
        dependent: &Dependent,
        direction: Direction,
        tries: &mut Tries,
    ) -> Result<Decision, WriteError> {
        let observed = if tries.read_anew() {
            within(tries.limit(), self.writer.read(view, &self.namespace)).await?
        } else {
            view.observed(&self.namespace)?.map(|observed| observed.as_ref().clone())
        };
        match observed {
            None if dependent.optional => Ok(Decision::Nothing),
            None => Err(WriteError::Missing),
            Some(observed) => Ok(match self.decide(direction, self.scope(), &observed) {
                Some(write) => Decision::Write(observed, write),
                None => tries.landed(&observed).map_or(Decision::Nothing, |(before, write)| Decision::Landed(before, write)),
            }),
        }
    }

    fn decide(&self, direction: Direction, scope: Scope, observed: &Observed) -> Option<Write> {
        match direction {
            Direction::Down => memory::scale_down(observed),
            Direction::Up => memory::scale_up(observed, scope, self.config.restore_only_held_down),
        }
    }

    /// Waits until a write in this direction is allowed: a Cluster that was read anew after any interruption, a complete
    /// probe since this process last stood still, and for the way up a last probe that was complete and says so (D-23).
    async fn may_write(&self, direction: Direction) -> Allowed {
        let mut waited = false;
        loop {
            // Fails, here and below, only when the shoot's task has ended, and with it this flow.
            if direction == Direction::Up {
                let _ = self.stand.clone().wait_for(Stand::is_up).await;
            }
            self.seed.clusters.live().await;
            let resumed = self.standstill.resumed();
            let judged_at = self.stand.borrow().judged_at;
            if judged_at < resumed {
                waited = true;
                self.look_wanted.notify_one();
                let _ = self.stand.clone().wait_for(|stand| stand.judged_at >= resumed).await;
            } else if self.is_still_ours() && !self.is_paused() {
                return Allowed { judged_at, waited };
            } else {
                // The shoot's task is about to see it too, and ends this flow.
                sleep(LOOK_AT_MEMORY).await;
            }
        }
    }

    /// Whether the shoot's operators want nothing written.
    pub fn is_paused(&self) -> bool {
        self.seed.is_paused(&self.namespace)
    }

    /// Whether the Cluster, as it is known now, still wants its shoot to be probed by this very task.
    fn is_still_ours(&self) -> bool {
        let cluster = self.seed.clusters.get("", &self.namespace);
        let Some(cluster) = cluster.filter(|cluster| cluster.uid == self.uid) else { return false };
        !matches!(&cluster.shoot, Some(Ok(shoot)) if matches!(lifecycle(shoot), Lifecycle::Stop(_)))
    }

    fn says_up(&self) -> bool {
        self.stand.borrow().is_up()
    }

    fn scope(&self) -> Scope {
        match self.stand.borrow().verdict {
            Some(Verdict::ScaleUp(scope)) => scope,
            _ => Scope::HeldDown,
        }
    }

    async fn await_ready(&self, dependent: &Dependent) {
        let ready = async {
            while !matches!(self.observed(dependent), Ok(Some(observed)) if observed.replicas > 0 && observed.ready > 0) {
                sleep(LOOK_AT_MEMORY).await;
            }
        };
        if tokio::time::timeout(READY_WAIT, ready).await.is_err() {
            self.metrics.not_ready_in_time();
            tracing::warn!(resource = %dependent.resource, waited_s = READY_WAIT.as_secs(), "resource is not ready yet, going on");
        }
    }

    /// Whether a later level has something to wait for: pods that run although none should, or will not for long.
    fn is_going_down(&self, dependent: &Dependent) -> bool {
        match self.observed(dependent) {
            Ok(Some(observed)) => !observed.marks.ignored && (observed.replicas > 0 || observed.ready > 0),
            _ => false,
        }
    }

    fn has_replicas(&self, dependent: &Dependent) -> bool {
        matches!(self.observed(dependent), Ok(Some(observed)) if observed.replicas > 0)
    }

    fn observed(&self, dependent: &Dependent) -> Result<Option<Arc<Observed>>, Unavailable> {
        self.view(dependent)?.observed(&self.namespace)
    }

    fn view(&self, dependent: &Dependent) -> Result<Arc<DependentView>, Unavailable> {
        self.seed.dependent(&dependent.resource).ok_or(Unavailable::Unknown)
    }
}

/// Bounds a request in time; one that is over before it began sends nothing.
async fn within<T>(limit: Duration, request: impl Future<Output = Result<T, WriteError>>) -> Result<T, WriteError> {
    let deadline = Instant::now() + limit;
    if Instant::now() >= deadline {
        return Err(WriteError::Timeout);
    }
    tokio::time::timeout_at(deadline, request).await.map_err(|_| WriteError::Timeout)?
}
