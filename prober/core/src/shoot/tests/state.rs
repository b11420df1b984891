//! What tells two state machines apart, for the model: counters only as far as they are compared.

use std::hash::{Hash, Hasher};

use super::*;

impl Hash for Shoot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            config: _,
            settings: _,
            dependents,
            probes,
            direction,
            was_paused,
            phase,
            ended,
            intended: _,
            watch,
            wake,
        } = self;
        (
            dependents, probes, direction, was_paused, phase, ended, wake,
        )
            .hash(state);
        let Watch {
            start: _,
            judge: _,
            facts,
            verification,
            prevented,
        } = watch;
        (verification, prevented).hash(state);
        let Facts {
            free,
            same_terms,
            leads,
            evidence,
            up,
            proven,
            marked_after,
        } = facts;
        (free, same_terms, leads, up, proven, marked_after).hash(state);
        let evidence = evidence.as_ref().map(|evidence| {
            let finding = &evidence.finding;
            let deadline = finding.ordering_deadline;
            (
                evidence.completed,
                finding.verdict,
                finding.judged_at,
                deadline,
            )
        });
        evidence.hash(state);
    }
}
