//! A Lease read as a record of the leader, and what follows for a candidate: client-go's rules, on values.
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
    use super::*;

    const OTHERS: &str = r#"{"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}"#;

    const NOON: &str = "2023-11-14T12:00:00.123456Z";

    fn noon() -> MicroTime {
        MicroTime(NOON.parse().unwrap())
    }

    fn spec(json: &str) -> LeaseSpec {
        serde_json::from_str(json).unwrap()
    }

    /// Seconds from the last sight until this candidate may take a Lease that was seen so, at these
    /// seconds.
    fn taken_after(seen: &[(u64, LeaseSpec)]) -> u64 {
        let (start, mut observed) = (Instant::now(), ObservedLease::default());
        let mut now = start;
        for (seconds, spec) in seen {
            now = start + Duration::from_secs(*seconds);
            let lease = Lease {
                spec: Some(spec.clone()),
                ..Lease::default()
            };
            observed.update(&lease, now);
        }
        let end = observed.held_until("me", now).unwrap_or(now);
        assert_eq!(observed.held_until("me", end), None);
        (end - now).as_secs()
    }

    #[test]
    fn a_foreign_lease_is_left_alone_for_its_whole_duration_however_old_its_stamp_looks() {
        let held = || spec(OTHERS);
        let renewed = spec(&OTHERS.replace("2020", "1999"));
        let lasting = |duration| spec(&OTHERS.replace("15", duration));
        for (seen, expected) in [
            (&[][..], 0),
            (
                &[(
                    0,
                    spec(r#"{"holderIdentity": "", "leaseDurationSeconds": 1}"#),
                )],
                0,
            ),
            (&[(0, spec(&OTHERS.replace("other", "me")))], 0),
            (&[(100, held())], 15),
            // Seeing the same record again is no renewal.
            (&[(100, held()), (114, held())], 1),
            (&[(100, held()), (115, held())], 0),
            // Every change is a sign of life.
            (&[(0, held()), (10, renewed)], 15),
            (&[(0, lasting("null"))], 0),
            (&[(0, lasting("0"))], 0),
            (&[(0, lasting("-5"))], 0),
            (&[(0, held()), (1, released(held(), noon()))], 0),
        ] {
            assert_eq!(taken_after(seen), expected, "{seen:?}");
        }
    }

    #[test]
    fn fields_that_are_not_ours_survive() {
        let mine = |transitions| {
            let mine = r#"{"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": COUNT, "acquireTime": "NOON", "renewTime": "NOON"}"#;
            mine.replace("COUNT", &i32::to_string(&transitions))
                .replace("NOON", NOON)
        };
        let renewed = mine(3).replacen(NOON, "2020-01-01T00:00:00.000000Z", 1);
        let earlier = renewed.replace(NOON, "2021-01-01T00:00:00.000000Z");
        let with = |spec: &str, fields: &str| spec.replace('}', fields);
        for (before, after) in [
            // The first holder of a new Lease is no transition.
            ("{}", mine(0)),
            (r#"{"leaseDurationSeconds": 1}"#, mine(1)),
            (OTHERS, mine(1)),
            (&with(OTHERS, r#", "leaseTransitions": 3}"#), mine(4)),
            (
                &with(OTHERS, r#", "leaseTransitions": 2147483647}"#),
                mine(i32::MAX),
            ),
            (
                &with(OTHERS, r#", "strategy": "x", "preferredHolder": "y"}"#),
                with(&mine(1), r#", "strategy": "x", "preferredHolder": "y"}"#),
            ),
            (&earlier, renewed),
        ] {
            let (held, after) = (
                held_by(spec(before), "me", Duration::from_secs(15), noon()),
                spec(&after),
            );
            assert_eq!(held, after, "{before}");
            let free = LeaseSpec {
                holder_identity: Some(String::new()),
                lease_duration_seconds: Some(1),
                acquire_time: after.renew_time.clone(),
                ..after
            };
            assert_eq!(released(held, noon()), free, "{before}");
        }
        for (millis, seconds) in [(200, 1), (3000, 3), (3001, 4)] {
            let held = held_by(
                LeaseSpec::default(),
                "me",
                Duration::from_millis(millis),
                noon(),
            );
            assert_eq!(held.lease_duration_seconds, Some(seconds));
        }
    }
}
