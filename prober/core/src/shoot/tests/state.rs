//! What tells two machines apart, for the model: counters only as far as they are compared.

use std::hash::{Hash, Hasher};

use super::*;

impl Hash for Shoot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            start: _,
            judge: _,
            resources: _,
            jitter: _,
            intended: _,
            known,
            probing,
            next_probe,
            reprobes,
            ..
        } = self;
        let Self {
            failures,
            throttled_until,
            finding,
            up_since,
            last_direction,
            down_since,
            ..
        } = self;
        let Self {
            was_paused,
            stood_down,
            returned,
            prevented,
            leader_may_protect_since,
            ..
        } = self;
        let Self {
            probed_at,
            answered_at,
            free_since,
            same_since,
            led,
            marked_after,
            protected_at,
            ..
        } = self;
        (
            probed_at,
            answered_at,
            free_since,
            same_since,
            led,
            marked_after,
            protected_at,
        )
            .hash(state);
        let Self {
            marker_seen,
            verification,
            scaling,
            scalings: _,
            ended,
            failed_scalings,
            wake,
            ..
        } = self;
        let finding = finding.as_ref().map(|finding| {
            (
                finding.verdict,
                finding.judged_at,
                finding.ordering_deadline,
            )
        });
        (
            known,
            probing,
            next_probe,
            reprobes,
            failures,
            throttled_until,
            finding,
        )
            .hash(state);
        (
            was_paused,
            stood_down,
            returned,
            prevented,
            leader_may_protect_since,
        )
            .hash(state);
        (
            up_since,
            last_direction,
            down_since,
            marker_seen,
            verification,
            scaling,
            ended,
            failed_scalings,
            wake,
        )
            .hash(state);
    }
}
