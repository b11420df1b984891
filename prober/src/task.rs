//! The prober's task of one shoot, the only one that writes for it. It passes inputs to the state
//! machine ([`prober_core::shoot`]), carries out its actions as jobs, and hands its reports on. While
//! the shoot is well, it rehearses the writes of an outage.
//!
//! ```text
//! timer, wakers, jobs --input--> Shoot --actions--> jobs: probe, permit, write
//!          '--> Rehearsals --> job     '---reports--> Reporter
//! ```

use std::future::ready;
use std::sync::Arc;

use common::process::{LAST_ANSWERS, propagate_panic};
use common::view::Namespaced;
use parking_lot::Mutex;
use prober_core::config::{DependentId, ResourceRef};
use prober_core::moment::Moment;
use prober_core::plan::Direction;
use prober_core::replicas::Observed;
use prober_core::shoot::{Action, Answer, Environment, Input, Order, Owner, Shoot, Start};
use prober_core::verdict::{BackedNodes, Verdict};
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;
use tracing::Instrument;

use crate::observability::report::Reporter;
use crate::rehearsal::{Outcome, Rehearsals};
use crate::seed::wakers::Registration;
use crate::seed::{ClusterState, Seed};
use crate::shared::Shared;
use crate::shoot_client::error::{ProbeError, ProbeStep};
use crate::shoot_client::{Budget, ShootClient};
use crate::write::Permit;

/// A shoot that is to be probed.
pub(crate) struct Assignment {
    pub namespace: String,
    /// As it is at the start.
    pub cluster: Arc<ClusterState>,
    pub start: Start,
    /// Takes the place of what probes would say.
    pub decree: Option<Verdict>,
    /// Ends the task; also cancelled at the end of the process.
    pub cancel: CancellationToken,
    /// Time at which the seed's API server confirmed to a standby what is known of the shoot.
    pub confirmed: Mutex<Option<Instant>>,
}

/// A shoot and its surroundings, as a report may need them.
pub(crate) struct ShootContext {
    pub assigned: Arc<Assignment>,
    pub shared: Shared,
    /// As of the last input.
    pub env: Environment,
    pub shoot: Shoot,
    pub probe_began: Moment,
}

/// What is under way for a shoot, at most one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Job {
    Probe,
    Permit(Direction),
    Write(DependentId),
    Rehearsal,
}

enum Done {
    Probed(ShootClient, Result<Answer, ProbeError>),
    Permitted(Direction, Permit),
    Rehearsed(DependentId, Arc<Observed>, Outcome),
    /// All else is the shoot's.
    Input(Input),
}

struct Task {
    context: ShootContext,
    reporter: Reporter,
    machines: BackedMachines,
    wakers: Registration,
    jobs: JoinMap<Job, Done>,
    /// `None` while a probe is under way.
    client: Option<ShootClient>,
    rehearsals: Rehearsals,
    /// Time of the next rehearsal; `None` while there is none to come.
    rehearsal_due: Option<Moment>,
    /// Comes with an input, and is given back after it if no write takes it.
    permit: Permit,
    /// True if the config names other dependents now, of which this task knows nothing.
    is_outdated: bool,
}

/// Last Machines of a shoot, and the nodes that they back. Healthy shoots keep theirs, so that
/// their nodes need not be put in order for each input.
#[derive(Default)]
struct BackedMachines(Arc<Namespaced<Option<Arc<str>>>>, Arc<BackedNodes>);

impl BackedMachines {
    fn of(&mut self, seed: &Seed, namespace: &str) -> Option<Arc<BackedNodes>> {
        let machines = seed.machines(namespace)?;
        if !Arc::ptr_eq(&machines, &self.0) {
            let backed = machines.values().map(|node| Option::clone(node)).collect();
            *self = Self(machines, Arc::new(backed));
        }
        Some(Arc::clone(&self.1))
    }
}

/// Probes a shoot until cancelled; returns what is held down then. At the end of the process that
/// includes the writes that were under way; else nothing under way is awaited, since other Clusters
/// would wait, too.
pub(crate) async fn run(shared: &Shared, assigned: &Arc<Assignment>) -> Vec<ResourceRef> {
    let cancel = &assigned.cancel;
    loop {
        let mut task = Task::new(shared.clone(), Arc::clone(assigned));
        task.feed(Input::Woken);
        while !task.is_outdated && cancel.run_until_cancelled(task.step()).await.is_some() {}
        if shared.shutdown.is_cancelled() && timeout(LAST_ANSWERS, task.finish()).await.is_err() {
            tracing::warn!("a write has had no answer until the end, it may have been made");
        }
        task.reporter.ended(&task.context);
        if cancel.is_cancelled() {
            return task.context.shoot.held_down().cloned().collect();
        }
        tracing::info!("the config names other dependents, the probe begins anew");
    }
}

impl Task {
    fn new(shared: Shared, assigned: Arc<Assignment>) -> Self {
        let namespace = &assigned.namespace;
        let (config, settings) = (shared.config.borrow().clone(), &assigned.cluster.settings);
        let mut machines = BackedMachines::default();
        let backed = machines.of(&shared.seed, namespace);
        let env = shared.environment(&assigned, config, settings, backed);
        let now = shared.clock.now();
        let shoot = Shoot::new(assigned.start, &env, now);
        let client = ShootClient::new(shared.clock, Arc::clone(&shared.resources));
        Self {
            reporter: Reporter::new(
                &shared.statuses,
                namespace,
                &env.config,
                shoot.next_probe(),
                assigned.decree,
            ),
            wakers: shared.seed.wakers.register(namespace),
            jobs: JoinMap::new(),
            client: Some(client),
            rehearsals: Rehearsals::default(),
            rehearsal_due: None,
            permit: None,
            is_outdated: false,
            machines,
            context: ShootContext {
                assigned,
                shared,
                env,
                shoot,
                probe_began: now,
            },
        }
    }

    /// Waits for the next input and passes it on. Can be cancelled at any time.
    async fn step(&mut self) {
        let clock = self.context.shared.clock;
        let due = [self.context.shoot.next(), self.rehearsal_due];
        let next = due.into_iter().flatten().min();
        tokio::select! {
            biased;
            Some((_, done)) = self.jobs.join_next() => self.done(done),
            () = self.wakers.woken() => self.feed(Input::Woken),
            () = clock.reach(next) => self.feed(Input::Woken),
        }
    }

    /// Passes on what a job has ended with. One that panicked ends this task in the same way, and
    /// no other.
    fn done(&mut self, done: Result<Done, JoinError>) {
        let input = match done {
            Err(ended) => return propagate_panic(Err::<Done, _>(ended)),
            Ok(Done::Input(input)) => input,
            Ok(Done::Permitted(direction, permit)) => {
                self.permit = permit;
                Input::Permitted(direction)
            }
            Ok(Done::Rehearsed(id, base, outcome)) => {
                let now = self.context.shared.clock.now();
                self.rehearsals.ended(id, base, outcome, now);
                Input::Woken
            }
            Ok(Done::Probed(client, answer)) => {
                self.client = Some(client);
                match answer {
                    Ok(answer) => Input::Probed(answer),
                    Err(error) => {
                        self.reporter.probe_failed(&self.context, &error);
                        Input::Failed(error.failure())
                    }
                }
            }
        };
        self.feed(input);
    }

    /// Lets the shoot act on an input and on what has changed around it.
    fn feed(&mut self, input: Input) {
        self.refresh();
        let ShootContext {
            shared, env, shoot, ..
        } = &mut self.context;
        let now = shared.clock.now();
        for action in shoot.input(input, env, now) {
            match action {
                Action::Report(report) => self.reporter.report(&self.context, report),
                Action::Probe { with_nodes } => {
                    self.context.probe_began = now;
                    self.probe(with_nodes);
                }
                Action::AwaitPermit(direction) => self.await_permit(direction),
                Action::Write(order) => self.write(order),
                Action::Cancel(id) => {
                    self.jobs.abort(&Job::Write(id));
                }
            }
        }
        self.permit = None;
        self.reporter.updated(&self.context);
        self.rehearse(now);
    }

    /// Begins the next rehearsal when it is due; while the shoot is not well there is none. One that
    /// is under way then is cancelled.
    fn rehearse(&mut self, now: Moment) {
        let ShootContext {
            assigned,
            shared,
            env,
            shoot,
            ..
        } = &self.context;
        if shoot.finding().is_some() && assigned.decree.is_none() {
            self.rehearsals.follow(env, now);
        }
        self.reporter
            .rehearsed(&self.context, self.rehearsals.refused());
        let is_up = shoot.verdict().is_some_and(Verdict::is_up);
        let next = self.rehearsals.next();
        let is_well = is_up && shoot.held_down().next().is_none() && env.owner == Owner::Here;
        let next = next.filter(|_| is_well);
        self.rehearsal_due = None;
        match next {
            None => {
                self.jobs.abort(&Job::Rehearsal);
            }
            Some(_) if self.jobs.contains_key(&Job::Rehearsal) => {}
            Some((due, ..)) if due > now => self.rehearsal_due = Some(due),
            Some((_, id, change)) => {
                let (shared, assigned) = (shared.clone(), Arc::clone(assigned));
                let (config, change) = (Arc::clone(&env.config), change.clone());
                self.begin(Job::Rehearsal, async move {
                    let resource = &config.dependent(id).resource;
                    let rehearsal = shared.rehearse(&assigned.namespace, resource, &change);
                    let outcome = rehearsal.await;
                    Done::Rehearsed(id, change.base, outcome)
                });
            }
        }
    }

    /// Applies all that has changed around the shoot.
    fn refresh(&mut self) {
        let ShootContext {
            assigned,
            shared,
            env,
            shoot,
            ..
        } = &mut self.context;
        let mut config = Arc::clone(&shared.config.borrow());
        let known = shoot.dependents().map(|known| &known.resource);
        if !known.eq(config.dependents.iter().map(|named| &named.resource)) {
            self.is_outdated = true;
            config = Arc::clone(&env.config);
        }
        let machines = self.machines.of(&shared.seed, &assigned.namespace);
        let now = shared.environment(assigned, config, &env.settings, machines);
        let before = std::mem::replace(env, now);
        if env.settings != before.settings {
            tracing::info!(settings = ?env.settings, "settings changed, probing at once");
        }
    }

    /// Begins a job, unless the process ends.
    fn begin(&mut self, job: Job, work: impl Future<Output = Done> + Send + 'static) {
        if !self.context.shared.shutdown.is_cancelled() {
            self.jobs.spawn(job, work.in_current_span());
        }
    }

    fn probe(&mut self, with_nodes: bool) {
        if let Some(verdict) = self.context.assigned.decree {
            let decreed = Done::Input(Input::Decreed(verdict));
            return self.begin(Job::Probe, ready(decreed));
        }
        let Some(mut client) = self.client.take() else {
            return;
        };
        let ShootContext {
            assigned,
            shared,
            env,
            ..
        } = &self.context;
        let budget = Budget::starting_now(env.config.probe_timeout);
        let secret = shared.seed.kubeconfig(&assigned.namespace);
        self.begin(Job::Probe, async move {
            let stage = ProbeStep::Kubeconfig;
            let answer = match secret {
                Ok(secret) => client.probe(&secret, with_nodes, budget).await,
                Err(cause) => Err(ProbeError { stage, cause }),
            };
            Done::Probed(client, answer)
        });
    }

    fn await_permit(&mut self, direction: Direction) {
        let job = Job::Permit(direction);
        if !self.jobs.contains_key(&job) {
            let permits = Arc::clone(&self.context.shared.permits);
            self.begin(job, async move {
                Done::Permitted(direction, permits.write(direction).await)
            });
        }
    }

    fn write(&mut self, order: Order) {
        let (permit, id) = (self.permit.take(), order.dependent);
        let ShootContext {
            assigned,
            shared,
            env,
            ..
        } = &self.context;
        let (assigned, shared) = (Arc::clone(assigned), shared.clone());
        let (config, machines) = (Arc::clone(&env.config), Arc::clone(&self.machines.1));
        self.begin(Job::Write(id), async move {
            let written = shared.write(&assigned, &config, &machines, &order).await;
            drop(permit);
            Done::Input(Input::Written(id, written))
        });
    }

    /// Waits for the answers to the writes under way.
    async fn finish(&mut self) {
        self.jobs
            .abort_matching(|job| !matches!(job, Job::Write(_)));
        while let Some((_, done)) = self.jobs.join_next().await {
            self.done(done);
        }
    }
}
