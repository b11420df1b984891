//! What tells two machines apart, for the model: counters only as far as they are compared.

use std::hash::{Hash, Hasher};

use super::*;

impl Hash for Shoot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            start: _,
            config: _,
            settings: _,
            judge: _,
            dependents,
            probing,
            verdicts,
            markers,
            permission,
            owner,
            verification,
            scaling,
            wake,
        } = self;
        (dependents, markers, permission, owner, verification, wake).hash(state);
        let ProbeState {
            phase,
            next,
            requests,
            jitter: _,
            failures,
            began,
            completed,
            throttled_until,
        } = probing;
        (phase, next, requests, failures).hash(state);
        (began, completed, throttled_until).hash(state);
        let Verdicts {
            last,
            up,
            direction,
            down,
        } = verdicts;
        let last = last
            .as_ref()
            .map(|last| (last.verdict, last.judged_at, last.ordering_deadline));
        (last, up, direction, down).hash(state);
        let ScalingState {
            current,
            levels,
            begun: _,
            ended,
            failures,
            intended: _,
        } = scaling;
        (current, levels, ended, failures).hash(state);
    }
}
