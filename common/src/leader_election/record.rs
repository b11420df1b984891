//! What a Lease says of the leader, and what follows for a candidate: client-go's rules, on values.
//! Fields of its spec that are not ours stay as they are, as far as Kubernetes' types know them.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// The leader; empty if nobody leads.
pub(crate) fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().map_or("", holder_of)
}

fn holder_of(spec: &LeaseSpec) -> &str {
    spec.holder_identity.as_deref().unwrap_or_default()
}

/// The spec after `identity` renewed it, or took it over; the default is that of a Lease that does
/// not exist yet.
pub(crate) fn held_by(
    mut spec: LeaseSpec,
    identity: &str,
    lease_duration: Duration,
    now: MicroTime,
) -> LeaseSpec {
    let is_new = spec == LeaseSpec::default();
    if holder_of(&spec) != identity {
        // The first holder of a new Lease is no transition.
        let known = spec.lease_transitions.unwrap_or_default();
        spec.lease_transitions = Some(if is_new { 0 } else { known.saturating_add(1) });
        spec.acquire_time = Some(now.clone());
    }
    spec.holder_identity = Some(identity.to_owned());
    // Whole seconds, rounded up: others must not wait for less than what renewDeadline was checked
    // against.
    let seconds = lease_duration.as_secs() + u64::from(lease_duration.subsec_nanos() > 0);
    spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
    spec.renew_time = Some(now);
    spec
}

/// The spec after its holder released it: anyone may take it at once.
pub(crate) fn released(spec: LeaseSpec, now: MicroTime) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(now.clone()),
        renew_time: Some(now),
        ..spec
    }
}

/// The Lease as a candidate has observed it. Whether its holder still lives is judged by when we
/// last saw the record change, on our own monotonic clock, so that no other machine's clock
/// matters.
#[derive(Debug, Default)]
pub(crate) struct ObservedLease {
    spec: LeaseSpec,
    /// Time it was first seen so; `None` if there was no Lease yet.
    changed_at: Option<Instant>,
}

impl ObservedLease {
    /// Holder of the Lease when last seen; empty if there was no holder.
    pub(crate) fn holder(&self) -> &str {
        holder_of(&self.spec)
    }

    /// Notes the Lease as it is now; when it was seen to change last.
    pub(crate) fn update(&mut self, lease: &Lease, now: Instant) -> Instant {
        let spec = lease.spec.clone().unwrap_or_default();
        if spec != self.spec {
            self.spec = spec;
            self.changed_at = Some(now);
        }
        *self.changed_at.get_or_insert(now)
    }

    /// Earliest end of another replica's leadership; `None` if `identity` may renew the Lease or
    /// take over. Also right when the Lease was deleted: its last holder may still believe that it
    /// leads.
    pub(crate) fn held_until(&self, identity: &str, now: Instant) -> Option<Instant> {
        if ["", identity].contains(&self.holder()) {
            return None;
        }
        let seconds = self.spec.lease_duration_seconds;
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let end = self.changed_at? + Duration::from_secs(seconds.unwrap_or_default());
        (now < end).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn update(seen: &mut ObservedLease, spec: LeaseSpec, now: Instant) {
        let lease = Lease {
            spec: Some(spec),
            ..Lease::default()
        };
        seen.update(&lease, now);
    }

    fn at(seconds: u64) -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now) + Duration::from_secs(seconds)
    }

    fn wall(stamp: &str) -> MicroTime {
        MicroTime(stamp.parse().unwrap())
    }

    fn noon() -> MicroTime {
        wall("2023-11-14T12:00:00.123456789Z")
    }

    fn spec(spec: Value) -> LeaseSpec {
        serde_json::from_value(spec).unwrap()
    }

    fn other() -> LeaseSpec {
        spec(
            json!({"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z", "leaseTransitions": 3}),
        )
    }

    /// The spec after this candidate renewed it or took it over.
    fn mine(spec: LeaseSpec) -> LeaseSpec {
        held_by(spec, "me", Duration::from_secs(15), noon())
    }

    #[test]
    fn a_lease_that_nobody_holds_is_taken_at_once() {
        let mut seen = ObservedLease::default();
        assert_eq!(seen.held_until("me", at(0)), None);
        update(
            &mut seen,
            spec(json!({"holderIdentity": "", "leaseDurationSeconds": 1})),
            at(0),
        );
        assert_eq!(seen.held_until("me", at(0)), None);
    }

    #[test]
    fn a_foreign_lease_is_left_alone_for_its_whole_duration_however_old_its_stamp_looks() {
        let mut seen = ObservedLease::default();
        update(&mut seen, other(), at(100));
        assert_eq!(seen.held_until("me", at(100)), Some(at(115)));
        update(&mut seen, other(), at(110));
        assert_eq!(
            seen.held_until("me", at(114)),
            Some(at(115)),
            "seeing the same record again is no renewal"
        );
        assert_eq!(seen.held_until("me", at(115)), None);
    }

    #[test]
    fn every_change_of_a_foreign_lease_is_a_sign_of_life() {
        let mut seen = ObservedLease::default();
        update(&mut seen, other(), at(0));
        update(
            &mut seen,
            LeaseSpec {
                renew_time: Some(wall("1999-01-01T00:00:00Z")),
                ..other()
            },
            at(10),
        );
        assert_eq!(seen.held_until("me", at(24)), Some(at(25)));
    }

    #[test]
    fn taking_over_counts_a_transition_and_renewing_keeps_it() {
        let taken = mine(other());
        let expected = json!({
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 4,
            "acquireTime": "2023-11-14T12:00:00.123456Z", "renewTime": "2023-11-14T12:00:00.123456Z",
        });
        assert_eq!(serde_json::to_value(&taken).unwrap(), expected);
        let renewed = held_by(
            taken.clone(),
            "me",
            Duration::from_secs(15),
            wall("2023-11-14T12:00:02Z"),
        );
        assert_eq!(
            renewed,
            LeaseSpec {
                renew_time: Some(wall("2023-11-14T12:00:02Z")),
                ..taken
            }
        );
    }

    #[test]
    fn the_first_holder_of_a_new_lease_is_no_transition() {
        assert_eq!(mine(LeaseSpec::default()).lease_transitions, Some(0));
    }

    #[test]
    fn taking_a_lease_that_says_nothing_is_a_transition_and_their_count_has_an_end() {
        let transitions = |of| mine(spec(of)).lease_transitions;
        assert_eq!(transitions(json!({"strategy": "x"})), Some(1));
        assert_eq!(
            transitions(json!({"leaseTransitions": i32::MAX})),
            Some(i32::MAX)
        );
    }

    #[test]
    fn a_duration_that_is_no_whole_number_of_seconds_is_rounded_up() {
        let seconds = |millis| {
            held_by(
                LeaseSpec::default(),
                "me",
                Duration::from_millis(millis),
                noon(),
            )
            .lease_duration_seconds
            .unwrap()
        };
        assert_eq!([seconds(200), seconds(3000), seconds(3001)], [1, 3, 4]);
    }

    #[test]
    fn a_holder_without_a_sensible_duration_may_be_followed_at_once() {
        for duration in [json!(null), json!(0), json!(-5)] {
            let mut seen = ObservedLease::default();
            update(
                &mut seen,
                spec(json!({"holderIdentity": "other", "leaseDurationSeconds": duration})),
                at(0),
            );
            assert_eq!(seen.held_until("me", at(0)), None);
        }
    }

    #[test]
    fn fields_that_are_not_ours_survive() {
        let lease = LeaseSpec {
            strategy: Some("OldestEmulationVersion".into()),
            preferred_holder: Some("x".into()),
            ..other()
        };
        let kept = released(mine(lease.clone()), noon());
        assert_eq!(
            (kept.strategy, kept.preferred_holder),
            (lease.strategy, lease.preferred_holder)
        );
    }

    #[test]
    fn a_released_lease_may_be_taken_at_once() {
        let mut seen = ObservedLease::default();
        update(&mut seen, other(), at(0));
        update(&mut seen, released(other(), noon()), at(1));
        assert_eq!(seen.held_until("me", at(1)), None);
        assert_eq!(released(other(), noon()).lease_transitions, Some(3));
    }
}
