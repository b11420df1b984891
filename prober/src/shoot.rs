//! The task of one shoot: it drives the machine that decides ([`crate::core::shoot`]), carries out what that says, and is the only one that
//! writes for the shoot.
//!
//! ```text
//! timer, seed's watches, config, answers --input--> machine --actions--> probe, read, write, report
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

use crate::clock::Clock;
use crate::config::{Config, Dependent, ResourceRef};
use crate::core::lifecycle::ShootSettings;
use crate::core::moment::Moment;
use crate::core::options::ResolvedOptions;
use crate::core::replicas::DependentState;
use crate::core::shoot::{Action, Input, Shoot, Start, Surroundings, Verified};
use crate::core::verdict::{BackedNodes, Verdict};
use crate::executor::{Answer, Executor, poll};
use crate::metrics::Metrics;
use crate::owner_check::OwnerRecords;
use crate::probe::Listed;
use crate::seed::Seed;
use crate::shoot_client::error::{Cause, ProbeError, Stage};
use crate::shoot_statuses::{ShootStatuses, StatusHandle};
use crate::suspend_detector::SuspendDetector;
use crate::write::Writer;

/// Over so much time a shoot probes are spread that all shoots would take at once (D-51).
const SPREAD: TimeDelta = TimeDelta::milliseconds(10);

#[derive(Clone)]
pub struct Shared {
    pub clock: Clock,
    pub config: watch::Receiver<Arc<Config>>,
    pub seed: Arc<Seed>,
    pub writer: Arc<Writer>,
    pub suspend_detector: SuspendDetector,
    pub metrics: Metrics,
    pub statuses: ShootStatuses,
    pub events: Events,
    /// Whether nothing is written: what would be is said and counted.
    pub dry_run: bool,
    /// Open while this replica leads.
    pub lead: Fence,
    pub role: Role,
}

impl Shared {
    pub fn owners(&self) -> &OwnerRecords {
        &self.statuses.owners
    }
}

pub struct Identity {
    pub namespace: String,
    pub uid: String,
    /// When this process first saw that it may be probed.
    pub eligible: Moment,
    pub in_operation: bool,
}

type Verifying = Pin<Box<dyn Future<Output = Option<Verified>> + Send>>;

struct Driver {
    namespace: String,
    uid: String,
    shared: Shared,
    config: Arc<Config>,
    settings: ShootSettings,
    machine: Shoot,
    executor: Executor,
    status: StatusHandle,
    verifying: Option<Verifying>,
    began: Moment,
    /// The Machines that were seen last, and what of them matters.
    machines: (Arc<Namespaced<Option<String>>>, Arc<BackedNodes>),
    last_category: Option<&'static str>,
    last_verdict: Option<Verdict>,
    /// As they were last known.
    options: Option<ResolvedOptions>,
    /// The names of the zones that were lost as of the last complete probe.
    lost_zones: String,
}

/// Probes a shoot until cancelled; then what it holds down. `settings` are what the shoot itself says; they are applied while it runs.
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
        driver.update_status();
        let next = driver.machine.next().map(|next| driver.shared.clock.instant(next));
        tokio::select! {
            biased;
            () = cancelled.cancelled() => break,
            answer = driver.executor.next(&driver.config) => match answer {
                Answer::Listed(result) => driver.listed(result),
                Answer::OfDependent(input) => driver.feed(input),
            },
            verified = poll(&mut driver.verifying) => driver.feed(Input::Verified(verified)),
            Ok(()) = settings.changed() => {
                driver.settings = settings.borrow_and_update().clone();
                tracing::info!(settings = ?driver.settings, "settings changed, looking at once");
                driver.feed(Input::SettingsChanged);
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

pub(crate) async fn wait_until(next: Option<tokio::time::Instant>) {
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
        let options = shared.seed.options(&config, &namespace);
        let around = surroundings(&shared, &config, &settings, options, &namespace, &uid);
        let machine = Shoot::new(Start { eligible, in_operation, dry_run: shared.dry_run }, &around, now);
        Self {
            status: shared.statuses.register(namespace.clone(), machine.due()),
            executor: Executor::new(namespace.clone(), shared.clock, Arc::clone(&shared.seed), Arc::clone(&shared.writer)),
            verifying: None,
            began: now,
            machines: Default::default(),
            last_category: None,
            last_verdict: None,
            options: None,
            lost_zones: String::new(),
            namespace,
            uid,
            shared,
            config,
            settings,
            machine,
        }
    }

    fn feed(&mut self, input: Input<'_>) {
        let options = self.shared.seed.options(&self.config, &self.namespace);
        self.note_options(options);
        let around = surroundings(&self.shared, &self.config, &self.settings, options, &self.namespace, &self.uid);
        let actions = self.machine.input(input, &around, self.shared.clock.now());
        for action in actions {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Verify => {
                let (seed, config) = (Arc::clone(&self.shared.seed), Arc::clone(&self.config));
                let (namespace, uid) = (self.namespace.clone(), self.uid.clone());
                self.verifying = Some(Box::pin(async move { seed.verify(&config, &namespace, &uid).await }));
            }
            Action::Report(report) => self.report(report),
            action => {
                if action == Action::ListLeases {
                    self.began = self.shared.clock.now();
                }
                self.executor.carry_out(action, &self.config);
            }
        }
    }

    fn listed(&mut self, result: Result<Listed, ProbeError>) {
        match result {
            Ok(Listed::Leases(times, leases)) => {
                let machines = self.machines();
                self.feed(Input::Leases(times, &leases, machines));
            }
            Ok(Listed::Nodes(nodes)) => self.feed(Input::Nodes(nodes)),
            Err(error) => self.probe_failed(&error),
        }
    }

    fn probe_failed(&mut self, error: &ProbeError) {
        self.shared.metrics.probe_failed(error);
        self.feed(Input::Failed(error.failure()));
        self.report_failure(error);
    }

    /// A probe that was complete but for the Machines.
    fn machines_unknown(&mut self) {
        let error = ProbeError { stage: Stage::Machines, cause: Cause::SeedUnknown("Machines") };
        self.shared.metrics.probe_failed(&error);
        self.report_failure(&error);
    }

    /// Healthy shoots keep their Machines, so that their nodes need not be put in order for each probe.
    fn machines(&mut self) -> Option<Arc<BackedNodes>> {
        let machines = self.shared.seed.machines(&self.namespace)?;
        if !Arc::ptr_eq(&machines, &self.machines.0) {
            let backed = machines.values().map(|node| node.as_deref()).collect();
            self.machines = (machines, Arc::new(backed));
        }
        Some(Arc::clone(&self.machines.1))
    }
}

pub(crate) fn surroundings(
    shared: &Shared,
    config: &Arc<Config>,
    settings: &ShootSettings,
    options: Option<ResolvedOptions>,
    namespace: &str,
    uid: &str,
) -> Surroundings {
    let Shared { clock, seed, suspend_detector, lead, .. } = shared;
    let state = |dependent: &Dependent| match seed.dependent(&dependent.resource) {
        Some(view) => view.state(namespace),
        None => DependentState::Unknown,
    };
    Surroundings {
        config: Arc::clone(config),
        settings: settings.clone(),
        options: options.unwrap_or_else(|| ResolvedOptions::resolve(config, None, None)).options(),
        leads: lead.is_open(),
        seed_since: seed.clusters.live_since().map(|since| clock.moment(since)),
        clusters_read: seed.clusters.read_at().map(|at| clock.moment(at)),
        is_ours: seed.clusters.get("", namespace).is_some_and(|cluster| cluster.wants_probe(uid)),
        owner: config
            .owner_check
            .as_ref()
            .map(|check| shared.owners().standing_since(suspend_detector.resumed(), namespace, check, clock.now())),
        paused: options.map(|options| options.pause.value),
        resumed: suspend_detector.resumed(),
        dependents: config.dependents.iter().map(state).collect(),
        spread: SPREAD * i32::try_from(seed.wakers.count()).unwrap_or(i32::MAX),
        chance: rand::random(),
    }
}
