//! The lease clock (D-21): when was a lease really renewed, whatever the clocks of its node and of
//! this machine say?
//!
//! A stamp alone can be believed only if the node's clock agrees with ours. Watching the stamp
//! *change* tells more: the renewal happened between the probe that still showed the old value and
//! the one that showed the new. The smallest distance seen between a stamp and the moment we first
//! saw it, the `offset`, says how far the clocks are apart. It grows slowly, so that clocks that
//! drift or were put back unseen are forgiven in minutes; silence is no drift, so that it grows no
//! further in a long one.
//!
//! A stamp is *doubted* for a beat and a tolerance when it was never seen to change, when it came
//! from further back than a beat explains, or when it shows that the node's clock has stepped:
//! either its node died soon after that renewal, or its clock was just put back, and only a live
//! node renews again in that time. The first change that is seen may be both: a clock that is
//! behind, or one that agrees, of a node that was silent again before anybody saw it. Until the
//! next one it counts as the older of the two.

mod list;

use chrono::{DateTime, TimeDelta, Utc};
use strum::{IntoStaticStr, VariantNames};

pub use self::list::{LeaseList, LeaseRecord, LeaseUid};
use super::moment::{Moment, RequestTimes};
use super::sorted::position;

/// How long a kubelet waits between renewals when the lease does not say (a quarter of the default
/// lease duration of 40 s).
const DEFAULT_BEAT: TimeDelta = TimeDelta::seconds(10);
/// How far an observed offset may be off for reasons other than a differing clock (D-21).
const TOLERANCE: TimeDelta = TimeDelta::seconds(1);
/// `offset` grows by this part of the time between two changes (D-21): three times what
/// crystals and ntpd do to clocks, so that a clock that was put back by 10 s is forgiven in 50
/// minutes, and a verdict comes 1.6 s late at most for it.
const FORGIVEN_IN: i32 = 300;
/// The longest time between two changes that counts for it: after an outage of an hour a blip
/// would look up to 12 s younger than it is (D-69).
const FORGIVEN_SILENCE: TimeDelta = TimeDelta::minutes(10);

/// A share of the grace, and the most that it may come to.
#[derive(Clone, Copy, Debug)]
pub struct GraceShare {
    pub basis_points: i32,
    pub at_most: TimeDelta,
}

/// The shoot's `nodeMonitorGracePeriod` and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    period: TimeDelta,
    /// The interval of renewals of which two take longer than the period: then leases are judged by
    /// it, since else healthy ones would expire again and again (D-79).
    slow_beat: Option<TimeDelta>,
}

impl Grace {
    /// After `period` without a renewal kube-controller-manager marks the node Unknown.
    pub const fn new(period: TimeDelta) -> Self {
        Self {
            period,
            slow_beat: None,
        }
    }

    /// The same for leases that are renewed at this interval.
    fn for_beat(self, beat: TimeDelta) -> Self {
        Self {
            slow_beat: (beat * 2 > self.period).then_some(beat),
            ..self
        }
    }

    /// The same for kubelets with default settings.
    pub fn for_kubelets(self) -> Self {
        self.for_beat(DEFAULT_BEAT)
    }

    pub const fn period(self) -> TimeDelta {
        self.period
    }

    /// True if leases are judged by their renewals, so that protection comes later than three
    /// quarters of the period.
    pub const fn is_too_short(self) -> bool {
        self.slow_beat.is_some()
    }

    /// When a lease counts as expired: 0.75 of the period (rule 47), to be earlier than
    /// kube-controller-manager, and no earlier than one and a half intervals of its renewals
    /// (D-79).
    pub fn threshold(self) -> TimeDelta {
        self.slow_beat
            .map_or(self.period / 4 * 3, |beat| beat * 3 / 2)
    }

    fn longest_beat(self) -> TimeDelta {
        self.slow_beat.unwrap_or(self.period / 4)
    }

    fn usual_beat(self) -> TimeDelta {
        self.slow_beat
            .unwrap_or_else(|| DEFAULT_BEAT.min(self.longest_beat()))
    }

    /// The longest time for which a stamp can be doubted, and silence be the API server's own: the
    /// longest beat and the tolerance.
    pub fn longest_doubt(self) -> TimeDelta {
        self.longest_beat() + TOLERANCE
    }

    /// How far apart two complete probes may be so that kubelets renewed between them if they
    /// could (D-54): half of the period, or a slow beat.
    pub(crate) fn longest_break(self) -> TimeDelta {
        self.threshold() / 3 * 2
    }

    /// How far apart probes may be so that doubt never delays a verdict: a renewal that is seen
    /// within this time has been watched for a beat and the tolerance before it expires.
    pub(crate) fn longest_gap(self) -> TimeDelta {
        self.threshold() - self.longest_doubt()
    }

    /// How long kubelets may take to renew once they can, by the interval of their renewals and the
    /// tolerance.
    fn beat_and_tolerance(self, lease_duration_seconds: Option<i32>) -> TimeDelta {
        self.beat(lease_duration_seconds) + TOLERANCE
    }

    /// How far apart the complete probes around one without an answer may lie so that the silence
    /// of all leases cannot be the API server's own (D-54): what is left of the threshold after the
    /// time in which kubelets renew, 0.7 of a beat beyond a whole one.
    pub(crate) fn longest_silence(self) -> TimeDelta {
        self.threshold() - self.usual_beat() * 17 / 10 - TOLERANCE
    }

    /// While anything is held down, probes are at most so far apart (D-53).
    pub fn recovery_gap(self) -> TimeDelta {
        self.usual_beat() / 2
    }

    pub fn share(self, share: GraceShare) -> TimeDelta {
        share.at_most.min(self.period / 10_000 * share.basis_points)
    }

    /// The interval of a kubelet's renewals, as far as the clock of a lease goes by it: at most a
    /// quarter of the grace, unless that is too short.
    fn beat(self, lease_duration_seconds: Option<i32>) -> TimeDelta {
        let beat = beat(lease_duration_seconds);
        beat.min(self.for_beat(beat).longest_beat())
    }
}

/// The interval at which a kubelet renews: a quarter of the lease's own duration, whatever else is
/// seen. A shorter interval that is seen only means that the kubelet was restarted.
fn beat(lease_duration_seconds: Option<i32>) -> TimeDelta {
    match lease_duration_seconds {
        Some(seconds) if seconds > 0 => TimeDelta::milliseconds(i64::from(seconds) * 250),
        _ => DEFAULT_BEAT,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum LeaseState {
    Valid,
    /// Not renewed for at least the threshold.
    Expired,
    /// Its stamp says expired, but we have not yet watched it for long enough to know that the
    /// stamp can be believed; or valid, but no renewal was seen since something was held down.
    Undecided,
}

/// What leases are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Criteria {
    /// The moment that is judged.
    pub now: Moment,
    /// The first probe after any time in which the API server may have been away: silence counts
    /// from a beat and the tolerance after it on (D-54).
    pub answering: Moment,
    /// While anything is held down: which probe a later one must have seen a renewal after, for the
    /// lease to be valid (D-59).
    pub renewed_after: Option<Moment>,
    pub grace: Grace,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LeaseClock {
    stamp: DateTime<Utc>,
    /// `stamp` on our clock, converted once, when the value was first seen; after a step of the
    /// node's clock, the probe before that.
    placed: Moment,
    /// When we first saw `stamp`.
    seen: Moment,
    /// The smallest `seen - placed` over the values seen.
    offset: TimeDelta,
    duration_seconds: Option<i32>,
    sighting: Sighting,
}

/// How a stamp was first seen, and with that how far it can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sighting {
    /// With its lease: it was never seen to change.
    First,
    /// As the first change of a time in which the node renewed, and so late that either the clocks
    /// differ or it was silent again before.
    Ambiguous,
    /// From further back than a beat explains.
    Late,
    /// With a clock that has stepped.
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

    /// Takes in what a further probe shows; `before` is when the probe was sent that showed the
    /// lease last.
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
        // As late as it can have been in the worst case: this may be the last renewal before an
        // outage.
        self.placed = if stepped { before } else { placed };
        (self.stamp, self.seen) = (stamp, times.received);
    }

    /// Whether the lease was never seen to change twice while its node renewed.
    fn is_unproven(&self, now: Moment, grace: Grace) -> bool {
        match self.sighting {
            Sighting::First => true,
            Sighting::Ambiguous => now - self.seen > self.threshold(grace),
            Sighting::Late | Sighting::Stepped | Sighting::Prompt => false,
        }
    }

    /// When the lease was renewed last, on our clock.
    pub fn renewed(&self, grace: Grace) -> Moment {
        if self.clocks_differ(grace) && self.sighting != Sighting::Stepped {
            self.placed + self.offset
        } else {
            self.placed.min(self.seen)
        }
    }

    /// Whether this stamp was first seen by a later probe than the one answered at `received`.
    pub(crate) fn changed_since(&self, received: Moment) -> bool {
        self.seen > received
    }

    /// How far the node's clock is behind ours (negative: ahead), beyond what the beat and the
    /// tolerance explain; zero while they agree.
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

    /// The earliest moment at which this lease counts as expired unless it is renewed.
    pub(crate) fn expires(&self, by: Criteria) -> Moment {
        (self.renewed(by.grace) + self.threshold(by.grace)).max(self.certain_from(by))
    }

    /// Whether it is certain that the lease has not been renewed for `span`.
    pub(crate) fn is_silent_for(&self, span: TimeDelta, by: Criteria) -> bool {
        self.renewed(by.grace) + span <= by.now && self.certain_from(by) <= by.now
    }

    fn beat(&self) -> TimeDelta {
        beat(self.duration_seconds)
    }

    fn threshold(&self, grace: Grace) -> TimeDelta {
        grace.for_beat(self.beat()).threshold()
    }

    /// From when on an unchanged stamp is believed.
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

    /// Known only from changes: one stamp alone may simply be old, and so may the first change.
    fn clocks_differ(&self, grace: Grace) -> bool {
        !matches!(self.sighting, Sighting::First | Sighting::Ambiguous)
            && !self.clocks_agree(self.offset, grace)
    }
}

/// The lease clocks of one shoot, sorted by node name as API servers list them.
#[derive(Debug, Default, Clone)]
pub struct LeaseClocks {
    entries: Vec<Entry>,
    /// How many leases of the last list have none.
    pub without_renew_time: usize,
    /// Which probe was the last; wraps around.
    round: u32,
    last_sent: Option<Moment>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: Box<str>,
    uid: LeaseUid,
    clock: LeaseClock,
    round: u32,
}

impl LeaseClocks {
    /// Takes in a complete list of leases. Leases that are gone, or have no renewTime (D-19), are
    /// forgotten.
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
                // No honest list names a lease twice, and one that was made again is another: what
                // was known of it is worth nothing.
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

    /// Where the lease of this node is; most likely at `expected`.
    pub(super) fn position(&self, node: &str, expected: usize) -> Option<usize> {
        position(&self.entries, |entry| &entry.name, node, expected)
    }

    /// Adds leases that are not there yet. One that was named twice is as it was named last: of
    /// equal names the first one stays.
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

    /// The grace by which these leases are judged as a whole: by the shortest of their beats.
    pub(crate) fn grace(&self, grace: Grace) -> Grace {
        let beats = self.entries.iter().map(|entry| entry.clock.beat());
        beats
            .min()
            .map_or_else(|| grace.for_kubelets(), |beat| grace.for_beat(beat))
    }
}

#[cfg(test)]
mod tests;
