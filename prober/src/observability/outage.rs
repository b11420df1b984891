//! Record of one outage, from the verdict to the last restore, as one process observed it.
//!
//! ```text
//! verdict "down", or found held down --> record: writes, nodes, what is held down --> its end: log line, Event, metrics
//!                                           '--> status page, `status`, `explain` <--'
//! ```
//!
//! It says only what this process knows: where that is not enough it names no writer, and calls the
//! fate of a node unclear.

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use prober_core::config::ResourceRef;
use prober_core::moment::Moment;
use prober_core::replicas::DependentState;
use prober_core::replicas::PlannedWrite;
use prober_core::shoot::{DependentRecord, Waits};
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use self::authors::Author;
use self::marking::{Fate, Marking};
use super::in_seconds;
use super::outcome::ProbeOutcome;
use super::waits::reason;

mod authors;
mod marking;
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
    /// True if it may have begun long before: this process had not just found the nodes well.
    #[serde(default)]
    pub found_under_way: bool,
    /// First verdict of an outage; `None` while this process has come to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judged>,
    /// Writes that this process has sent.
    pub writes: Vec<OutageWrite>,
    pub held_down: Vec<HeldDown>,
    /// Writes that had to wait, each once for the same requirement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited: Vec<Delay>,
    /// Dependents that could not be scaled, each once for the same cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_scaled: Vec<Delay>,
    /// Nodes whose leases were not renewed for the whole grace period, but those that were so when
    /// the verdict fell.
    pub nodes: Vec<OverdueNode>,
    /// Most of them at the same time, those that are not listed included.
    pub overdue_nodes: usize,
    /// Most of them that kube-controller-manager has marked Unknown.
    #[serde(default)]
    pub marked_nodes: usize,
    /// Number of others of which that is not known. The rest was saved.
    #[serde(default)]
    pub unclear_nodes: usize,
    /// Most of both together.
    #[serde(skip)]
    lost_nodes: usize,
    /// Part of this process: `leader` or `standby`, if it wrote anything.
    #[serde(skip)]
    pub(super) acted: Option<&'static str>,
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
    /// True if no answer says that it was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
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
#[serde(rename_all = "camelCase")]
pub struct Period {
    pub from: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Author of the step to 0.
    #[serde(default)]
    pub by: Author,
    /// Author of the step back.
    #[serde(default)]
    pub ended_by: Author,
}

impl Period {
    fn since(from: DateTime<Utc>) -> Self {
        Self {
            from,
            until: None,
            by: Author::Unclear,
            ended_by: Author::Unclear,
        }
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
    /// Time from which on kube-controller-manager marks it Unknown if it is up: a grace after its
    /// last renewal, by our clock; later where kube-controller-manager was started later.
    pub unknown_at: DateTime<Utc>,
    #[serde(default)]
    pub fate: Fate,
    /// True if it is unclear only because it may yet be marked.
    #[serde(skip)]
    is_open: bool,
}

/// Observations of a shoot before its outage and in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShootHistory {
    /// Time at which the nodes were last found well.
    well: Option<Moment>,
    marking: Marking,
}

impl ShootHistory {
    /// Takes in the shoot as it is now.
    pub(super) fn follow<'a>(
        &mut self,
        verdict: Option<Verdict>,
        outcome: Option<&ProbeOutcome>,
        dependents: impl IntoIterator<Item = &'a DependentRecord>,
        now: Moment,
    ) {
        self.follow_verdict(verdict, outcome);
        let mut dependents = dependents.into_iter();
        let marks = dependents.find(|dependent| dependent.resource.name == MARKS_NODES);
        let is_up = marks.and_then(|dependent| match dependent.state() {
            DependentState::Present(observed) => Some(observed.replicas > 0),
            DependentState::Absent => Some(false),
            DependentState::Unscalable(_) | DependentState::Unknown => None,
        });
        self.marking.follow(is_up, now);
    }

    fn follow_verdict(&mut self, verdict: Option<Verdict>, outcome: Option<&ProbeOutcome>) {
        if let Some(outcome) = outcome.filter(|_| verdict.is_some_and(Verdict::is_up)) {
            self.well = Some(outcome.finding.judged_at);
        }
    }
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
    pub history: &'a ShootHistory,
    pub is_scaling: bool,
    pub paused: bool,
    pub leads: bool,
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
    /// Write that is under way, and when it was sent.
    pub writing: Option<(&'a PlannedWrite, Moment)>,
}

impl<'a> SeenDependent<'a> {
    /// See [`DependentRecord::stays_held_down`].
    pub(super) fn new(dependent: &'a DependentRecord, only_held_down: bool) -> Self {
        Self {
            resource: &dependent.resource,
            is_held_down: dependent.stays_held_down(only_held_down),
            returns_to: dependent
                .observed()
                .and_then(|observed| observed.marks.remembered()),
            writing: dependent.writing(),
        }
    }
}

impl Outage {
    /// Begins, continues or ends a shoot's record. Returns the one that has ended.
    pub(super) fn follow(open: &mut Option<Box<Self>>, by: &Snapshot<'_>) -> Option<Box<Self>> {
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

    /// A write of this process was made; `answered` if an answer says so.
    pub(super) fn wrote(
        &mut self,
        resource: &ResourceRef,
        change: &PlannedWrite,
        as_leader: bool,
        answered: bool,
        wall: DateTime<Utc>,
    ) {
        let acted = |as_leader| Some(if as_leader { "leader" } else { "standby" });
        self.acted = acted(as_leader);
        let made = match self.unanswered(resource, change) {
            Some(sent) => sent,
            None => {
                self.list(resource, change, as_leader, wall);
                let Some(listed) = self.unanswered(resource, change) else {
                    return;
                };
                listed
            }
        };
        made.unanswered = !answered;
        self.acted = acted(made.as_leader);
    }

    /// A write is under way. The same one, sent once more, is listed once, unless the first was made.
    fn sends(
        &mut self,
        resource: &ResourceRef,
        (change, sent): (&PlannedWrite, Moment),
        by: &Snapshot<'_>,
    ) {
        let at = to_millis(by.wall - (by.now - sent));
        let before = self.unanswered(resource, change).map(|listed| listed.at);
        let was_made = before.is_some_and(|before| self.has_changed_since(resource, before));
        match self.unanswered(resource, change) {
            // The clocks may differ by their last digit.
            Some(listed) if at - listed.at <= TimeDelta::milliseconds(1) => {}
            Some(listed) if !was_made => (listed.at, listed.as_leader) = (at, by.leads),
            _ => self.list(resource, change, by.leads, at),
        }
    }

    /// True if a resource was seen to be held down or not any more since then.
    fn has_changed_since(&self, resource: &ResourceRef, since: DateTime<Utc>) -> bool {
        let held = self.held_down.iter().find(|held| held.is_of(resource));
        let changed = |period: &Period| {
            period.from >= since || period.until.is_some_and(|until| until >= since)
        };
        held.is_some_and(|held| held.periods.iter().any(changed))
    }

    /// The last write of a resource, if it is this change and has no answer.
    fn unanswered(
        &mut self,
        resource: &ResourceRef,
        change: &PlannedWrite,
    ) -> Option<&mut OutageWrite> {
        let of_it =
            |write: &&mut OutageWrite| write.kind == resource.kind && write.name == resource.name;
        let last = self.writes.iter_mut().rfind(of_it)?;
        let numbers = (change.base.replicas, change.replicas());
        (last.unanswered && (last.from, last.to) == numbers).then_some(last)
    }

    fn list(
        &mut self,
        resource: &ResourceRef,
        change: &PlannedWrite,
        as_leader: bool,
        at: DateTime<Utc>,
    ) {
        if self.writes.len() < LISTED {
            self.writes.push(OutageWrite {
                at: to_millis(at),
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                from: change.base.replicas,
                to: change.replicas(),
                as_leader,
                unanswered: true,
            });
        }
    }

    fn begin(by: &Snapshot<'_>) -> Self {
        let (fell, judged) = (
            by.verdict == Some(Verdict::ScaleDown),
            by.outcome.map(|outcome| &outcome.finding),
        );
        let seen = judged
            .zip(by.history.well)
            .is_some_and(|(judged, well)| judged.judged_at - well <= judged.grace.longest_break());
        Self {
            namespace: by.namespace.to_owned(),
            began: to_millis(by.wall),
            found_under_way: !(fell && seen),
            ..Self::default()
        }
    }

    fn update(&mut self, by: &Snapshot<'_>) {
        let at = to_millis(by.wall);
        for dependent in &by.dependents {
            if let Some(writing) = dependent.writing {
                self.sends(dependent.resource, writing, by);
            }
            self.follow_dependent(dependent, at);
        }
        self.name_authors();
        for (resource, waits) in by.waits {
            note(&mut self.waited, resource, reason(waits.reason), at);
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
        let listed = self.held_down.iter_mut().find(|held| held.is_of(resource));
        match listed {
            Some(held) => held.follow(dependent.is_held_down, at),
            None if dependent.is_held_down => self.held_down.push(HeldDown {
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                periods: vec![Period::since(at)],
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
        if !finding.nodes_known {
            return;
        }
        let told_by = |renewed: Moment| to_millis(by.wall - (by.now - renewed));
        let counts =
            |renewed: Moment| self.found_under_way || told_by(renewed) + grace >= self.began;
        let fate = |renewed| by.history.marking.fate(renewed, grace, finding.judged_at);
        let overdue = outcome.overdue.iter().copied().filter(|at| counts(*at));
        let fates: Vec<_> = overdue.map(|renewed| fate(renewed).0).collect();
        let count = |wanted| fates.iter().filter(|fate| **fate == wanted).count();
        let (marked, unclear) = (count(Fate::Marked), count(Fate::Unclear));
        self.overdue_nodes = self.overdue_nodes.max(fates.len());
        self.marked_nodes = self.marked_nodes.max(marked);
        self.lost_nodes = self.lost_nodes.max(marked + unclear);
        // Those that have not renewed are saved only while nothing marks them.
        let is_open = by.history.marking.is_up() != Some(false);
        let open = if is_open { count(Fate::Saved) } else { 0 };
        let lost = (self.lost_nodes + open).min(self.overdue_nodes);
        self.unclear_nodes = lost - self.marked_nodes;
        for node in self.nodes.iter_mut().filter(|node| node.is_open) {
            (node.fate, node.is_open) = (Fate::Saved, false);
        }
        for lease in &outcome.leases {
            let renewed = finding.judged_at - lease.age;
            if !outcome.overdue.contains(&renewed) || !counts(renewed) {
                continue;
            }
            let (fate, unknown_at) = fate(renewed);
            let is_open = is_open && fate == Fate::Saved;
            let overdue = OverdueNode {
                name: lease.node.clone(),
                unknown_at: told_by(unknown_at),
                fate: if is_open { Fate::Unclear } else { fate },
                is_open,
            };
            let is_full = self.nodes.len() >= LISTED;
            match self.nodes.iter_mut().find(|node| node.name == lease.node) {
                Some(node) if node.fate == Fate::Marked => {}
                Some(node) => *node = overdue,
                None if !is_full => self.nodes.push(overdue),
                None => {}
            }
        }
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

    /// True if its nodes were back within [`BLIP`]; never where it may have begun long before.
    pub(super) fn is_blip(&self) -> bool {
        let is_short = |recovered| recovered - self.began <= BLIP;
        !self.found_under_way && self.recovered.is_some_and(is_short)
    }

    /// Duration; `None` while it goes on.
    pub fn seconds(&self) -> Option<f64> {
        Some(in_seconds(self.ended? - self.began))
    }
}

impl HeldDown {
    fn is_of(&self, resource: &ResourceRef) -> bool {
        self.kind == resource.kind && self.name == resource.name
    }

    fn follow(&mut self, is_held_down: bool, at: DateTime<Utc>) {
        let is_full = self.periods.len() >= LISTED;
        match self.periods.last_mut() {
            Some(last) if last.until.is_none() => last.until = (!is_held_down).then_some(at),
            // The last one of very many is made longer.
            Some(last) if is_held_down && is_full => last.until = None,
            _ if is_held_down => self.periods.push(Period::since(at)),
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
