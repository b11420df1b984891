//! The task of one shoot: it drives the machine that decides ([`crate::core::shoot`]), carries out what that says, and is the only one
//! that writes for the shoot.
//!
//! ```text
//! timer, seed's watches, config, answers --input--> machine --actions--> look, ask, read, write, tell
//! ```

mod events;
mod report;

use std::pin::Pin;
use std::sync::Arc;

use chrono::TimeDelta;
use common::events::Events;
use common::leader_election::{Fence, Role};
use common::view::Namespaced;
use tokio::sync::watch;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use crate::board::{Board, Place};
use crate::clock::Clock;
use crate::config::{Config, Dependent, ResourceRef};
use crate::core::lifecycle::ShootSettings;
use crate::core::memory::Sighting;
use crate::core::moment::Moment;
use crate::core::shoot::{Action, Input, LookFailure, Options, Shoot, Start, Surroundings, Verified};
use crate::core::span;
use crate::core::verdict::{BackedNodes, Verdict};
use crate::engine::error::{Cause, ProbeError, Stage};
use crate::executor::{Done, Executor};
use crate::metrics::Metrics;
use crate::probe::{Looked, Probe};
use crate::seed::Seed;
use crate::standstill::Standstill;
use crate::write::{WriteError, Writer};

/// Over so much time a shoot looks are spread that all shoots would take at once (D-51).
const SPREAD: TimeDelta = TimeDelta::milliseconds(10);

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
    /// Whether nothing is written: what would be is said and counted.
    pub dry_run: bool,
    /// Open while this replica leads.
    pub lead: Fence,
    /// Who leads.
    pub role: Role,
}

/// Which shoot a task probes.
pub struct Identity {
    /// Its namespace on the seed.
    pub namespace: String,
    /// The UID of its Cluster.
    pub uid: String,
    /// When this process first saw that it may be probed.
    pub eligible: Moment,
    /// See [`Start::in_operation`].
    pub in_operation: bool,
}

type Looking = Pin<Box<dyn Future<Output = (Probe, Result<Looked, ProbeError>)> + Send>>;
type Verifying = Pin<Box<dyn Future<Output = Option<Verified>> + Send>>;

/// A machine, and what carries out its actions.
struct Driver {
    namespace: String,
    uid: String,
    shared: Shared,
    config: Arc<Config>,
    settings: ShootSettings,
    machine: Shoot,
    executor: Executor,
    place: Place,
    /// None while a look is under way.
    probe: Option<Probe>,
    looking: Option<Looking>,
    verifying: Option<Verifying>,
    /// When the look that is under way began.
    began: Moment,
    /// The Machines that were seen last, and what of them matters.
    machines: (Arc<Namespaced<Option<String>>>, Arc<BackedNodes>),
    /// Why requests for the dependents failed last.
    errors: Vec<Option<WriteError>>,
    last_category: Option<&'static str>,
    last_verdict: Option<Verdict>,
    paused: bool,
}

/// Probes a shoot until cancelled; then what it holds down. `settings` are what the shoot itself says; they are taken up
/// while it runs.
pub async fn run(
    identity: Identity,
    shared: Shared,
    mut settings: watch::Receiver<ShootSettings>,
    cancelled: CancellationToken,
) -> Vec<ResourceRef> {
    let mut configs = shared.config.clone();
    let wakers = shared.seed.wakers.register(&identity.namespace);
    let mut driver = Driver::new(identity, shared, &mut configs, settings.borrow_and_update().clone());
    driver.feed(Input::Woken);
    loop {
        driver.note();
        let next = driver.machine.next().map(|next| driver.shared.clock.instant(next));
        tokio::select! {
            biased;
            () = cancelled.cancelled() => break,
            (at, done) = driver.executor.next() => driver.done(at, done),
            (probe, result) = poll(&mut driver.looking) => {
                driver.probe = Some(probe);
                driver.looked(result);
            }
            verified = poll(&mut driver.verifying) => driver.feed(Input::Verified(verified)),
            Ok(()) = settings.changed() => {
                driver.settings = settings.borrow_and_update().clone();
                tracing::info!(settings = ?driver.settings, "settings changed, looking at once");
                driver.feed(Input::Resettled);
            }
            Ok(()) = configs.changed() => {
                driver.config = Arc::clone(&configs.borrow_and_update());
                driver.feed(Input::Reloaded);
            }
            () = wakers.woken() => driver.feed(Input::Woken),
            () = wait_until(next) => driver.feed(Input::Woken),
        }
    }
    tracing::info!("probe ended");
    driver.machine.held_down().cloned().collect()
}

/// Completes with what is under way, never without it.
async fn poll<T>(work: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match work {
        Some(running) => {
            let result = running.await;
            *work = None;
            result
        }
        None => std::future::pending().await,
    }
}

async fn wait_until(next: Option<tokio::time::Instant>) {
    match next {
        Some(next) => sleep_until(next).await,
        None => std::future::pending().await,
    }
}

impl Driver {
    fn new(identity: Identity, shared: Shared, configs: &mut watch::Receiver<Arc<Config>>, settings: ShootSettings) -> Self {
        let Identity { namespace, uid, eligible, in_operation } = identity;
        let config = Arc::clone(&configs.borrow_and_update());
        let now = shared.clock.now();
        let around = surroundings(&shared, &config, &settings, &namespace, &uid);
        let machine = Shoot::new(Start { eligible, in_operation, dry_run: shared.dry_run }, &around, now);
        Self {
            place: shared.board.place(namespace.clone(), machine.due()),
            executor: Executor::new(namespace.clone(), Arc::clone(&shared.seed), Arc::clone(&shared.writer)),
            probe: Some(Probe::new(namespace.clone(), shared.clock, Arc::clone(&shared.seed))),
            errors: Vec::new(),
            looking: None,
            verifying: None,
            began: now,
            machines: Default::default(),
            last_category: None,
            last_verdict: None,
            paused: false,
            namespace,
            uid,
            shared,
            config,
            settings,
            machine,
        }
    }

    /// Lets the machine decide, and carries out what it says.
    fn feed(&mut self, input: Input<'_>) {
        let around = surroundings(&self.shared, &self.config, &self.settings, &self.namespace, &self.uid);
        if around.paused.is_some_and(|paused| paused != self.paused) {
            self.paused = !self.paused;
            tracing::info!(paused = self.paused, "pause annotation on the shoot's namespace, or on garden");
        }
        let actions = self.machine.input(input, &around, self.shared.clock.now());
        for action in actions {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Look => {
                self.began = self.shared.clock.now();
                let timeout = self.config.probe_timeout;
                self.look(|mut probe| async move {
                    let looked = probe.leases(timeout).await;
                    (probe, looked)
                });
            }
            Action::ListNodes => self.look(|mut probe| async move {
                let looked = probe.nodes().await;
                (probe, looked)
            }),
            Action::Verify => {
                let (seed, namespace, uid) = (Arc::clone(&self.shared.seed), self.namespace.clone(), self.uid.clone());
                self.verifying = Some(Box::pin(async move { seed.verify(&namespace, &uid).await }));
            }
            Action::Ask(at, direction) => self.executor.ask(at, direction),
            Action::Read(at, limit) => self.executor.read(at, &self.config.dependents[at].resource, limit),
            Action::Write(order) => self.executor.write(&self.config.dependents[order.dependent].resource, order),
            Action::Drop(at) => self.executor.give_up(at),
            Action::Report(report) => self.report(report),
        }
    }

    fn look<F: Future<Output = (Probe, Result<Looked, ProbeError>)> + Send + 'static>(&mut self, look: impl FnOnce(Probe) -> F) {
        self.looking = self.probe.take().map(|probe| -> Looking { Box::pin(look(probe)) });
    }

    fn looked(&mut self, result: Result<Looked, ProbeError>) {
        match result {
            Ok(Looked::Leases(look, leases)) => {
                let machines = self.machines();
                self.feed(Input::Leases(look, &leases, machines));
            }
            Ok(Looked::Nodes(nodes)) => self.feed(Input::Nodes(nodes)),
            Err(error) => self.look_failed(&error),
        }
    }

    fn look_failed(&mut self, error: &ProbeError) {
        self.shared.metrics.probe_failed(error);
        let failure = match &error.cause {
            Cause::Throttled { retry_after } => LookFailure::Throttled(retry_after.map(span)),
            cause if cause.is_no_answer() => LookFailure::Unanswered,
            _ => LookFailure::Other,
        };
        self.feed(Input::Failed(failure));
        self.report_failure(error);
    }

    /// A look that was complete but for the Machines.
    fn machines_unknown(&mut self) {
        let error = ProbeError { stage: Stage::Machines, cause: Cause::SeedUnknown("Machines") };
        self.shared.metrics.probe_failed(&error);
        self.report_failure(&error);
    }

    /// Healthy shoots keep their Machines, so that their nodes need not be put in order for each look.
    fn machines(&mut self) -> Option<Arc<BackedNodes>> {
        let machines = self.shared.seed.machines(&self.namespace)?;
        if !Arc::ptr_eq(&machines, &self.machines.0) {
            let backed = machines.values().map(|node| node.as_deref()).collect();
            self.machines = (machines, Arc::new(backed));
        }
        Some(Arc::clone(&self.machines.1))
    }

    fn done(&mut self, at: usize, done: Done) {
        let input = match done {
            Done::Permitted => Input::Permitted(at),
            Done::Read(result) => Input::Read(at, result.map_err(|error| self.failed(at, error))),
            Done::Written(result) => Input::Written(at, result.map_err(|error| self.failed(at, error))),
        };
        self.feed(input);
    }

    /// Keeps an error for whoever is told of it.
    fn failed(&mut self, at: usize, error: WriteError) -> crate::core::retry::Refusal {
        let refusal = error.refusal();
        tracing::debug!(resource = %self.config.dependents[at].resource, category = error.category(), error = %error, "request for a resource failed");
        if self.errors.len() <= at {
            self.errors.resize_with(at + 1, || None);
        }
        self.errors[at] = Some(error);
        refusal
    }
}

/// What the machine decides by, as it is now.
fn surroundings(shared: &Shared, config: &Arc<Config>, settings: &ShootSettings, namespace: &str, uid: &str) -> Surroundings {
    let Shared { clock, seed, standstill, lead, .. } = shared;
    let sighting = |dependent: &Dependent| match seed.dependent(&dependent.resource) {
        Some(view) => view.sighting(namespace),
        None => Sighting::Unknown,
    };
    Surroundings {
        config: Arc::clone(config),
        settings: settings.clone(),
        options: Options::from(config.as_ref()),
        leads: lead.is_open(),
        seed_since: seed.clusters.live_since().map(|since| clock.moment(since)),
        is_ours: seed.clusters.get("", namespace).is_some_and(|cluster| cluster.wants_probe(uid)),
        paused: seed.paused(namespace),
        resumed: standstill.resumed(),
        sightings: config.dependents.iter().map(sighting).collect(),
        spread: SPREAD * i32::try_from(seed.wakers.len()).unwrap_or(i32::MAX),
        chance: rand::random(),
    }
}
