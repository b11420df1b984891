//! The programs of one pod of a Deployment: they run while the Deployment has replicas, as a
//! kubelet would see to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, Utc};
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::process::{Process, Program, words};
use crate::reaper;
use crate::shoot::ShootCluster;

/// How often it is checked whether the programs are wanted, and still run.
const TICK: Duration = Duration::from_millis(10);
/// Kubernetes' default terminationGracePeriodSeconds.
const TERMINATION_GRACE: Duration = Duration::from_secs(30);

/// kube-controller-manager, with nothing but the controllers that give nodes up and write
/// endpoints, for the cluster of `kubeconfig`; a node whose lease is older than `grace` is marked
/// Unknown.
pub fn kube_controller_manager(
    programs: &Path,
    kubeconfig: &str,
    grace: Duration,
) -> Result<Program> {
    let (name, grace) = ("kube-controller-manager", grace.as_secs());
    let folder = reaper::folder(name)?;
    let file = folder.join("kubeconfig");
    std::fs::write(&file, kubeconfig)?;
    // Requests as Gardener has them; a fifth of that is the default.
    let args = format!(
        "--kubeconfig={} --controllers=node-lifecycle-controller,endpointslice-controller \
         --node-monitor-grace-period={grace}s --leader-elect=false --secure-port=0 \
         --kube-api-qps=100 --kube-api-burst=200",
        file.display()
    );
    let (path, log) = (programs.join(name), folder.join("log"));
    Ok(Program::new(name, &path, words(&args), &log))
}

/// The programs of a pod and who starts and ends them. Dropping it ends both.
pub struct DeploymentPod {
    is_running: watch::Receiver<bool>,
    /// When it last ended as it was asked to.
    pub ended: Arc<Mutex<Option<DateTime<Utc>>>>,
    _kubelet: JoinSet<()>,
}

impl DeploymentPod {
    /// Lets a Deployment of a shoot's control plane have these programs. SIGTERM comes at once when
    /// that is at 0; when one has ended by itself, all are started again.
    pub fn start(shoot: &ShootCluster, deployment: &str, programs: Vec<Program>) -> Self {
        let (running, is_running) = watch::channel(false);
        let ended = Arc::<Mutex<_>>::default();
        let told = Arc::clone(&ended);
        let (seed, namespace) = (shoot.seed.clone(), shoot.namespace.clone());
        let deployment = deployment.to_owned();
        let mut processes: Vec<Process> = Vec::new();
        let kubelet = async move {
            loop {
                let states = seed.journal().states(&namespace);
                let is_wanted = states.get(&deployment).is_some_and(|it| it.replicas > 0);
                let runs = !processes.is_empty() && processes.iter_mut().all(Process::is_running);
                running.send_replace(runs);
                // A process that does not start or end shows in the scenario: what it should do
                // does not happen.
                if is_wanted && !runs {
                    processes.clear();
                    processes.extend(programs.iter().flat_map(Program::start));
                } else if !is_wanted && !processes.is_empty() {
                    let ended = terminate(std::mem::take(&mut processes)).await;
                    *told.lock() = ended.ok().map(|()| Utc::now());
                }
                sleep(TICK).await;
            }
        };
        Self {
            is_running,
            ended,
            _kubelet: JoinSet::from_iter([kubelet]),
        }
    }

    /// Whether all of it runs.
    pub fn is_running(&self) -> bool {
        *self.is_running.borrow()
    }
}

/// Asks programs to end, as a kubelet does, and waits for that.
async fn terminate(processes: Vec<Process>) -> Result<()> {
    for mut process in processes {
        process.signal(Signal::SIGTERM)?;
        process.end(TERMINATION_GRACE).await?;
    }
    Ok(())
}
