//! The task of one shoot: it drives the machine that decides ([`prober_core::shoot`]), carries out
//! what that says, and is the only one that writes for the shoot.
//!
//! ```text
//! timer, seed's watches, config, answers --input--> machine --actions--> probe, read, write, report
//! ```

mod events;
mod report;

use std::sync::Arc;

use prober_core::config::{Config, ResourceRef};
use prober_core::lifecycle::ShootSettings;
use prober_core::moment::Moment;
use prober_core::outage::Outage;
use prober_core::shoot::{Action, Input, Shoot, Start};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::executor::Executor;
use crate::observability::shoot_statuses::StatusHandle;
use crate::shared::Shared;

#[derive(Clone)]
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
    /// When the last probe did.
    began: Moment,
}

/// Probes a shoot until cancelled; then what it holds down. `settings` are what the shoot itself
/// says; they are applied while it runs.
pub async fn run(
    identity: Identity,
    shared: Shared,
    mut settings: watch::Receiver<ShootSettings>,
    cancelled: CancellationToken,
) -> Vec<ResourceRef> {
    let mut configs = shared.config.clone();
    let wakers = shared.seed.wakers.register(&identity.namespace);
    let mut driver = Driver::new(
        identity,
        shared,
        &mut configs,
        settings.borrow_and_update().clone(),
    );
    driver.feed(Input::Woken);
    loop {
        driver.update_status();
        let (clock, next) = (driver.shared.clock, driver.machine.next());
        tokio::select! {
            biased;
            () = cancelled.cancelled() => break,
            answer = driver.executor.next(&driver.config) => match answer {
                Ok(input) => driver.feed(input),
                Err(error) => {
                    driver.feed(Input::Failed(error.failure()));
                    driver.report_failure(&error);
                }
            },
            Ok(()) = settings.changed() => {
                driver.settings = settings.borrow_and_update().clone();
                tracing::info!(settings = ?driver.settings, "settings changed, looking at once");
                driver.feed(Input::Woken);
            }
            Ok(()) = configs.changed() => {
                driver.config = Arc::clone(&configs.borrow_and_update());
                driver.feed(Input::Woken);
            }
            () = wakers.woken() => driver.feed(Input::Woken),
            () = clock.reach(next) => driver.feed(Input::Woken),
        }
    }
    let ended = driver
        .status
        .update(|status| Outage::probe_ended(&mut status.outage, driver.wall()));
    driver.report_outage(ended);
    tracing::info!("probe ended");
    driver.machine.held_down().cloned().collect()
}

impl Driver {
    fn new(
        identity: Identity,
        shared: Shared,
        configs: &mut watch::Receiver<Arc<Config>>,
        settings: ShootSettings,
    ) -> Self {
        let Identity {
            namespace,
            uid,
            start,
        } = identity;
        let config = Arc::clone(&configs.borrow_and_update());
        let now = shared.clock.now();
        let machine = Shoot::new(
            start,
            &shared.environment(&config, &settings, &namespace, &uid, None),
            now,
        );
        Self {
            status: shared.statuses.register(namespace.clone(), machine.due()),
            executor: Executor::new(namespace.clone(), uid.clone(), &shared),
            began: now,
            namespace,
            uid,
            shared,
            config,
            settings,
            machine,
        }
    }

    fn feed(&mut self, input: Input) {
        let machines = self.executor.machines();
        let env = self.shared.environment(
            &self.config,
            &self.settings,
            &self.namespace,
            &self.uid,
            machines,
        );
        self.note_options(&env);
        let now = self.shared.clock.now();
        for action in self.machine.input(input, &env, now) {
            if matches!(action, Action::ListLeases { .. }) {
                self.began = now;
            }
            match action {
                Action::Report(report) => self.report(report),
                action => self.executor.carry_out(action, &self.config),
            }
        }
    }
}
