//! A controller manager in the place of a Deployment's pods: it runs while the Deployment has
//! replicas, as a kubelet would see to it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::control_plane::ControllerManager;
use crate::shoot::ShootCluster;

/// How often it is checked at least whether the program still runs.
const TICK: Duration = Duration::from_millis(50);

type PodEnd = Arc<parking_lot::Mutex<Option<(DateTime<Utc>, Duration)>>>;

/// A controller manager and who starts and ends it. Dropping it ends both.
pub struct DeploymentPod {
    program: Arc<Mutex<ControllerManager>>,
    /// When it last ended as it was asked to, and how long after SIGTERM.
    pub ended: PodEnd,
    _kubelet: JoinSet<()>,
}

impl DeploymentPod {
    /// Lets a Deployment of a shoot's control plane have this program. SIGTERM comes at once when
    /// that is at 0.
    pub fn start(shoot: &ShootCluster, deployment: &str, program: ControllerManager) -> Self {
        let (program, ended) = (Arc::new(Mutex::new(program)), PodEnd::default());
        let (held, told) = (program.clone(), Arc::clone(&ended));
        let key = (shoot.namespace.clone(), deployment.to_owned());
        let mut states = shoot.seed.journal().states();
        let kubelet = async move {
            loop {
                let state = states.borrow_and_update().get(&key).cloned();
                let wanted = state.is_some_and(|state| state.replicas > 0);
                let mut program = held.lock().await;
                // A process that does not start or end shows in the scenario: what it should do
                // does not happen.
                match (wanted, program.is_running()) {
                    (true, false) => drop(program.start()),
                    (false, true) => {
                        let took = program.terminate().await.ok();
                        *told.lock() = took.map(|took| (Utc::now(), took));
                    }
                    _ => {}
                }
                drop(program);
                if let Ok(Err(_)) = timeout(TICK, states.changed()).await {
                    return;
                }
            }
        };
        Self {
            program,
            ended,
            _kubelet: JoinSet::from_iter([kubelet]),
        }
    }

    /// The program itself.
    pub async fn program(&self) -> MutexGuard<'_, ControllerManager> {
        self.program.lock().await
    }
}
