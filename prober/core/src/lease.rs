//! The lease clock: the time at which a lease was really renewed, whatever the clocks of its node
//! and of this host show.
//!
//! A renew time alone can be trusted only if the node's clock agrees with ours. Observing it
//! *change* tells more: the renewal happened between the last probe that returned the old value and
//! the first that returned the new one. The smallest distance observed between a renew time and its
//! first sight, the `offset`, is the difference between the clocks. It grows slowly, so that clocks
//! that drift or were set back unnoticed are compensated within minutes. Silence is not drift, so
//! growth stops during a long one.
//!
//! A *beat* is a renewal interval. A renew time is *doubted* for a beat and a tolerance if it was
//! never observed to change, if it is older than a beat explains, or if it shows that the node's
//! clock has stepped: either the node died soon after that renewal, or its clock was just set back,
//! and only a live node renews again within that time. The first observed change is ambiguous: the
//! clock may be behind, or it agrees and the node fell silent again before the change was observed.
//! Until the next change it counts as the older of the two.

mod list;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

pub use self::list::{LeaseList, LeaseRecord, LeaseUid};
use super::moment::{Moment, RequestTimes};
use super::sorted::position;

/// Renewal interval of a kubelet if the lease has no duration: a quarter of the default 40 s.
const DEFAULT_BEAT: TimeDelta = TimeDelta::seconds(10);
/// Error of an observed offset for reasons other than differing clocks.
const TOLERANCE: TimeDelta = TimeDelta::seconds(1);
/// `offset` grows by this fraction of the time between two changes: three times the drift of
/// crystals and ntpd. A clock that was set back by 10 s is compensated in 50 minutes, and a verdict
/// is late by at most 1.6 s because of it.
const FORGIVEN_IN: i32 = 300;
/// Longest time between two changes that counts for that growth. Without a limit, a blip after an
/// outage of an hour would look up to 12 s younger than it is.
const FORGIVEN_SILENCE: TimeDelta = TimeDelta::minutes(10);

/// The shoot's `nodeMonitorGracePeriod` and values derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    period: TimeDelta,
    /// Renewal interval if two of them exceed the period. Leases are then judged by it, since
    /// healthy ones would expire repeatedly otherwise.
    slow_beat: Option<TimeDelta>,
}

impl Grace {
    /// `period` is the time without a renewal after which kube-controller-manager marks a node
    /// Unknown.
    pub const fn new(period: TimeDelta) -> Self {
        Self {
            period,
            slow_beat: None,
        }
    }

    /// The same period for leases with this renewal interval.
    fn for_beat(self, beat: TimeDelta) -> Self {
        Self {
            slow_beat: (beat * 2 > self.period).then_some(beat),
            ..self
        }
    }

    pub const fn period(self) -> TimeDelta {
        self.period
    }

    /// True if leases are judged by their renewal interval, so that protection comes later than
    /// three quarters of the period.
    pub const fn is_too_short(self) -> bool {
        self.slow_beat.is_some()
    }

    /// Age at which a lease counts as expired: 0.75 of the period, to act before
    /// kube-controller-manager does, but at least one and a half renewal intervals.
    pub fn threshold(self) -> TimeDelta {
        self.slow_beat
            .map_or(self.period / 4 * 3, |beat| beat * 3 / 2)
    }

    fn longest_beat(self) -> TimeDelta {
        self.slow_beat.unwrap_or(self.period / 4)
    }

    /// Maximum time between two complete probes in which kubelets that can renew certainly did:
    /// half of the period, or a slow beat.
    pub fn longest_break(self) -> TimeDelta {
        self.threshold() / 3 * 2
    }

    /// Longest gap between probes. A renewal that is seen within it has been watched for a beat and
    /// the tolerance before it expires, so that doubt never delays a verdict. And 0.41 of the period,
    /// 16.4 s, lets one of the probes before a verdict fail; with 0.4 probes would see renewals every
    /// 10 s at five of their ages only, and know their clocks less exactly.
    pub(crate) fn longest_gap(self) -> TimeDelta {
        let longest_doubt = self.longest_beat() + TOLERANCE;
        (self.threshold() - longest_doubt).min(self.period / 100 * 41)
    }

    /// Longest time that kubelets need to renew once they can: the renewal interval and the
    /// tolerance.
    fn beat_and_tolerance(self, lease_duration_seconds: Option<i32>) -> TimeDelta {
        self.beat(lease_duration_seconds) + TOLERANCE
    }

    /// Maximum time between probes while anything is held down.
    pub fn recovery_gap(self) -> TimeDelta {
        self.slow_beat.unwrap_or(DEFAULT_BEAT.min(self.period / 4)) / 2
    }

    /// Returns a span that is meant for Kubernetes' default period of 40 s, and is shorter in
    /// proportion where the period is.
    pub fn scaled(self, span: TimeDelta) -> TimeDelta {
        let scaled = span.num_milliseconds() * self.period.num_milliseconds() / 40;
        span.min(TimeDelta::microseconds(scaled))
    }

    /// Renewal interval for the lease clock: at most a quarter of the period, unless that is too
    /// short.
    fn beat(self, lease_duration_seconds: Option<i32>) -> TimeDelta {
        let beat = beat(lease_duration_seconds);
        beat.min(self.for_beat(beat).longest_beat())
    }
}

/// Renewal interval of a kubelet: a quarter of the lease's own duration. A shorter observed
/// interval only means that the kubelet was restarted.
fn beat(lease_duration_seconds: Option<i32>) -> TimeDelta {
    match lease_duration_seconds {
        Some(seconds) if seconds > 0 => TimeDelta::milliseconds(i64::from(seconds) * 250),
        _ => DEFAULT_BEAT,
    }
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum LeaseState {
    Valid,
    /// Not renewed for at least the threshold.
    Expired,
    /// Its renew time has expired but has not been watched for long enough to be trusted; or it is
    /// valid, but no renewal was observed since something was held down.
    Undecided,
}

#[derive(Clone, Copy, Debug)]
pub struct Criteria {
    /// Moment of the judgement.
    pub now: Moment,
    /// First probe after a time in which the API server may have been unavailable. Silence counts
    /// from a beat and the tolerance after it.
    pub answering: Moment,
    /// Probe after which a renewal must be observed for the lease to be valid; set while anything
    /// is held down.
    pub renewed_after: Option<Moment>,
    pub grace: Grace,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LeaseClock {
    stamp: DateTime<Utc>,
    /// `stamp` on our clock, converted once at its first sight; after a step of the node's clock,
    /// the previous probe.
    placed: Moment,
    /// Time at which `stamp` was first observed.
    seen: Moment,
    /// Smallest `seen - placed` of all values.
    offset: TimeDelta,
    duration_seconds: Option<i32>,
    sighting: Sighting,
}

/// Manner in which a renew time was first observed, which determines how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sighting {
    /// Together with its lease: never observed to change.
    First,
    /// First change while the node renewed, but so late that either the clocks differ or the node
    /// fell silent again.
    Ambiguous,
    /// Older than a beat explains.
    Late,
    /// The node's clock has stepped.
    Stepped,
    /// Within a beat.
    Prompt,
}

impl LeaseClock {
    pub fn new(times: &RequestTimes, stamp: DateTime<Utc>, duration_seconds: Option<i32>) -> Self {
        let placed = times.place(stamp);
        Self {
            stamp,
            placed,
            seen: times.received,
            offset: times.received - placed,
            duration_seconds,
            sighting: Sighting::First,
        }
    }

    /// Applies the result of another probe; `before` is when the previous probe with this lease was
    /// sent.
    pub fn observe(
        &mut self,
        times: &RequestTimes,
        before: Moment,
        stamp: DateTime<Utc>,
        duration_seconds: Option<i32>,
        grace: Grace,
    ) {
        self.duration_seconds = duration_seconds;
        if stamp == self.stamp {
            return;
        }
        let placed = times.place(stamp);
        let distance = times.received - placed;
        let silence = (times.received - self.seen).min(FORGIVEN_SILENCE);
        let smallest = distance.min(self.offset + silence / FORGIVEN_IN);
        let beat_and_tolerance = grace.beat_and_tolerance(duration_seconds);
        let stepped = if self.clocks_agree(smallest, grace) {
            placed < before - beat_and_tolerance
        } else {
            placed + smallest < before - TOLERANCE
        };
        let may_be_either = smallest > beat_and_tolerance && placed >= before - TOLERANCE;
        self.sighting = if stepped {
            Sighting::Stepped
        } else if may_be_either && self.is_unproven(times.received, grace) {
            Sighting::Ambiguous
        } else if distance - smallest > beat_and_tolerance {
            Sighting::Late
        } else {
            Sighting::Prompt
        };
        self.offset = if stepped { distance } else { smallest };
        // Latest possible time in the worst case, since this may be the last renewal before an
        // outage.
        self.placed = if stepped { before } else { placed };
        (self.stamp, self.seen) = (stamp, times.received);
    }

    /// True if the lease was never observed to change twice while its node renewed.
    fn is_unproven(&self, now: Moment, grace: Grace) -> bool {
        match self.sighting {
            Sighting::First => true,
            Sighting::Ambiguous => now - self.seen > self.threshold(grace),
            Sighting::Late | Sighting::Stepped | Sighting::Prompt => false,
        }
    }

    /// Time of the last renewal, on our clock.
    pub fn renewed(&self, grace: Grace) -> Moment {
        if self.clocks_differ(grace) && self.sighting != Sighting::Stepped {
            self.placed + self.offset
        } else {
            self.placed.min(self.seen)
        }
    }

    /// Lag of the node's clock behind ours (negative: ahead) beyond the beat and the tolerance;
    /// zero if the clocks agree.
    pub fn skew(&self, grace: Grace) -> TimeDelta {
        if self.clocks_differ(grace) {
            self.offset
        } else {
            TimeDelta::zero()
        }
    }

    pub fn state(&self, by: Criteria) -> LeaseState {
        if self.renewed(by.grace) + self.threshold(by.grace) > by.now {
            let proven = by
                .renewed_after
                .is_none_or(|probe| self.sighting != Sighting::First && self.seen > probe);
            if proven {
                LeaseState::Valid
            } else {
                LeaseState::Undecided
            }
        } else if by.now < self.certain_from(by) {
            LeaseState::Undecided
        } else {
            LeaseState::Expired
        }
    }

    /// Earliest moment at which this lease expires unless it is renewed.
    pub(crate) fn expires(&self, by: Criteria) -> Moment {
        (self.renewed(by.grace) + self.threshold(by.grace)).max(self.certain_from(by))
    }

    /// True if the lease has certainly not been renewed for `span`.
    pub(crate) fn is_silent_for(&self, span: TimeDelta, by: Criteria) -> bool {
        self.renewed(by.grace) + span <= by.now && self.certain_from(by) <= by.now
    }

    fn beat(&self) -> TimeDelta {
        beat(self.duration_seconds)
    }

    fn threshold(&self, grace: Grace) -> TimeDelta {
        grace.for_beat(self.beat()).threshold()
    }

    /// Moment from which an unchanged renew time is trusted.
    fn certain_from(&self, by: Criteria) -> Moment {
        let watched = if self.sighting == Sighting::Prompt {
            by.answering
        } else {
            self.seen.max(by.answering)
        };
        (watched + by.grace.beat_and_tolerance(self.duration_seconds)).max(self.seen)
    }

    fn clocks_agree(&self, offset: TimeDelta, grace: Grace) -> bool {
        -TOLERANCE <= offset && offset <= grace.beat_and_tolerance(self.duration_seconds)
    }

    /// True if the clocks are known to differ. Only changes prove it: a single value, or the first
    /// change, may simply be old.
    fn clocks_differ(&self, grace: Grace) -> bool {
        !matches!(self.sighting, Sighting::First | Sighting::Ambiguous)
            && !self.clocks_agree(self.offset, grace)
    }
}

/// Lease clocks of one shoot, sorted by node name.
#[derive(Debug, Default, Clone)]
pub struct LeaseClocks {
    entries: Vec<Entry>,
    /// Number of leases in the last list without a renew time.
    pub without_renew_time: usize,
    /// Number of the last probe; wraps around.
    round: u32,
    last_sent: Option<Moment>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: Arc<str>,
    uid: LeaseUid,
    clock: LeaseClock,
    round: u32,
}

impl LeaseClocks {
    /// Applies a complete list. Leases that are gone or have no `renewTime` are removed.
    pub fn observe<'a>(
        &mut self,
        times: &RequestTimes,
        leases: impl IntoIterator<Item = LeaseRecord<'a>>,
        grace: Grace,
    ) {
        self.without_renew_time = 0;
        self.round = self.round.wrapping_add(1);
        let before = self.last_sent.replace(times.sent).unwrap_or(times.sent);
        let mut new = Vec::new();
        let mut next = 0;
        for LeaseRecord {
            name,
            uid,
            renew_time,
            duration_seconds,
        } in leases
        {
            let Some(stamp) = renew_time else {
                self.without_renew_time += 1;
                continue;
            };
            let first_sight = || LeaseClock::new(times, stamp, duration_seconds);
            let Some(at) = self.position(name, next) else {
                new.push(Entry {
                    name: name.into(),
                    uid,
                    clock: first_sight(),
                    round: self.round,
                });
                continue;
            };
            let entry = &mut self.entries[at];
            if entry.round == self.round || entry.uid != uid {
                // Valid lists have no duplicates, and the history of a recreated lease is
                // worthless.
                (entry.uid, entry.clock) = (uid, first_sight());
            } else {
                entry
                    .clock
                    .observe(times, before, stamp, duration_seconds, grace);
            }
            entry.round = self.round;
            next = at + 1;
        }
        self.entries.retain(|entry| entry.round == self.round);
        self.add(new);
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to_fit();
        }
    }

    /// Keeps the names that somebody else keeps, too, instead of equal ones.
    pub(crate) fn share_names<'a>(&mut self, known: impl Fn(&str) -> Option<&'a Arc<str>>) {
        for entry in &mut self.entries {
            if let Some(name) = known(&entry.name) {
                entry.name = Arc::clone(name);
            }
        }
    }

    /// Index of the node's lease; tries `expected` first.
    pub(super) fn position(&self, node: &str, expected: usize) -> Option<usize> {
        position(&self.entries, |entry| &entry.name, node, expected)
    }

    /// Adds new leases. Of duplicates, the last one counts: the first of equal names is kept.
    fn add(&mut self, new: Vec<Entry>) {
        if new.is_empty() {
            return;
        }
        self.entries.extend(new.into_iter().rev());
        self.entries.sort_by(|one, other| one.name.cmp(&other.name));
        self.entries.dedup_by(|later, kept| later.name == kept.name);
    }

    pub(super) fn entry(&self, at: usize) -> (&str, &LeaseClock) {
        (&self.entries[at].name, &self.entries[at].clock)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &LeaseClock)> {
        self.entries
            .iter()
            .map(|entry| (&*entry.name, &entry.clock))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Grace period for judging these leases as a whole, by their shortest beat.
    pub(crate) fn grace(&self, grace: Grace) -> Grace {
        let beats = self.entries.iter().map(|entry| entry.clock.beat());
        grace.for_beat(beats.min().unwrap_or(DEFAULT_BEAT))
    }
}

#[cfg(test)]
mod tests;
