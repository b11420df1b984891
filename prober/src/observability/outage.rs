//! Record of one outage, from the verdict to the last restore, as one process observed it.
//!
//! ```text
//! verdict "down", or found held down --> record: writes, nodes, what is held down --> its end: log line, Event, metrics
//!                                           '--> status page, `status`, `explain` <--'
//! ```

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use prober_core::config::ResourceRef;
use prober_core::lease::LeaseState;
use prober_core::moment::Moment;
use prober_core::replicas::PlannedWrite;
use prober_core::shoot::{DependentRecord, Waits};
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::in_seconds;
use super::outcome::ProbeOutcome;
use super::waits::reason;

mod sentence;

/// Schema of the log line; another one when a field changes its meaning.
pub(super) const SCHEMA: &str = "dependency-watchdog.outage/v1";

/// Longest time without the nodes in a blip: those that have lost one of two gateways were back 10.6
/// to 20.7 s after the verdict (measured, `as_in_production/gateway.rs`), as their kubelets notice
/// it after 37 s.
const BLIP: TimeDelta = TimeDelta::seconds(25);
/// Most writes in a record, as where somebody else keeps writing, most nodes, periods and waits.
const LISTED: usize = 40;
/// Deployment in a shoot's control plane that marks nodes Unknown, by Gardener's name.
pub(super) const MARKS_NODES: &str = "kube-controller-manager";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    pub namespace: String,
    /// Time at which the verdict fell here, or what others hold down was first seen.
    pub began: DateTime<Utc>,
    /// True if it began before this process could tell: with what was found held down.
    pub found_held_down: bool,
    /// First verdict of an outage; `None` while this process has come to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judged>,
    /// Writes of this process.
    pub writes: Vec<OutageWrite>,
    pub held_down: Vec<HeldDown>,
    /// Writes that had to wait, each once for the same requirement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited: Vec<Delay>,
    /// Dependents that could not be scaled, each once for the same cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_scaled: Vec<Delay>,
    /// Nodes whose leases were not renewed for the whole grace period.
    pub nodes: Vec<OverdueNode>,
    /// Most of them at the same time, those that are not listed included.
    pub overdue_nodes: usize,
    /// Most of them while kube-controller-manager was up, which marks them Unknown. The others were
    /// saved.
    #[serde(default)]
    pub marked_nodes: usize,
    /// Number of them when it began: they are Unknown.
    #[serde(skip)]
    unknown_before: usize,
    /// Time at which the verdict last turned to "up".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<DateTime<Utc>>,
    /// Time at which the last controller was restored; if none was, at which the nodes recovered or
    /// the probe ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<OutageEnd>,
}

/// Numbers behind a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    pub at: DateTime<Utc>,
    pub candidates: usize,
    pub expired: usize,
    /// Share of expired leases that makes an outage.
    pub fraction: f64,
    pub grace_seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutageWrite {
    pub at: DateTime<Utc>,
    pub kind: String,
    pub name: String,
    /// Replicas before and after.
    pub from: i32,
    pub to: i32,
    pub as_leader: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldDown {
    pub kind: String,
    pub name: String,
    /// Times in which this process saw it so.
    pub periods: Vec<Period>,
    /// Replicas to return to; `None` if the annotation cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Period {
    pub from: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

impl Period {
    fn contains(&self, at: DateTime<Utc>) -> bool {
        self.from <= at && self.until.is_none_or(|until| at < until)
    }
}

/// Obstacle to scaling a dependent, and when it was seen first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    pub at: DateTime<Utc>,
    pub kind: String,
    pub name: String,
    pub cause: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverdueNode {
    pub name: String,
    /// Time at which kube-controller-manager marks it Unknown if it is up: a grace after its last
    /// renewal, by our clock.
    pub unknown_at: DateTime<Utc>,
    /// True if kube-controller-manager was up then, or later before it renewed.
    #[serde(default)]
    pub marked: bool,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum OutageEnd {
    Restored,
    /// The nodes recovered before anything was held down.
    NothingHeldDown,
    /// The nodes recovered while the shoot was paused.
    Paused,
    /// The probe or the process ended with resources still held down.
    StillHeldDown,
    ProbeEnded,
    /// End that only a later version knows.
    #[serde(other)]
    Other,
}

/// State of a shoot that continues its record.
pub(super) struct Snapshot<'a> {
    pub namespace: &'a str,
    /// Verdict of the last probe, if it was complete.
    pub verdict: Option<Verdict>,
    /// Outcome of the last complete probe.
    pub outcome: Option<&'a ProbeOutcome>,
    pub dependents: Vec<SeenDependent<'a>>,
    pub waits: &'a [(ResourceRef, Waits)],
    /// Causes for which dependents could not be scaled.
    pub not_scaled: &'a BTreeMap<ResourceRef, String>,
    pub is_scaling: bool,
    pub has_stood_down: bool,
    pub paused: bool,
    pub now: Moment,
    /// The same on our wall clock.
    pub wall: DateTime<Utc>,
}

/// A dependent as it was last known.
pub(super) struct SeenDependent<'a> {
    pub resource: &'a ResourceRef,
    pub is_held_down: bool,
    /// Replicas to return to; `None` if the annotation cannot be read.
    pub returns_to: Option<i32>,
}

impl<'a> From<&'a DependentRecord> for SeenDependent<'a> {
    fn from(dependent: &'a DependentRecord) -> Self {
        Self {
            resource: &dependent.resource,
            is_held_down: dependent.is_last_known_held_down(),
            returns_to: dependent
                .observed()
                .and_then(|observed| observed.marks.remembered()),
        }
    }
}

impl Outage {
    /// Begins, continues or ends a shoot's record. Returns the one that has ended.
    pub(super) fn follow(open: &mut Option<Box<Self>>, by: &Snapshot<'_>) -> Option<Box<Self>> {
        if by.has_stood_down {
            return Self::probe_ended(open, by.wall);
        }
        let is_up = by.verdict.is_some_and(Verdict::is_up);
        let is_down = by.verdict == Some(Verdict::ScaleDown);
        let is_held = by.dependents.iter().any(|seen| seen.is_held_down);
        if open.is_none() && (is_down || is_held && !(is_up && by.paused)) {
            *open = Some(Box::new(Self::begin(by)));
        }
        let outage = open.as_mut()?;
        outage.update(by);
        match is_up {
            // A watch may be faster than the answer to the last write.
            true if !is_held && !by.is_scaling => outage.end(OutageEnd::Restored, by.wall),
            true if is_held && by.paused => outage.end(OutageEnd::Paused, by.wall),
            _ => return None,
        }
        open.take()
    }

    /// Ends the record of a shoot that is not probed any more.
    pub(super) fn probe_ended(
        open: &mut Option<Box<Self>>,
        wall: DateTime<Utc>,
    ) -> Option<Box<Self>> {
        open.as_mut()?.end(OutageEnd::ProbeEnded, wall);
        open.take()
    }

    pub(super) fn wrote(
        &mut self,
        resource: &ResourceRef,
        change: &PlannedWrite,
        as_leader: bool,
        wall: DateTime<Utc>,
    ) {
        if self.writes.len() < LISTED {
            self.writes.push(OutageWrite {
                at: to_millis(wall),
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                from: change.base.replicas,
                to: change.replicas(),
                as_leader,
            });
        }
    }

    fn begin(by: &Snapshot<'_>) -> Self {
        let fell = by.verdict == Some(Verdict::ScaleDown);
        let unknown = by.outcome.map_or(0, |outcome| outcome.finding.past_grace);
        Self {
            namespace: by.namespace.to_owned(),
            began: to_millis(by.wall),
            found_held_down: !fell,
            unknown_before: if fell { unknown } else { 0 },
            ..Self::default()
        }
    }

    fn update(&mut self, by: &Snapshot<'_>) {
        let at = to_millis(by.wall);
        for dependent in &by.dependents {
            self.follow_dependent(dependent, at);
        }
        for (resource, waits) in by.waits {
            note(&mut self.waited, resource, reason(waits.requirement), at);
        }
        for (resource, cause) in by.not_scaled {
            note(&mut self.not_scaled, resource, cause, at);
        }
        let Some(verdict) = by.verdict else {
            return;
        };
        if verdict == Verdict::ScaleDown {
            self.recovered = None;
        } else if verdict.is_up() {
            self.recovered.get_or_insert(at);
        }
        if let Some(outcome) = by.outcome {
            self.follow_nodes(outcome, by);
        }
    }

    fn follow_dependent(&mut self, dependent: &SeenDependent<'_>, at: DateTime<Utc>) {
        let resource = dependent.resource;
        let listed = self
            .held_down
            .iter_mut()
            .find(|held| held.kind == resource.kind && held.name == resource.name);
        match listed {
            Some(held) => held.follow(dependent.is_held_down, at),
            None if dependent.is_held_down => self.held_down.push(HeldDown {
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                periods: vec![Period {
                    from: at,
                    until: None,
                }],
                returns_to: dependent.returns_to,
            }),
            None => {}
        }
    }

    fn follow_nodes(&mut self, outcome: &ProbeOutcome, by: &Snapshot<'_>) {
        let finding = &outcome.finding;
        let grace = finding.grace.period();
        if finding.verdict == Verdict::ScaleDown && self.verdict.is_none() {
            self.verdict = Some(Judged {
                at: to_millis(by.wall),
                candidates: finding.tally.candidates,
                expired: finding.tally.expired,
                fraction: finding.fraction,
                grace_seconds: in_seconds(grace),
            });
        }
        let overdue = finding.past_grace.saturating_sub(self.unknown_before);
        self.overdue_nodes = self.overdue_nodes.max(overdue);
        // Who has not seen the nodes come back knows only how they were when it probed.
        let at = to_millis(if finding.verdict == Verdict::ScaleDown {
            by.wall - (by.now - finding.judged_at)
        } else {
            by.wall
        });
        if self.marks_nodes(at) {
            self.marked_nodes = self.marked_nodes.max(overdue);
        }
        for lease in &outcome.leases {
            let age_now = by.now - finding.judged_at + lease.age;
            let unknown_at = to_millis(by.wall - age_now + grace);
            let overdue = lease.state == LeaseState::Expired && lease.age >= grace;
            if !overdue || !self.found_held_down && unknown_at < self.began {
                continue;
            }
            let marked = self.marks_nodes(at) || self.marks_nodes(unknown_at);
            let is_full = self.nodes.len() >= LISTED;
            match self.nodes.iter_mut().find(|node| node.name == lease.node) {
                Some(node) => node.marked |= marked,
                None if !is_full => self.nodes.push(OverdueNode {
                    name: lease.node.clone(),
                    unknown_at,
                    marked,
                }),
                None => {}
            }
        }
        let marked = self.nodes.iter().filter(|node| node.marked).count();
        self.marked_nodes = self.marked_nodes.max(marked);
    }

    /// True if kube-controller-manager is up, as far as this record goes: what was found held down
    /// may have been so before.
    fn marks_nodes(&self, at: DateTime<Utc>) -> bool {
        if self.found_held_down && at < self.began {
            return false;
        }
        let mut held = self.held_down.iter();
        let held = held.find(|held| held.name == MARKS_NODES);
        !held.is_some_and(|held| held.periods.iter().any(|period| period.contains(at)))
    }

    /// Ends the record. Dependents that a reload dropped are held down still.
    fn end(&mut self, end: OutageEnd, wall: DateTime<Utc>) {
        let now = to_millis(wall);
        let all_back = self.held_down.iter().all(|held| held.until().is_some());
        let last_back = self.held_down.iter().filter_map(HeldDown::until).max();
        let (end, ended) = match (end, last_back) {
            (OutageEnd::Restored | OutageEnd::ProbeEnded, _) if !all_back => {
                (OutageEnd::StillHeldDown, now)
            }
            (OutageEnd::Restored, None) => (OutageEnd::NothingHeldDown, now),
            (OutageEnd::Restored, Some(last)) => (end, last),
            _ => (end, now),
        };
        // A standby may notice the recovery only after the leader has restored everything.
        self.recovered = self.recovered.map(|recovered| recovered.min(ended));
        (self.end, self.ended) = (Some(end), Some(ended));
    }

    /// True if its nodes were back within [`BLIP`]; never where its beginning was not seen.
    pub(super) fn is_blip(&self) -> bool {
        let is_short = |recovered| recovered - self.began <= BLIP;
        !self.found_held_down && self.recovered.is_some_and(is_short)
    }

    /// Duration; `None` while it goes on.
    pub fn seconds(&self) -> Option<f64> {
        Some(in_seconds(self.ended? - self.began))
    }

    /// Part of this process: `leader` or `standby`, if it wrote anything.
    pub(super) fn acted(&self) -> Option<&'static str> {
        self.writes
            .last()
            .map(|write| if write.as_leader { "leader" } else { "standby" })
    }
}

impl HeldDown {
    fn follow(&mut self, is_held_down: bool, at: DateTime<Utc>) {
        let is_full = self.periods.len() >= LISTED;
        match self.periods.last_mut() {
            Some(last) if last.until.is_none() => last.until = (!is_held_down).then_some(at),
            // The last one of very many is made longer.
            Some(last) if is_held_down && is_full => last.until = None,
            _ if is_held_down => self.periods.push(Period {
                from: at,
                until: None,
            }),
            _ => {}
        }
    }

    /// End of the last period; `None` while it is held down.
    pub fn until(&self) -> Option<DateTime<Utc>> {
        self.periods.last()?.until
    }
}

/// Adds what is not noted yet.
fn note(delays: &mut Vec<Delay>, resource: &ResourceRef, cause: &str, at: DateTime<Utc>) {
    let is_same = |delay: &Delay| {
        delay.kind == resource.kind && delay.name == resource.name && delay.cause == cause
    };
    if delays.len() < LISTED && !delays.iter().any(is_same) {
        delays.push(Delay {
            at,
            kind: resource.kind.clone(),
            name: resource.name.clone(),
            cause: cause.to_owned(),
        });
    }
}

/// Milliseconds suffice to order events.
fn to_millis(at: DateTime<Utc>) -> DateTime<Utc> {
    at.trunc_subsecs(3)
}

#[cfg(test)]
mod tests;
