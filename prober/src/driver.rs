//! Drives the machine that decides for one shoot ([`prober_core::shoot`]): feeds it what happens,
//! carries out what it asks for, and hands its reports on. The prober's task of a shoot, the
//! command line's probe and a restore by hand differ only in who takes the reports, and in when
//! they end.
//!
//! ```text
//! timer, wakers, answers --input--> machine --actions--> executor: probe, read, write --> answers
//!                                      '------reports--> Reporter
//! ```

use std::sync::Arc;

use common::view::Namespaced;
use prober_core::config::Config;
use prober_core::moment::Moment;
use prober_core::shoot::{Action, Environment, Input, Report, Shoot, Start};
use prober_core::verdict::BackedNodes;
use tokio::time::{Instant, sleep_until};

use crate::executor::Executor;
use crate::seed::wakers::Registration;
use crate::seed::{ClusterState, Seed};
use crate::shared::Shared;
use crate::shoot_client::error::ProbeError;
use crate::write::WriteError;

pub(crate) trait Reporter: Sized {
    /// Called before each input, with what the machine decides by.
    fn prepare(&mut self, env: &mut Environment<'_>);

    /// `refused` is how the last request for a dependent that could not be scaled has failed.
    fn report(driver: &mut Driver<Self>, report: Report, refused: Option<WriteError>);

    fn probe_failed(driver: &mut Driver<Self>, error: &ProbeError);
}

pub(crate) struct Driver<R> {
    pub namespace: String,
    pub shared: Shared,
    pub config: Arc<Config>,
    pub machine: Shoot,
    pub executor: Executor,
    pub probe_began: Moment,
    pub reporter: R,
    /// The last that could be understood (D-13).
    cluster: Arc<ClusterState>,
    machines: BackedMachines,
    wakers: Registration,
}

/// The Machines of a shoot as seen last, and the nodes that they back. Healthy shoots keep theirs,
/// so that their nodes need not be put in order for each input.
#[derive(Default)]
struct BackedMachines(Arc<Namespaced<Option<String>>>, Arc<BackedNodes>);

impl BackedMachines {
    fn of(&mut self, seed: &Seed, namespace: &str) -> Option<Arc<BackedNodes>> {
        let machines = seed.machines(namespace)?;
        if !Arc::ptr_eq(&machines, &self.0) {
            let backed = machines.values().map(|node| node.as_deref()).collect();
            *self = Self(machines, Arc::new(backed));
        }
        Some(Arc::clone(&self.1))
    }
}

impl<R: Reporter> Driver<R> {
    pub fn new(
        shared: Shared,
        namespace: &str,
        cluster: Arc<ClusterState>,
        start: Start,
        reporter: impl FnOnce(&Shoot) -> R,
    ) -> Self {
        let wakers = shared.seed.wakers.register(namespace);
        let config = Arc::clone(&shared.config.borrow());
        let executor = Executor::new(&shared, namespace, &cluster.uid);
        let mut machines = BackedMachines::default();
        let now = shared.clock.now();
        let backed = machines.of(&shared.seed, namespace);
        let env = shared.environment(namespace, &config, &cluster, backed);
        let machine = Shoot::new(start, &env, now);
        Self {
            reporter: reporter(&machine),
            namespace: namespace.to_owned(),
            probe_began: now,
            shared,
            config,
            machine,
            executor,
            cluster,
            machines,
            wakers,
        }
    }

    pub fn feed(&mut self, input: Input) {
        self.refresh();
        let (config, cluster) = (Arc::clone(&self.config), Arc::clone(&self.cluster));
        let machines = self.machines.of(&self.shared.seed, &self.namespace);
        let mut env = self
            .shared
            .environment(&self.namespace, &config, &cluster, machines);
        self.reporter.prepare(&mut env);
        let now = self.shared.clock.now();
        for action in self.machine.input(input, &env, now) {
            match action {
                Action::Report(report) => {
                    let refused = match report {
                        Report::NotScaled(at, ..) => self.executor.take_error(at),
                        _ => None,
                    };
                    R::report(self, report, refused);
                }
                action => {
                    if matches!(action, Action::ListLeases { .. }) {
                        self.probe_began = now;
                    }
                    self.executor.carry_out(action, &config);
                }
            }
        }
    }

    /// Applies the config and the Cluster as they are now.
    fn refresh(&mut self) {
        self.config = Arc::clone(&self.shared.config.borrow());
        let cluster = self.shared.seed.clusters.get("", &self.namespace);
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

    /// Waits until something happens, and feeds it to the machine. Can be cancelled at any time.
    pub async fn step(&mut self) {
        let (clock, next) = (self.shared.clock, self.machine.next());
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
                R::probe_failed(self, &error);
            }
        }
    }

    /// The same, until then at most, where no agent looks for suspensions.
    pub(crate) async fn step_until(&mut self, until: Instant) {
        let suspend_detector = self.shared.suspend_detector.clone();
        tokio::select! {
            () = self.step() => {}
            () = sleep_until(until) => {}
            () = suspend_detector.run() => {}
        }
    }
}
