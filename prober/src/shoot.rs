//! The task of one shoot. It owns all that is known of it and is the only one that writes for it.
//!
//! ```text
//! timer --> probe --finding--> stand --> flow (down or up), side by side with further probes
//!   ^                   |
//!   '---- schedule <----'
//! ```

mod rehearsal;
mod report;

use std::pin::Pin;
use std::sync::Arc;

use chrono::TimeDelta;
use common::events::Events;
use rand::RngExt;
use tokio::sync::{Notify, SetOnce, watch};
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use crate::board::{Board, Place};
use crate::clock::Clock;
use crate::config::{Config, ResourceRef};
use crate::core::lease::Grace;
use crate::core::lifecycle::ShootSettings;
use crate::core::moment::Moment;
use crate::core::plan::Direction;
use crate::core::schedule::{self, Failure, JUST_AFTER, Outlook};
use crate::core::verdict::{Scope, Verdict};
use crate::engine::error::{Cause, ProbeError};
use crate::flow::{Flow, Outcome, Stand};
use crate::metrics::Metrics;
use crate::probe::{Finding, Probe, Rules};
use crate::seed::Seed;
use crate::standstill::Standstill;
use crate::write::Writer;

use self::rehearsal::Rehearsal;

/// What all shoots share.
#[derive(Clone)]
pub struct Shared {
    /// The time.
    pub clock: Clock,
    /// The prober's config, as it is now.
    pub config: watch::Receiver<Arc<Config>>,
    /// What is known of the seed.
    pub seed: Arc<Seed>,
    /// The way to write.
    pub writer: Arc<Writer>,
    /// When this process stood still.
    pub standstill: Standstill,
    /// What is counted.
    pub metrics: Metrics,
    /// How all shoots are.
    pub board: Board,
    /// Tells operators.
    pub events: Events,
    /// Whether flows are only rehearsed: said and counted, not written.
    pub dry_run: bool,
    /// Set once this process leads and has read the Clusters anew: nothing is probed before.
    pub leading: Arc<SetOnce<()>>,
}

type Looking = Pin<Box<dyn Future<Output = (Probe, Result<Finding, ProbeError>)> + Send>>;
type Flowing = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Everything about one shoot that outlives a single probe.
struct Shoot {
    clock: Clock,
    place: Place,
    metrics: Metrics,
    flow: Flow,
    stand: watch::Sender<Stand>,
    /// Before this moment nothing is written.
    writes_from: Moment,
    /// Since when every complete probe said "up".
    up_since: Option<Moment>,
    running: Option<(Direction, Flowing)>,
    /// See [`Finding::verdict_possible`].
    verdict_possible: Option<Moment>,
    /// See [`Finding::doubt_from`].
    doubt_from: Option<Moment>,
    never_complete: bool,
    failures: u32,
    /// Until when the shoot's API server asked us to stay away (429).
    throttled_until: Option<Moment>,
    flow_failures: u32,
    /// Whether nothing is written because the shoot's operators say so.
    paused: bool,
    /// Whether the last finding could not be acted on and a new one is wanted at once.
    look_again: bool,
    last_category: Option<&'static str>,
    last_verdict: Option<Verdict>,
    /// In a dry run what takes the place of flows.
    rehearsal: Option<Rehearsal>,
}

/// Which shoot a task probes.
pub struct Identity {
    /// Its namespace on the seed.
    pub namespace: String,
    /// The UID of its Cluster.
    pub uid: String,
    /// When this process first saw that it may be probed.
    pub eligible: Moment,
}

/// Probes a shoot until cancelled; then what it holds down. `settings` are what the shoot itself says; they are taken up
/// while it runs.
pub async fn run(
    identity: Identity,
    shared: Shared,
    mut settings: watch::Receiver<ShootSettings>,
    cancelled: CancellationToken,
) -> Vec<ResourceRef> {
    let Identity { namespace, uid, eligible } = identity;
    let Shared { clock, config: mut configs, seed, writer, standstill, metrics, board, events, dry_run, leading } = shared;
    if cancelled.run_until_cancelled(leading.wait()).await.is_none() {
        return Vec::new();
    }
    let config = Arc::clone(&configs.borrow_and_update());
    let look_wanted = Arc::new(Notify::new());
    let (stand, receiver) = watch::channel(Stand::UNKNOWN);
    let flow = Flow {
        namespace: namespace.clone(),
        uid,
        config: Arc::clone(&config),
        seed: Arc::clone(&seed),
        writer,
        stand: receiver,
        standstill,
        look_wanted: Arc::clone(&look_wanted),
        metrics: metrics.clone(),
        events,
    };
    let first_look = first_look(&flow, clock, eligible);
    let mut shoot = Shoot {
        clock,
        place: board.place(namespace.clone(), first_look),
        metrics,
        writes_from: eligible + span(config.initial_delay),
        flow,
        stand,
        up_since: None,
        running: None,
        verdict_possible: None,
        doubt_from: None,
        never_complete: true,
        failures: 0,
        throttled_until: None,
        flow_failures: 0,
        paused: false,
        look_again: false,
        last_category: None,
        last_verdict: None,
        rehearsal: dry_run.then(Rehearsal::default),
    };
    let mut probe = Some(Probe::new(namespace, clock, seed));
    let mut looking: Option<Looking> = None;
    let mut next = first_look;
    let mut began = next;
    loop {
        shoot.note(next);
        tokio::select! {
            biased;
            () = cancelled.cancelled() => break,
            (returned, result) = poll(&mut looking) => {
                looking = None;
                probe = Some(returned);
                let failure = shoot.take_in(result, clock.now() - began);
                next = if std::mem::take(&mut shoot.look_again) { clock.now() } else { shoot.next_look(failure) };
            }
            outcome = poll_flow(&mut shoot.running) => {
                if let Some(earlier) = shoot.flow_ended(&outcome) {
                    next = next.min(earlier);
                }
            }
            Ok(()) = settings.changed(), if looking.is_none() => {
                tracing::info!(settings = ?*settings.borrow(), "settings changed, looking at once");
                next = shoot.unthrottled(clock.now());
            }
            Ok(()) = configs.changed(), if looking.is_none() => {
                shoot.take_up(Arc::clone(&configs.borrow_and_update()));
                next = shoot.unthrottled(clock.now());
            }
            () = look_wanted.notified(), if looking.is_none() => next = shoot.unthrottled(clock.now()),
            () = sleep_until(clock.instant(next)), if probe.is_some() => {
                began = clock.now();
                let rules = shoot.rules(&settings.borrow_and_update());
                let at_rest = shoot.flow.at_rest();
                looking = probe.take().map(|mut probe| -> Looking {
                    Box::pin(async move {
                        let result = probe.look(&rules, at_rest).await;
                        (probe, result)
                    })
                });
            }
        }
    }
    tracing::info!("probe ended");
    shoot.flow.held_down().into_iter().cloned().collect()
}

/// First looks are spread over the first half of the initial delay, so that a restart does not hit all API servers at
/// once; shoots that are held down go first. A process that gains the lead later than that looks at once.
fn first_look(flow: &Flow, clock: Clock, eligible: Moment) -> Moment {
    let now = clock.now();
    let latest = eligible + span(flow.config.initial_delay / 2);
    if latest <= now || !flow.held_down().is_empty() {
        return now;
    }
    now + TimeDelta::milliseconds(rand::rng().random_range(0..=(latest - now).num_milliseconds()))
}

/// Completes with the probe that is under way, never without one.
async fn poll(looking: &mut Option<Looking>) -> (Probe, Result<Finding, ProbeError>) {
    match looking {
        Some(looking) => looking.await,
        None => std::future::pending().await,
    }
}

/// Completes with the flow that is under way, never without one.
async fn poll_flow(running: &mut Option<(Direction, Flowing)>) -> Outcome {
    match running {
        Some((_, flowing)) => flowing.await,
        None => std::future::pending().await,
    }
}

impl Shoot {
    /// Takes up a changed config. A flow that is under way goes on by the one it began with.
    fn take_up(&mut self, config: Arc<Config>) {
        self.flow.config = config;
    }

    fn rules(&self, settings: &ShootSettings) -> Rules {
        Rules {
            grace: Grace::new(settings.node_monitor_grace.unwrap_or(span(self.flow.config.node_monitor_grace))),
            fraction: self.flow.config.node_lease_failure_fraction,
            timeout: self.flow.config.probe_timeout,
            settings: settings.clone(),
        }
    }

    /// Takes in what a probe brought, and acts on it.
    fn take_in(&mut self, result: Result<Finding, ProbeError>, took: TimeDelta) -> Option<Failure> {
        match result {
            Ok(finding) => {
                self.metrics.probe_complete(finding.nodes_listed, took.to_std().unwrap_or_default());
                self.report(&finding);
                (self.failures, self.never_complete, self.throttled_until) = (0, false, None);
                (self.verdict_possible, self.doubt_from) = (finding.verdict_possible, Some(finding.doubt_from));
                self.stand.send_replace(Stand { verdict: Some(finding.verdict), judged_at: finding.judged_at });
                self.act(&finding);
                None
            }
            Err(error) => {
                self.metrics.probe_failed(&error);
                self.failures = self.failures.saturating_add(1);
                self.stand.send_modify(|stand| stand.verdict = None);
                self.report_failure(&error);
                Some(self.failure(&error.cause))
            }
        }
    }

    fn act(&mut self, finding: &Finding) {
        let now = self.clock.now();
        let verdict = finding.verdict;
        self.up_since = verdict.is_up().then(|| self.up_since.unwrap_or(now));
        let paused = self.flow.is_paused();
        if paused != self.paused {
            tracing::info!(paused, "pause annotation on the shoot's namespace");
            self.paused = paused;
        }
        let contradicts = match &self.running {
            Some(_) if paused => true,
            Some((Direction::Down, _)) => verdict.is_up(),
            Some((Direction::Up, _)) => verdict == Verdict::ScaleDown,
            None => false,
        };
        if contradicts && let Some((direction, _)) = self.running.take() {
            self.metrics.flow_abandoned(direction);
            tracing::info!(direction = direction.as_str(), verdict = verdict.as_str(), paused, "flow abandoned");
        }
        if finding.judged_at < self.flow.standstill.resumed() {
            self.look_again = true;
            return;
        }
        if paused || self.running.is_some() || now < self.writes_from {
            return;
        }
        let (direction, scope) = match verdict {
            Verdict::ScaleDown => (Direction::Down, Scope::All),
            Verdict::ScaleUp(_) if !finding.nodes_listed && !self.flow.at_rest() => {
                // Something to restore has come up during the probe: whether it may be restored depends on the nodes.
                self.look_again = true;
                return;
            }
            Verdict::ScaleUp(scope) if self.stable_from() <= Some(now) => (Direction::Up, scope),
            Verdict::ScaleUp(_) | Verdict::Hold(_) => return,
        };
        if let Some(rehearsal) = &mut self.rehearsal {
            return rehearsal.follow(&self.flow, direction, scope);
        }
        if !self.flow.is_due(direction, scope) {
            return;
        }
        let flow = self.flow.clone();
        match direction {
            Direction::Down => {
                let neat_until = finding.neat_until.map(|moment| self.clock.instant(moment));
                self.begin(direction, Box::pin(flow.scale_down(neat_until)));
            }
            Direction::Up => self.begin(direction, Box::pin(flow.scale_up())),
        }
    }

    fn begin(&mut self, direction: Direction, flowing: Flowing) {
        tracing::info!(direction = direction.as_str(), "flow begins");
        self.running = Some((direction, flowing));
    }

    /// Since when "up" has been said for as long as is configured (D-22).
    fn stable_from(&self) -> Option<Moment> {
        self.up_since.map(|since| since + span(self.flow.config.scale_up_stabilization))
    }

    /// Notes how a flow ended; after a failed scale-down the moment of an early next look.
    fn flow_ended(&mut self, outcome: &Outcome) -> Option<Moment> {
        let (direction, _) = self.running.take()?;
        let Outcome { written, failed } = *outcome;
        tracing::info!(direction = direction.as_str(), written, failed, "flow ended");
        if direction == Direction::Up || failed == 0 {
            self.flow_failures = 0;
            return None;
        }
        self.flow_failures = self.flow_failures.saturating_add(1);
        let retry = Failure {
            in_a_row: self.flow_failures,
            urgent: true,
            stretch: self.stretch(),
            throttled_until: self.throttled_until,
        };
        Some(self.next_look(Some(retry)))
    }

    fn next_look(&self, failure: Option<Failure>) -> Moment {
        let now = self.clock.now();
        let interval = span(self.flow.config.probe_interval);
        let Stand { verdict, judged_at } = *self.stand.borrow();
        let stretched = TimeDelta::microseconds((interval.num_microseconds().unwrap_or(i64::MAX) as f64 * self.stretch()) as i64);
        // A shoot for which nothing waits to be written keeps its own pace: a look at the end of initialDelay would bring all
        // shoots into step, and since healthy ones look again after the same time, they would stay so.
        let waits = !(verdict.is_some_and(Verdict::is_up) && self.flow.at_rest());
        let awaited = [Some(self.writes_from), self.stable_from()].into_iter().flatten().map(|moment| moment + JUST_AFTER);
        schedule::next_look(&Outlook {
            now,
            judged_at: if failure.is_some() { now } else { judged_at },
            interval: stretched,
            verdict_possible: self.verdict_possible,
            doubt_from: self.doubt_from,
            awaited: awaited.filter(|&moment| waits && moment > judged_at).min(),
            failure,
        })
    }

    fn failure(&mut self, cause: &Cause) -> Failure {
        let throttled_until = match cause {
            Cause::Throttled { retry_after } => Some(self.clock.now() + schedule::rest(retry_after.map(span))),
            _ => None,
        };
        self.throttled_until = throttled_until;
        Failure { in_a_row: self.failures, urgent: self.never_complete, stretch: self.stretch(), throttled_until }
    }

    /// The moment, or the end of the wait that the API server asked for.
    fn unthrottled(&self, moment: Moment) -> Moment {
        self.throttled_until.map_or(moment, |until| moment.max(until))
    }

    /// A factor from 1 to 1 + backoffJitterFactor.
    fn stretch(&self) -> f64 {
        1.0 + rand::rng().random::<f64>() * self.flow.config.backoff_jitter_factor
    }
}

fn span(duration: std::time::Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
