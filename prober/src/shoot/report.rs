//! What a shoot's task says: on the board and in the log.

use std::collections::BTreeMap;

use super::Shoot;
use crate::board::{Failure, Judged};
use crate::core::moment::Moment;
use crate::engine::error::ProbeError;
use crate::probe::Finding;

impl Shoot {
    /// Notes on the board when the next look is due and what is held down.
    pub(super) fn note(&self, next: Moment) {
        let held_down = self.flow.held_down();
        self.place.update(|line| {
            line.due = next;
            line.paused = self.paused;
            if let Some(rehearsal) = &self.rehearsal {
                line.intended.clone_from(&rehearsal.intended);
            }
            line.scaling = self.running.as_ref().map(|(direction, _)| *direction);
            line.hold_down(held_down, self.clock.now());
        });
    }

    pub(super) fn report(&mut self, finding: &Finding) {
        self.place.update(|line| {
            line.complete = self.clock.now();
            (line.tally, line.skewed) = (finding.tally, finding.skewed);
            line.excluded.clone_from(&finding.excluded);
            let fraction = self.flow.config.node_lease_failure_fraction;
            line.judged = Some(Judged { verdict: finding.verdict, fraction, grace: finding.grace });
            line.leases.clone_from(&finding.leases);
            line.failure = None;
        });
        let Finding { verdict, tally, nodes_listed, excluded, .. } = finding;
        if self.last_category.take().is_some() {
            tracing::info!(failed_probes = self.failures, "probes are complete again");
        }
        let changed = self.last_verdict.replace(*verdict) != Some(*verdict);
        macro_rules! say {
            ($level:ident) => {
                tracing::$level!(
                    verdict = verdict.as_str(),
                    candidates = tally.candidates,
                    expired = tally.expired,
                    undecided = tally.undecided,
                    fraction = self.flow.config.node_lease_failure_fraction,
                    nodes_listed,
                    excluded = words(excluded),
                    "probe complete"
                )
            };
        }
        if changed { say!(info) } else { say!(debug) }
    }

    pub(super) fn report_failure(&mut self, error: &ProbeError) {
        let category = error.cause.category();
        let stage = error.stage.as_str();
        let failure = Failure { stage, category, message: error.cause.to_string(), failed_probes: self.failures };
        self.place.update(|line| line.failure = Some(failure));
        if self.last_category.replace(category) == Some(category) {
            tracing::debug!(stage, category, error = %error.cause, failed_probes = self.failures, "probe not complete");
        } else {
            tracing::warn!(stage, category, error = %error.cause, "probe not complete, nothing is concluded from it");
        }
    }
}

/// As in `no_node: 2, not_managed: 1`.
fn words(counts: &BTreeMap<&str, usize>) -> String {
    counts.iter().map(|(reason, count)| format!("{reason}: {count}")).collect::<Vec<_>>().join(", ")
}
