//! A controller manager in the place of a Deployment's pods: it runs while the Deployment has
//! replicas, as a kubelet would see to it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::control_plane::ControllerManager;
use crate::shoot::ShootCluster;

/// How often it checks the Deployment.
const TICK: Duration = Duration::from_millis(50);

/// A controller manager and who starts and stops it. Dropping it ends both.
pub struct DeploymentPod {
    program: Arc<Mutex<ControllerManager>>,
    _kubelet: JoinSet<()>,
}

impl DeploymentPod {
    /// Lets a Deployment of a shoot's control plane have this program.
    pub fn start(
        shoot: &ShootCluster,
        deployment: &'static str,
        program: ControllerManager,
    ) -> Self {
        let program = Arc::new(Mutex::new(program));
        let mut kubelet = JoinSet::new();
        let (held, seed, namespace) =
            (program.clone(), shoot.seed.clone(), shoot.namespace.clone());
        kubelet.spawn(async move {
            loop {
                let wanted = seed
                    .journal()
                    .of(&namespace)
                    .into_iter()
                    .rfind(|entry| entry.name == deployment);
                if let Some(state) = wanted.and_then(|entry| entry.state) {
                    // A process that does not start shows in the scenario: what it should do does
                    // not happen.
                    let _ = held.lock().await.set_running(state.replicas > 0);
                }
                sleep(TICK).await;
            }
        });
        Self {
            program,
            _kubelet: kubelet,
        }
    }

    /// The program itself.
    pub async fn program(&self) -> MutexGuard<'_, ControllerManager> {
        self.program.lock().await
    }
}
