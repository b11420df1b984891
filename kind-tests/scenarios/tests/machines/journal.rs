//! Every phase that the Machines of a shoot went through.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use testbed::KubeApi;
use testbed::kube_api::ObjectChange;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The phase of a healthy Machine.
pub const RUNNING: &str = "Running";
/// Of one whose node is not healthy.
pub const UNKNOWN: &str = "Unknown";
/// Of one that machine-controller-manager has given up.
pub const FAILED: &str = "Failed";
/// Not a phase of its own: there is no such Machine any more.
pub const GONE: &str = "gone";
/// How long a watch that broke waits before it begins again.
const PAUSE: Duration = Duration::from_millis(200);

/// A Machine came to be in a phase.
#[derive(Clone)]
pub struct MachineStep {
    pub at: Instant,
    pub machine: String,
    pub phase: String,
}

/// All steps so far, in order.
pub struct MachineJournal {
    steps: Arc<Mutex<Vec<MachineStep>>>,
    _watch: JoinSet<()>,
}

impl MachineJournal {
    /// Begins to watch the collection `machines`.
    pub fn start(api: KubeApi, machines: String) -> Self {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let mut watch = JoinSet::new();
        let written = steps.clone();
        watch.spawn(async move {
            loop {
                let _ = api
                    .follow(&machines, |change| write(&mut lock(&written), &change))
                    .await;
                sleep(PAUSE).await;
            }
        });
        Self {
            steps,
            _watch: watch,
        }
    }

    pub fn steps(&self) -> Vec<MachineStep> {
        lock(&self.steps).clone()
    }

    /// The phase of each Machine that there is.
    pub fn phases(&self) -> BTreeMap<String, String> {
        let mut phases: BTreeMap<_, _> = self
            .steps()
            .into_iter()
            .map(|step| (step.machine, step.phase))
            .collect();
        phases.retain(|_, phase| phase != GONE);
        phases
    }

    /// When this Machine last came to be in this phase.
    pub fn since(&self, machine: &str, phase: &str) -> Option<Instant> {
        let steps = self.steps();
        steps
            .iter()
            .rfind(|step| step.machine == machine && step.phase == phase)
            .map(|step| step.at)
    }

    /// The Machines that came to be in any of these phases, at this step or later.
    pub fn ever(&self, from: usize, phases: &[&str]) -> BTreeSet<String> {
        let steps = self.steps().into_iter().skip(from);
        steps
            .filter(|step| phases.contains(&step.phase.as_str()))
            .map(|step| step.machine)
            .collect()
    }
}

fn lock(steps: &Mutex<Vec<MachineStep>>) -> MutexGuard<'_, Vec<MachineStep>> {
    steps.lock()
}

fn write(steps: &mut Vec<MachineStep>, change: &ObjectChange) {
    let (object, phase) = match change {
        ObjectChange::Set(object) => (
            object,
            object["status"]["currentStatus"]["phase"]
                .as_str()
                .unwrap_or("new"),
        ),
        ObjectChange::Gone(object) => (object, GONE),
    };
    let machine = object["metadata"]["name"].as_str().unwrap_or_default();
    if steps
        .iter()
        .rfind(|step| step.machine == machine)
        .is_none_or(|last| last.phase != phase)
    {
        steps.push(MachineStep {
            at: Instant::now(),
            machine: machine.into(),
            phase: phase.into(),
        });
    }
}
