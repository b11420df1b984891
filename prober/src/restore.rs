//! A restore that a person asks for, whether or not a prober runs. It decides nothing itself: it
//! drives the machine that decides for the prober ([`prober_core::shoot`]) for one shoot, so that
//! order, delays, memories, conflicts and retries are the prober's own.
//!
//! ```text
//! look: leases --> machine, which may write nothing --> verdict
//! next: leases, or a person's word --> machine, which leads --> writes, until nothing is left to restore
//! ```
//!
//! It never scales down: it ends as soon as the machine would.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use common::leader_election::Role;
use prober_core::config::{Config, Dependent, ResourceRef};
use prober_core::lifecycle::{ShootSettings, settings};
use prober_core::options::ResolvedOptions;
use prober_core::plan::Direction;
use prober_core::replicas::scale_up;
use prober_core::shoot::{Action, Environment, Input, Report, Shoot, Start};
use prober_core::verdict::{BackedNodes, Scope, Verdict};
use tokio::time::{Instant, sleep_until};

use crate::executor::Executor;
use crate::read_only::ReadOnlyProber;
use crate::seed::ClusterState;
use crate::seed::wakers::Registration;
use crate::shared::Shared;
use crate::write::WriteError;

/// When a look at the leases is given up.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub limit: Duration,
    /// After so many failed probes in a row.
    pub failures: u32,
}

/// What happens in a restore.
#[derive(Debug)]
pub enum Event {
    /// Replicas before and after: the same where only annotations were removed.
    Written {
        resource: ResourceRef,
        before: i32,
        after: i32,
        used_default_replicas: bool,
    },
    NotReady(ResourceRef),
    KeepsChanging(ResourceRef),
    Failed(ResourceRef, WriteError),
}

/// Why a restore ended before its end.
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

/// Begins restores; they share what bounds their writes.
pub struct Restorer {
    shared: Shared,
}

impl Restorer {
    pub fn new(prober: &ReadOnlyProber) -> Self {
        Self {
            shared: prober.shared(Role::Alone),
        }
    }

    /// A restore of one shoot. Where a person has vouched for the nodes its leases are not looked
    /// at, and its Cluster is not asked whether it may be probed.
    pub fn shoot(&self, namespace: &str, cluster: &ClusterState, vouched: bool) -> Restore {
        Restore::new(self.shared.clone(), namespace.to_owned(), cluster, vouched)
    }
}

/// Whether only what is held down comes back. Where the namespaces cannot be read, they may say so.
pub fn only_held_down(options: Option<ResolvedOptions>) -> bool {
    options.is_none_or(|options| options.restore_only_held_down.value)
}

pub struct Restore {
    namespace: String,
    uid: String,
    shared: Shared,
    config: Arc<Config>,
    settings: ShootSettings,
    vouched: bool,
    /// What it is to bring back, from when on it may write.
    begun: Option<Scope>,
    machine: Shoot,
    executor: Executor,
    wakers: Registration,
    /// Whether the machine waits for a probe, in whose place a person's word stands.
    awaits_word: bool,
    /// Why the last probe was not complete.
    failure: Option<String>,
    events: VecDeque<Event>,
    stopped: Option<Stopped>,
    ended: bool,
    /// When something happened last.
    last: Instant,
}

impl Restore {
    fn new(shared: Shared, namespace: String, cluster: &ClusterState, vouched: bool) -> Self {
        let config = Arc::clone(&shared.config.borrow());
        let uid = cluster.uid.clone();
        let settings = cluster
            .shoot
            .as_ref()
            .and_then(|shoot| shoot.as_ref().ok())
            .map(settings)
            .unwrap_or_default();
        let now = shared.clock.now();
        let env = Environment {
            paused: Some(true),
            ..shared.environment(&config, &settings, &namespace, &uid, None)
        };
        Self {
            machine: Shoot::new(
                Start {
                    eligible: now,
                    in_operation: true,
                },
                &env,
                now,
            ),
            executor: Executor::new(namespace.clone(), uid.clone(), &shared),
            wakers: shared.seed.wakers.register(&namespace),
            awaits_word: false,
            failure: None,
            events: VecDeque::new(),
            stopped: None,
            ended: false,
            last: Instant::now(),
            begun: None,
            namespace,
            uid,
            shared,
            config,
            settings,
            vouched,
        }
    }

    /// Looks at the leases until it is clear what they say, and writes nothing. The error says why
    /// that is not known.
    pub async fn look(&mut self, patience: Patience) -> Result<Verdict, String> {
        let deadline = Instant::now() + patience.limit;
        self.feed(Input::Woken);
        loop {
            let found = self.leases();
            // Any hold may end when nodes are seen to renew.
            let clear = found.as_ref().is_ok_and(|verdict| verdict.aim().is_some());
            if clear || self.machine.failures() >= patience.failures || Instant::now() >= deadline {
                return found;
            }
            self.turn(deadline).await;
        }
    }

    /// What the last probe found.
    fn leases(&self) -> Result<Verdict, String> {
        match self.machine.finding() {
            Some(finding) if self.machine.failures() == 0 => Ok(finding.verdict),
            _ => Err(self
                .failure
                .clone()
                .unwrap_or_else(|| "there is no answer yet".to_owned())),
        }
    }

    /// What of the dependents may come back: what the verdict says; without one that says "up" only
    /// what carries the marker.
    pub fn scope(&self) -> Scope {
        match self.leases().map(Verdict::aim) {
            Ok(Some((Direction::Up, scope))) => scope,
            _ => Scope::HeldDown,
        }
    }

    /// Writes from now on.
    pub fn begin(&mut self) {
        (self.begun, self.last) = (Some(self.scope()), Instant::now());
        self.feed(Input::Woken);
    }

    /// What happens next in a restore that has begun; none when it is over.
    pub async fn next(&mut self, patience: Patience) -> Result<Option<Event>, Stopped> {
        loop {
            if let Some(event) = self.events.pop_front() {
                self.last = Instant::now();
                return Ok(Some(event));
            }
            if let Some(stopped) = self.stopped.take() {
                return Err(stopped);
            }
            if self.ended || (self.machine.scaling().is_none() && self.remaining().is_empty()) {
                return Ok(None);
            }
            if self.machine.failures() >= patience.failures {
                return Err(Stopped::Unknown(self.failure.clone().unwrap_or_default()));
            }
            let limit = patience.limit + self.longest_turn();
            if self.last.elapsed() >= limit {
                return Err(Stopped::Stuck(limit));
            }
            self.turn(self.last + limit).await;
        }
    }

    /// The longest that the turn of a dependent takes, its tries included.
    fn longest_turn(&self) -> Duration {
        let turn = |dependent: &Dependent| {
            dependent
                .scale_up
                .initial_delay
                .saturating_add(4 * dependent.scale_up.timeout)
        };
        self.config
            .dependents
            .iter()
            .map(turn)
            .max()
            .unwrap_or_default()
    }

    /// What a restore would still write.
    pub fn remaining(&self) -> Vec<&ResourceRef> {
        let only_held_down = self
            .env(&self.config, &self.settings, None)
            .options
            .restore_only_held_down
            .value;
        let scope = self.begun.unwrap_or_else(|| self.scope());
        let known = self.config.dependents.iter().zip(self.machine.known());
        known
            .filter(|(_, known)| {
                known
                    .observed()
                    .is_some_and(|observed| scale_up(observed, scope, only_held_down).is_some())
            })
            .map(|(dependent, _)| &dependent.resource)
            .collect()
    }

    /// Waits until something happens, at most until then.
    async fn turn(&mut self, until: Instant) {
        let next = self
            .machine
            .next()
            .map_or(until, |next| until.min(self.shared.clock.instant(next)));
        tokio::select! {
            biased;
            answer = self.executor.next(&self.config) => match answer {
                Ok(input) => self.feed(input),
                Err(error) => {
                    self.failure = Some(error.to_string());
                    self.feed(Input::Failed(error.failure()));
                }
            },
            () = ready(()), if self.awaits_word => {
                self.awaits_word = false;
                self.feed(Input::Vouched);
            }
            () = self.wakers.woken() => self.feed(Input::Woken),
            () = sleep_until(next) => self.feed(Input::Woken),
            () = self.shared.suspend_detector.run() => {}
        }
    }

    /// The prober's, but for what a person has decided: a pause binds the prober, and not whoever
    /// asks for a restore.
    fn env<'a>(
        &self,
        config: &'a Arc<Config>,
        settings: &'a ShootSettings,
        machines: Option<Arc<BackedNodes>>,
    ) -> Environment<'a> {
        let mut env =
            self.shared
                .environment(config, settings, &self.namespace, &self.uid, machines);
        env.options.restore_only_held_down.value |= env.paused.is_none();
        env.options.scale_up_stabilization.value = Duration::ZERO;
        Environment {
            paused: Some(self.begun.is_none()),
            is_ours: env.is_ours || self.vouched,
            ..env
        }
    }

    fn feed(&mut self, input: Input) {
        let (machines, now) = (self.executor.machines(), self.shared.clock.now());
        let (config, settings) = (Arc::clone(&self.config), self.settings.clone());
        let env = self.env(&config, &settings, machines);
        for action in self.machine.input(input, &env, now) {
            if !self.ended && self.stopped.is_none() {
                self.carry_out(action);
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::ListLeases { .. } if self.vouched => self.awaits_word = true,
            Action::Report(report) => self.report(report),
            action => self.executor.carry_out(action, &self.config),
        }
    }

    fn report(&mut self, report: Report) {
        let resource = |at: usize| self.config.dependents[at].resource.clone();
        match report {
            Report::Written {
                dependent, change, ..
            } => {
                let (before, after, used_default_replicas) = (
                    change.base.replicas,
                    change.replicas(),
                    change.write.used_default_replicas,
                );
                let resource = resource(dependent);
                self.events.push_back(Event::Written {
                    resource,
                    before,
                    after,
                    used_default_replicas,
                });
            }
            Report::NotScaled(at, Direction::Up, reason) => {
                let error =
                    WriteError::not_scaled(reason, &resource(at), self.executor.take_error(at));
                self.events.push_back(Event::Failed(resource(at), error));
            }
            Report::NotReady(at) => self.events.push_back(Event::NotReady(resource(at))),
            Report::KeepsChanging(at) => self.events.push_back(Event::KeepsChanging(resource(at))),
            Report::MachinesUnknown => {
                self.failure = Some("the seed's Machines are not known".to_owned())
            }
            Report::Ended(Direction::Up, ..) => self.ended = true,
            Report::Abandoned(_) | Report::Begun(Direction::Down) => {
                let outage = self.leases() == Ok(Verdict::ScaleDown);
                self.stopped = Some(if outage {
                    Stopped::Outage
                } else {
                    Stopped::NotProbed
                });
            }
            // A dry run's, and those of a scaling down that never begins here.
            Report::Found
            | Report::Begun(Direction::Up)
            | Report::NotOwner(_)
            | Report::Ended(Direction::Down, ..)
            | Report::NotScaled(_, Direction::Down, _)
            | Report::WouldWrite(..) => {}
        }
    }
}
