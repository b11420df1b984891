//! The task of one shoot: it drives the machine that decides ([`crate::core::shoot`]), carries out what that says, and is the only one that
//! writes for the shoot.
//!
//! ```text
//! timer, seed's watches, config, answers --input--> machine --actions--> probe, read, write, report
//! ```

mod events;
mod report;

use std::sync::Arc;

use common::view::Namespaced;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ResourceRef};
use crate::core::lifecycle::ShootSettings;
use crate::core::moment::Moment;
use crate::core::shoot::{Action, Input, Shoot, Start, Verified};
use crate::core::verdict::BackedNodes;
use crate::executor::{Answer, Executor, Listed, poll};
use crate::shared::Shared;
use crate::shoot_client::error::ProbeError;
use crate::shoot_statuses::StatusHandle;

pub struct Identity {
    pub namespace: String,
    pub uid: String,
    pub start: Start,
}

struct Driver {
    namespace: String,
    uid: String,
    shared: Shared,
    config: Arc<Config>,
    settings: ShootSettings,
    machine: Shoot,
    executor: Executor,
    status: StatusHandle,
    verifying: Option<BoxFuture<'static, Option<Verified>>>,
    began: Moment,
    /// The Machines that were seen last, and what of them matters.
    machines: (Arc<Namespaced<Option<String>>>, Arc<BackedNodes>),
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
        let (clock, next) = (driver.shared.clock, driver.machine.next());
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
            () = clock.reach(next) => driver.feed(Input::Woken),
        }
    }
    tracing::info!("probe ended");
    driver.machine.held_down().cloned().collect()
}

impl Driver {
    fn new(identity: Identity, shared: Shared, configs: &mut watch::Receiver<Arc<Config>>, settings: ShootSettings) -> Self {
        let Identity { namespace, uid, start } = identity;
        let config = Arc::clone(&configs.borrow_and_update());
        let now = shared.clock.now();
        let options = shared.seed.options(&config, &namespace);
        let machine = Shoot::new(start, &shared.surroundings(&config, &settings, options, &namespace, &uid), now);
        Self {
            status: shared.statuses.register(namespace.clone(), machine.due()),
            executor: Executor::new(namespace.clone(), shared.clock, Arc::clone(&shared.seed), Arc::clone(&shared.writer)),
            verifying: None,
            began: now,
            machines: Default::default(),
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
        let around = self.shared.surroundings(&self.config, &self.settings, options, &self.namespace, &self.uid);
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
                self.verifying = Some(async move { seed.verify(&config, &namespace, &uid).await }.boxed());
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
            Err(error) => {
                self.feed(Input::Failed(error.failure()));
                self.report_failure(&error);
            }
        }
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
