//! A program in the place of a Deployment's pods: it runs while the Deployment has replicas, as a kubelet would see to it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::shoot::Shoot;

/// How often it looks at the Deployment.
const TICK: Duration = Duration::from_millis(50);

/// A program and who starts and stops it. Dropping it ends both.
pub struct Pod<P> {
    program: Arc<Mutex<P>>,
    _kubelet: JoinSet<()>,
}

impl<P: Send + 'static> Pod<P> {
    /// Lets a Deployment of a shoot's control plane have this program, which `set_running` starts and stops.
    pub fn start(
        shoot: &Shoot,
        deployment: &'static str,
        program: P,
        set_running: impl Fn(&mut P, bool) -> Result<()> + Send + 'static,
    ) -> Self {
        let program = Arc::new(Mutex::new(program));
        let mut kubelet = JoinSet::new();
        let (held, seed, namespace) = (program.clone(), shoot.seed.clone(), shoot.namespace.clone());
        kubelet.spawn(async move {
            loop {
                let wanted = seed.journal().of(&namespace).into_iter().rfind(|entry| entry.name == deployment);
                if let Some(state) = wanted.and_then(|entry| entry.state) {
                    let mut program = held.lock().await;
                    // A process that does not start shows in the scenario: what it should do does not happen.
                    let _ = set_running(&mut program, state.replicas > 0);
                }
                sleep(TICK).await;
            }
        });
        Self { program, _kubelet: kubelet }
    }

    /// The program itself.
    pub async fn program(&self) -> MutexGuard<'_, P> {
        self.program.lock().await
    }
}
