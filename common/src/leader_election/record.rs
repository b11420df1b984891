//! What a Lease says of the leader, and what follows for a candidate: client-go's rules, on values.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value};
use tokio::time::Instant;

/// The `spec` of a Lease, with fields that are not ours kept as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record(Map<String, Value>);

impl Record {
    /// Takes the spec out of a Lease; an absent or odd one is that of a Lease that nobody holds.
    pub fn of(spec: &Value) -> Self {
        Self(spec.as_object().cloned().unwrap_or_default())
    }

    pub fn into_spec(self) -> Value {
        Value::Object(self.0)
    }

    /// Who leads; empty when nobody does.
    pub fn holder(&self) -> &str {
        self.0.get("holderIdentity").and_then(Value::as_str).unwrap_or_default()
    }

    /// For how long the holder may go without renewing.
    fn duration(&self) -> Duration {
        let seconds = self.0.get("leaseDurationSeconds").and_then(Value::as_i64).and_then(|seconds| u32::try_from(seconds).ok());
        Duration::from_secs(seconds.unwrap_or_default().into())
    }

    /// The record after `identity` renewed it, or took it over.
    pub fn held_by(&self, identity: &str, lease_duration: Duration, now: DateTime<Utc>) -> Self {
        let mut next = self.0.clone();
        let stamp = stamp(now);
        if self.holder() != identity {
            // The first holder of a new Lease is no transition. The API knows 32 bits.
            let known = self.0.get("leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
            let transitions = if self.0.is_empty() { 0 } else { known.saturating_add(1).min(i32::MAX.into()) };
            next.insert("leaseTransitions".into(), transitions.into());
            next.insert("acquireTime".into(), stamp.clone().into());
        }
        next.insert("holderIdentity".into(), identity.into());
        // Whole seconds, rounded up: others must not wait for less than what renewDeadline was checked against.
        let seconds = lease_duration.as_secs() + u64::from(lease_duration.subsec_nanos() > 0);
        next.insert("leaseDurationSeconds".into(), seconds.into());
        next.insert("renewTime".into(), stamp.into());
        Self(next)
    }

    /// The record after its holder gave it up: anyone may take it at once.
    pub fn released(&self, now: DateTime<Utc>) -> Self {
        let mut next = self.0.clone();
        next.insert("holderIdentity".into(), "".into());
        next.insert("leaseDurationSeconds".into(), 1.into());
        next.insert("renewTime".into(), stamp(now).into());
        next.insert("acquireTime".into(), stamp(now).into());
        Self(next)
    }
}

/// Kubernetes' MicroTime.
fn stamp(now: DateTime<Utc>) -> String {
    now.to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It leads: renew.
    Renew,
    /// Nobody leads any more: take over.
    TakeOver,
    /// Another one leads, at least until then.
    WaitUntil(Instant),
}

/// What a candidate has seen of the Lease. Whether its holder still lives is judged by when we last saw the record
/// change, on our own monotonic clock, so that no clock of another machine matters.
#[derive(Debug)]
pub struct Observation {
    identity: String,
    seen: Option<(Record, Instant)>,
}

impl Observation {
    pub fn new(identity: String) -> Self {
        Self { identity, seen: None }
    }

    /// Who held the Lease when it was last seen; empty when nobody did.
    pub fn holder(&self) -> &str {
        self.seen.as_ref().map_or("", |(record, _)| record.holder())
    }

    pub fn note(&mut self, record: &Record, now: Instant) {
        if self.seen.as_ref().is_none_or(|(known, _)| known != record) {
            self.seen = Some((record.clone(), now));
        }
    }

    /// What to do at `now`. Also right when the Lease was deleted: who held it then may still believe that he leads.
    pub fn step(&self, now: Instant) -> Step {
        let Some((record, at)) = &self.seen else { return Step::TakeOver };
        if record.holder() == self.identity {
            return Step::Renew;
        }
        let end = *at + record.duration();
        if record.holder().is_empty() || end <= now { Step::TakeOver } else { Step::WaitUntil(end) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: u64) -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now) + Duration::from_secs(seconds)
    }

    fn wall() -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000, 123_456_789).unwrap()
    }

    fn record(spec: Value) -> Record {
        Record::of(&spec)
    }

    fn other() -> Record {
        record(
            json!({"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z", "leaseTransitions": 3}),
        )
    }

    #[test]
    fn a_lease_that_nobody_holds_is_taken_at_once() {
        let mut seen = Observation::new("me".into());
        assert_eq!(seen.step(at(0)), Step::TakeOver);
        seen.note(&record(json!({"holderIdentity": "", "leaseDurationSeconds": 1})), at(0));
        assert_eq!(seen.step(at(0)), Step::TakeOver);
    }

    #[test]
    fn a_foreign_lease_is_left_alone_for_its_whole_duration_however_old_its_stamp_looks() {
        let mut seen = Observation::new("me".into());
        seen.note(&other(), at(100));
        assert_eq!(seen.step(at(100)), Step::WaitUntil(at(115)));
        seen.note(&other(), at(110));
        assert_eq!(seen.step(at(114)), Step::WaitUntil(at(115)), "seeing the same record again is no renewal");
        assert_eq!(seen.step(at(115)), Step::TakeOver);
    }

    #[test]
    fn every_change_of_a_foreign_lease_is_a_sign_of_life() {
        let mut seen = Observation::new("me".into());
        seen.note(&other(), at(0));
        seen.note(
            &record(json!({"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "1999-01-01T00:00:00.000000Z"})),
            at(10),
        );
        assert_eq!(seen.step(at(24)), Step::WaitUntil(at(25)));
    }

    #[test]
    fn taking_over_counts_a_transition_and_renewing_keeps_it() {
        let taken = other().held_by("me", Duration::from_secs(15), wall());
        let expected = json!({
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 4,
            "acquireTime": "2023-11-14T22:13:20.123456Z", "renewTime": "2023-11-14T22:13:20.123456Z",
        });
        assert_eq!(taken.clone().into_spec(), expected);
        let renewed = taken.held_by("me", Duration::from_secs(15), wall() + chrono::TimeDelta::seconds(2)).into_spec();
        assert_eq!(renewed["leaseTransitions"], 4);
        assert_eq!(renewed["acquireTime"], "2023-11-14T22:13:20.123456Z");
        assert_eq!(renewed["renewTime"], "2023-11-14T22:13:22.123456Z");
    }

    #[test]
    fn the_first_holder_of_a_new_lease_is_no_transition() {
        assert_eq!(Record::default().held_by("me", Duration::from_secs(15), wall()).into_spec()["leaseTransitions"], 0);
    }

    #[test]
    fn taking_a_lease_that_says_nothing_is_a_transition_and_their_count_has_an_end() {
        let transitions =
            |spec| record(spec).held_by("me", Duration::from_secs(15), wall()).into_spec()["leaseTransitions"].clone();
        assert_eq!(transitions(json!({"strategy": "x"})), 1);
        assert_eq!(transitions(json!({"leaseTransitions": i32::MAX})), i32::MAX);
    }

    #[test]
    fn a_duration_that_is_no_whole_number_of_seconds_is_rounded_up() {
        let seconds = |millis| {
            record(json!({})).held_by("me", Duration::from_millis(millis), wall()).into_spec()["leaseDurationSeconds"].clone()
        };
        assert_eq!([seconds(200), seconds(3000), seconds(3001)], [1, 3, 4]);
    }

    #[test]
    fn a_holder_without_a_sensible_duration_may_be_followed_at_once() {
        for duration in [json!(null), json!(0), json!(-5), json!("15")] {
            let mut seen = Observation::new("me".into());
            seen.note(&record(json!({"holderIdentity": "other", "leaseDurationSeconds": duration})), at(0));
            assert_eq!(seen.step(at(0)), Step::TakeOver);
        }
    }

    #[test]
    fn fields_that_are_not_ours_survive() {
        let lease = record(
            json!({"holderIdentity": "other", "leaseDurationSeconds": 15, "strategy": "OldestEmulationVersion", "preferredHolder": "x"}),
        );
        let spec = lease.held_by("me", Duration::from_secs(15), wall()).released(wall()).into_spec();
        assert_eq!((&spec["strategy"], &spec["preferredHolder"]), (&json!("OldestEmulationVersion"), &json!("x")));
    }

    #[test]
    fn a_released_lease_may_be_taken_at_once() {
        let mut seen = Observation::new("me".into());
        seen.note(&other(), at(0));
        seen.note(&other().released(wall()), at(1));
        assert_eq!(seen.step(at(1)), Step::TakeOver);
        assert_eq!(other().released(wall()).into_spec()["leaseTransitions"], 3);
    }
}
