//! A Lease read as a record of the leader, and what follows for a candidate: client-go's rules, on values.
//! Fields of its spec that are not ours stay as they are, as far as Kubernetes' types know them.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// The leader; empty if nobody leads.
pub(super) fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().map_or("", holder_of)
}

fn holder_of(spec: &LeaseSpec) -> &str {
    spec.holder_identity.as_deref().unwrap_or_default()
}

/// The spec after `identity` renewed it, or took it over; the default is that of a Lease that does
/// not exist yet.
pub(super) fn held_by(
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
pub(super) fn released(spec: LeaseSpec, now: MicroTime) -> LeaseSpec {
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
pub struct ObservedLease {
    spec: LeaseSpec,
    /// Time it was first seen so; `None` if there was no Lease yet.
    pub(super) changed_at: Option<Instant>,
    /// End of this process's own leadership unless it renews; `None` when it does not lead.
    pub(super) leads_until: Option<Instant>,
}

impl ObservedLease {
    /// Holder of the Lease when last seen; empty if there was no holder.
    pub(super) fn holder(&self) -> &str {
        holder_of(&self.spec)
    }

    /// True if this process surely leads now.
    pub(super) fn leads(&self) -> bool {
        self.leads_until.is_some_and(|until| Instant::now() < until)
    }

    /// Notes the Lease as it is now.
    pub(super) fn update(&mut self, lease: &Lease, now: Instant) {
        let spec = lease.spec.clone().unwrap_or_default();
        if spec != self.spec || self.changed_at.is_none() {
            self.spec = spec;
            self.changed_at = Some(now);
        }
    }

    /// True if another replica than `identity` may still lead. Also right when the Lease was
    /// deleted: its last holder may still believe that it leads.
    pub(super) fn is_held_by_another(&self, identity: &str, now: Instant) -> bool {
        let seconds = self.spec.lease_duration_seconds;
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let lasts = Duration::from_secs(seconds.unwrap_or_default());
        !["", identity].contains(&self.holder())
            && self.changed_at.is_some_and(|at| now < at + lasts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stamps are written as years.
    fn spec(json: &str) -> LeaseSpec {
        let stamped = json.replace("0\"", "0-01-01T00:00:00.000000Z\"");
        serde_json::from_str(&stamped).unwrap()
    }

    fn shown(spec: &LeaseSpec) -> String {
        let json = serde_json::to_string(spec).unwrap();
        json.replace("-01-01T00:00:00.000000Z", "")
    }

    /// What is seen at which seconds, and when a candidate may take the Lease, counted from the last
    /// of them.
    const SIGHTS: &str = r#"
        100 {"holderIdentity":"other","leaseDurationSeconds":15,"renewTime":"2020"} -> 15
        114 {"holderIdentity":"other","leaseDurationSeconds":15,"renewTime":"2020"} -> 1
        115 {"holderIdentity":"other","leaseDurationSeconds":15,"renewTime":"2020"} -> 0
        120 {"holderIdentity":"other","leaseDurationSeconds":15,"renewTime":"1990"} -> 15
        125 {"holderIdentity":"other","leaseDurationSeconds":15,"renewTime":"1980"} -> 15
        126 {"holderIdentity":"","leaseDurationSeconds":1,"renewTime":"1980"}       -> 0
        130 {"holderIdentity":"other","leaseDurationSeconds":0,"renewTime":"2020"}  -> 0
        140 {"holderIdentity":"other","leaseDurationSeconds":-5,"renewTime":"2020"} -> 0
        150 {"holderIdentity":"other","renewTime":"2020"}                           -> 0
        160 {"holderIdentity":"me","leaseDurationSeconds":15,"renewTime":"2020"}    -> 0"#;

    #[test]
    fn a_foreign_lease_is_left_alone_for_its_whole_duration_however_old_its_stamp_looks() {
        let (start, mut observed) = (Instant::now(), ObservedLease::default());
        assert!(!observed.is_held_by_another("me", start));
        for line in SIGHTS.trim().lines() {
            let (seen, expected) = line.split_once("->").expect(line);
            let (seconds, seen) = seen.trim().split_once(' ').expect(line);
            let now = start + Duration::from_secs(seconds.parse().expect(line));
            let lease = Lease {
                spec: Some(spec(seen)),
                ..Lease::default()
            };
            observed.update(&lease, now);
            let end = now + Duration::from_secs(expected.trim().parse().expect(line));
            let before = end - Duration::from_millis(1);
            assert!(
                end == now || observed.is_held_by_another("me", before),
                "{line}"
            );
            assert!(!observed.is_held_by_another("me", end), "{line}");
        }
    }

    #[test]
    fn fields_that_are_not_ours_survive() {
        for (before, held) in [
            // The first holder of a new Lease is no transition.
            (
                "{}",
                r#"{"acquireTime":"2000","holderIdentity":"me","leaseDurationSeconds":15,"leaseTransitions":0,"renewTime":"2000"}"#,
            ),
            (
                r#"{"holderIdentity":"other","leaseDurationSeconds":15,"renewTime":"2020"}"#,
                r#"{"acquireTime":"2000","holderIdentity":"me","leaseDurationSeconds":15,"leaseTransitions":1,"renewTime":"2000"}"#,
            ),
            (
                r#"{"holderIdentity":"","leaseTransitions":2147483647,"preferredHolder":"y","strategy":"x"}"#,
                r#"{"acquireTime":"2000","holderIdentity":"me","leaseDurationSeconds":15,"leaseTransitions":2147483647,"preferredHolder":"y","renewTime":"2000","strategy":"x"}"#,
            ),
            (
                r#"{"acquireTime":"1990","holderIdentity":"me","leaseDurationSeconds":15,"leaseTransitions":3,"renewTime":"1990"}"#,
                r#"{"acquireTime":"1990","holderIdentity":"me","leaseDurationSeconds":15,"leaseTransitions":3,"renewTime":"2000"}"#,
            ),
        ] {
            let now = MicroTime("2000-01-01T00:00:00Z".parse().unwrap());
            let lasting = |millis| {
                held_by(
                    spec(before),
                    "me",
                    Duration::from_millis(millis),
                    now.clone(),
                )
            };
            assert_eq!(shown(&lasting(15_000)), held);
            let free = held
                .replace("\"me\"", "\"\"")
                .replace(":15", ":1")
                .replace("1990", "2000");
            assert_eq!(shown(&released(lasting(15_000), now.clone())), free);
            for (millis, seconds) in [(200, 1), (3000, 3), (3001, 4)] {
                assert_eq!(lasting(millis).lease_duration_seconds, Some(seconds));
            }
        }
    }
}
