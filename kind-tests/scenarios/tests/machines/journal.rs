//! Every phase that the Machines of a shoot went through.

use std::collections::{BTreeMap, BTreeSet};

use testbed::kube_api::ObjectChange;
use testbed::objects::{metadata, name};
use testbed::{Followed, KubeApi};

/// The phase of a healthy Machine.
pub const RUNNING: &str = "Running";
/// Of one whose node is not healthy.
pub const UNKNOWN: &str = "Unknown";
/// Of one that machine-controller-manager has given up.
pub const FAILED: &str = "Failed";
/// Not a phase of its own: there is no such Machine any more.
pub const GONE: &str = "gone";

/// All steps so far, in order: a Machine came to be in a phase.
pub struct MachineJournal(Followed<Vec<(String, String)>>);

impl MachineJournal {
    /// Begins to watch the collection `machines`.
    pub fn start(api: &KubeApi, machines: String) -> Self {
        Self(Followed::start(api, machines, Vec::new(), write))
    }

    pub fn steps(&self) -> Vec<(String, String)> {
        self.0.get().clone()
    }

    /// The phase of each Machine that there is.
    pub fn phases(&self) -> BTreeMap<String, String> {
        let mut phases: BTreeMap<_, _> = self.steps().into_iter().collect();
        phases.retain(|_, phase| phase != GONE);
        phases
    }

    /// The Machines that came to be in any of these phases, at this step or later.
    pub fn ever(&self, from: usize, phases: &[&str]) -> BTreeSet<String> {
        let steps = self.steps().into_iter().skip(from);
        let such = steps.filter(|(_, phase)| phases.contains(&phase.as_str()));
        such.map(|(machine, _)| machine).collect()
    }
}

fn write(steps: &mut Vec<(String, String)>, change: ObjectChange) {
    let (object, phase) = match &change {
        ObjectChange::Set(object) => (object, object["status"]["currentStatus"]["phase"].as_str()),
        ObjectChange::Gone(object) => (object, Some(GONE)),
    };
    let step = (name(object).to_owned(), phase.unwrap_or("new").to_owned());
    let last = steps.iter().rfind(|(machine, _)| *machine == step.0);
    if last != Some(&step) {
        println!(
            "{}: {} is {}",
            metadata(object, "namespace"),
            step.0,
            step.1
        );
        steps.push(step);
    }
}
