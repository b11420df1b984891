//! Drives the state machine of one shoot ([`prober_core::shoot`]): passes inputs to it, carries out
//! its actions, and hands its reports on. The prober's task of a shoot and a restore by hand differ
//! only in who takes the reports, in whether they probe, and in when they end.
//!
//! ```text
//! timer, wakers, answers --input--> Shoot --actions--> executor: probe, read, write --> answers
//!                                     '---reports--> Reporter
//! ```

use std::sync::Arc;

use common::view::Namespaced;
use prober_core::config::Config;
use prober_core::moment::Moment;
use prober_core::shoot::{Action, Environment, Input, Report, Shoot, Start};
use prober_core::verdict::{BackedNodes, Verdict};
use tokio::time::{Instant, sleep_until};

use crate::executor::Executor;
use crate::seed::wakers::Registration;
use crate::seed::{ClusterState, Seed};
use crate::shared::Shared;
use crate::shoot_client::error::ProbeError;

/// Receives what happens to a shoot. The agent shows and counts it, a restore by hand collects it.
pub(crate) trait Reporter {
    /// Called before each input, with what the shoot decides by.
    fn adjust(&mut self, env: &mut Environment<'_>);

    fn report(&mut self, context: &ShootContext, report: Report);

    fn probe_failed(&mut self, context: &ShootContext, error: &ProbeError);

    /// Called after each input and its reports.
    fn updated(&mut self, _context: &ShootContext) {}

    /// Called once nobody drives the shoot any more.
    fn ended(&mut self, _context: &ShootContext) {}
}

/// A shoot and its surroundings, as a report may need them.
pub(crate) struct ShootContext {
    pub namespace: String,
    pub shared: Shared,
    pub config: Arc<Config>,
    pub shoot: Shoot,
    pub probe_began: Moment,
}

pub(crate) struct Driver<R> {
    context: ShootContext,
    executor: Executor,
    reporter: R,
    /// Last state of the Cluster that could be understood.
    cluster: Arc<ClusterState>,
    machines: BackedMachines,
    wakers: Registration,
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

impl<R: Reporter> Driver<R> {
    /// The reporter is made with the time of the first probe.
    pub(crate) fn new(
        shared: Shared,
        namespace: &str,
        cluster: Arc<ClusterState>,
        start: Start,
        reporter: impl FnOnce(Moment) -> R,
    ) -> Self {
        let wakers = shared.seed.wakers.register(namespace);
        let config = Arc::clone(&shared.config.borrow());
        let executor = Executor::new(&shared, namespace, &cluster.uid);
        let mut machines = BackedMachines::default();
        let now = shared.clock.now();
        let backed = machines.of(&shared.seed, namespace);
        let env = shared.environment(namespace, &config, &cluster, backed);
        let shoot = Shoot::new(start, &env, now);
        Self {
            reporter: reporter(shoot.due()),
            context: ShootContext {
                namespace: namespace.to_owned(),
                shared,
                config,
                shoot,
                probe_began: now,
            },
            executor,
            cluster,
            machines,
            wakers,
        }
    }

    pub(crate) fn context(&self) -> &ShootContext {
        &self.context
    }

    pub(crate) fn reporter_mut(&mut self) -> &mut R {
        &mut self.reporter
    }

    /// Takes this verdict from now on in place of what probes would say.
    pub(crate) fn decree(&mut self, verdict: Verdict) {
        self.executor.decree(verdict);
    }

    /// Lets the shoot act on what has changed.
    pub(crate) fn wake(&mut self) {
        self.feed(Input::Woken);
        self.reporter.updated(&self.context);
    }

    fn feed(&mut self, input: Input) {
        self.refresh();
        let (config, cluster) = (Arc::clone(&self.context.config), Arc::clone(&self.cluster));
        let ShootContext {
            namespace, shared, ..
        } = &self.context;
        let machines = self.machines.of(&shared.seed, namespace);
        let mut env = shared.environment(namespace, &config, &cluster, machines);
        self.reporter.adjust(&mut env);
        let now = shared.clock.now();
        for action in self.context.shoot.input(input, &env, now) {
            match action {
                Action::Report(report) => self.reporter.report(&self.context, report),
                action => {
                    if matches!(action, Action::ListLeases { .. }) {
                        self.context.probe_began = now;
                    }
                    self.executor.carry_out(action, &config);
                }
            }
        }
    }

    /// Applies the config and the Cluster as they are now.
    fn refresh(&mut self) {
        let ShootContext {
            namespace,
            shared,
            config,
            ..
        } = &mut self.context;
        *config = Arc::clone(&shared.config.borrow());
        let cluster = shared.seed.clusters.get("", namespace);
        if let Some(cluster) = cluster
            && cluster.uid == self.cluster.uid
            && cluster.lifecycle.is_some()
        {
            if cluster.settings != self.cluster.settings {
                tracing::info!(settings = ?cluster.settings, "settings changed, probing at once");
            }
            self.cluster = cluster;
        }
    }

    /// Waits for the next input and passes it on. Can be cancelled at any time.
    pub(crate) async fn step(&mut self) {
        let (clock, next) = (
            self.context.shared.clock,
            self.context.shoot.next().map(|(next, _)| next),
        );
        let answer = tokio::select! {
            biased;
            answer = self.executor.next() => answer,
            () = self.wakers.woken() => Ok(Input::Woken),
            () = clock.reach(next) => Ok(Input::Woken),
        };
        match answer {
            Ok(input) => self.feed(input),
            Err(error) => {
                self.feed(Input::Failed(error.failure()));
                self.reporter.probe_failed(&self.context, &error);
            }
        }
        self.reporter.updated(&self.context);
    }

    /// The same, until then at most, where no agent looks for suspensions.
    pub(crate) async fn step_until(&mut self, until: Instant) {
        let suspend_detector = self.context.shared.suspend_detector.clone();
        tokio::select! {
            biased;
            () = self.step() => {}
            () = sleep_until(until) => {}
            () = suspend_detector.run() => {}
        }
    }

    /// Waits for the answers to the writes under way, and begins nothing more.
    pub(crate) async fn finish(&mut self) {
        self.executor.close();
        while let Some(written) = self.executor.last_answer().await {
            self.feed(written);
            self.reporter.updated(&self.context);
        }
    }

    /// Ends probing; returns the shoot as it was last.
    pub(crate) fn end(mut self) -> Shoot {
        self.reporter.ended(&self.context);
        self.context.shoot
    }
}
