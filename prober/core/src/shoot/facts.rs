//! Facts, and since when they hold: all that a write may depend on besides its dependent. The facts of
//! the environment are updated before an input is applied, those of the probes by the probes.

use std::sync::Arc;

use super::{Direction, Environment};
use crate::judgement::Finding;
use crate::moment::Moment;
use crate::plan::ByDirection;

/// Start of the current period in which a condition is met; `None` while it is not.
pub(super) type MetSince = Option<Moment>;

#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The shoot is ours by its Cluster and its owner record, and is not paused.
    pub free: ByDirection<MetSince>,
    /// Leadership, config and settings are as they are.
    pub same_terms: Moment,
    pub leads: bool,
    /// The last complete probe.
    pub evidence: Option<Evidence>,
    /// All complete probes have said "up", and no two were so far apart that the nodes may have been
    /// silent between them.
    pub up: MetSince,
    /// End of the last hold for want of proof.
    pub proven: Moment,
    /// End of the last complete probe before the newest marker was seen: for a restore, renewals
    /// must be seen later.
    pub marked_after: Moment,
}

#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub completed: Moment,
    pub finding: Arc<Finding>,
}

impl Facts {
    /// Takes in the environment. Returns true if this replica has gained or lost the lead.
    pub(super) fn observe(
        &mut self,
        env: &Environment<'_>,
        is_free: ByDirection<bool>,
        now: Moment,
    ) -> bool {
        let update = |since: MetSince, is_met: bool| is_met.then(|| since.unwrap_or(now));
        self.free = ByDirection {
            up: update(self.free.up, is_free[Direction::Up]),
            down: update(self.free.down, is_free[Direction::Down]),
        };
        let lead_changed = std::mem::replace(&mut self.leads, env.leads) != env.leads;
        if lead_changed {
            self.same_terms = now;
        }
        lead_changed
    }

    /// Takes in a finding; `judged` at this moment.
    pub(super) fn adopt(&mut self, finding: Finding, completed: Moment, judged: Moment) {
        let unseen = finding.judged_at - self.completed();
        let up = self.up.filter(|_| unseen <= finding.grace.longest_break());
        let is_up = finding.verdict.is_up();
        self.up = is_up.then(|| up.unwrap_or(finding.judged_at));
        if finding.holds_for_proof {
            self.proven = judged;
        }
        self.evidence = Some(Evidence {
            completed,
            finding: Arc::new(finding),
        });
    }

    /// End of the last complete probe.
    pub(super) fn completed(&self) -> Moment {
        self.evidence
            .as_ref()
            .map_or(Moment::START, |evidence| evidence.completed)
    }

    /// Takes in that a marker was seen that was not there before.
    pub(super) fn marked(&mut self) {
        self.marked_after = self.completed();
    }
}
