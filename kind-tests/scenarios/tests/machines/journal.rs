//! Every phase that the Machines of a shoot went through.

use std::collections::{BTreeMap, BTreeSet};

use testbed::kube_api::ObjectChange;
use testbed::objects::name;
use testbed::{Followed, KubeApi};
use tokio::time::Instant;

/// The phase of a healthy Machine.
pub const RUNNING: &str = "Running";
/// Of one whose node is not healthy.
pub const UNKNOWN: &str = "Unknown";
/// Of one that machine-controller-manager has given up.
pub const FAILED: &str = "Failed";
/// Not a phase of its own: there is no such Machine any more.
pub const GONE: &str = "gone";

/// A Machine came to be in a phase.
#[derive(Clone)]
pub struct MachineStep {
    pub at: Instant,
    pub machine: String,
    pub phase: String,
}

/// All steps so far, in order.
pub struct MachineJournal(Followed<Vec<MachineStep>>);

impl MachineJournal {
    /// Begins to watch the collection `machines`.
    pub fn start(api: &KubeApi, machines: String) -> Self {
        Self(Followed::start(api, machines, Vec::new(), write))
    }

    pub fn steps(&self) -> Vec<MachineStep> {
        self.0.get().clone()
    }

    /// The phase of each Machine that there is.
    pub fn phases(&self) -> BTreeMap<String, String> {
        let steps = self.steps().into_iter();
        let mut phases: BTreeMap<_, _> = steps.map(|step| (step.machine, step.phase)).collect();
        phases.retain(|_, phase| phase != GONE);
        phases
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

fn write(steps: &mut Vec<MachineStep>, change: ObjectChange) {
    let (object, phase) = match &change {
        ObjectChange::Set(object) => (object, object["status"]["currentStatus"]["phase"].as_str()),
        ObjectChange::Gone(object) => (object, Some(GONE)),
    };
    let (machine, phase) = (name(object), phase.unwrap_or("new"));
    let last = steps.iter().rfind(|step| step.machine == machine);
    if last.is_none_or(|last| last.phase != phase) {
        steps.push(MachineStep {
            at: Instant::now(),
            machine: machine.into(),
            phase: phase.into(),
        });
    }
}
