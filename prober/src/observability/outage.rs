//! An outage in brief, from the verdict to the last restore, as one process observed it. Log lines and
//! Events say who wrote what and when.

use chrono::{DateTime, SubsecRound, Utc};
use common::text::{plural, time_span};
use prober_core::config::ResourceRef;
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::in_seconds;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    pub namespace: String,
    /// Time at which the verdict fell here, or what others hold down was first seen.
    pub began: DateTime<Utc>,
    /// Numbers of its first verdict; `None` if this process came to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judged>,
    pub held_down: Vec<HeldDown>,
    /// Number of writes by this process.
    pub writes: usize,
    /// Time at which the last controller was restored; if none was, at which the nodes recovered or
    /// the probe ended.
    pub ended: DateTime<Utc>,
    pub end: OutageEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    pub candidates: usize,
    pub expired: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldDown {
    pub kind: String,
    pub name: String,
    /// Time at which this process first saw it so.
    pub from: DateTime<Utc>,
    /// Time from which on it was not so any more; `None` if it stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
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
    #[default]
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
    pub judged: Judged,
    /// Each dependent, and whether it is held down.
    pub dependents: Vec<(&'a ResourceRef, bool)>,
    pub is_scaling: bool,
    pub paused: bool,
    pub now: DateTime<Utc>,
}

impl Outage {
    /// Begins, continues or ends a shoot's record. Returns the one that has ended.
    pub(super) fn follow(open: &mut Option<Self>, by: &Snapshot<'_>) -> Option<Self> {
        let is_up = by.verdict.is_some_and(Verdict::is_up);
        let is_down = by.verdict == Some(Verdict::ScaleDown);
        let is_held = by.dependents.iter().any(|(_, is_held)| *is_held);
        if open.is_none() && (is_down || is_held && !(is_up && by.paused)) {
            *open = Some(Self {
                namespace: by.namespace.to_owned(),
                began: by.now.trunc_subsecs(3),
                ..Self::default()
            });
        }
        let outage = open.as_mut()?;
        if is_down {
            outage.verdict.get_or_insert(by.judged);
        }
        for (resource, is_held) in &by.dependents {
            outage.follow_dependent(resource, *is_held, by.now.trunc_subsecs(3));
        }
        let end = match is_up {
            // A watch may be faster than the answer to the last write.
            true if !is_held && !by.is_scaling => OutageEnd::Restored,
            true if is_held && by.paused => OutageEnd::Paused,
            _ => return None,
        };
        open.take().map(|outage| outage.end(end, by.now))
    }

    /// Ends the record of a shoot that is not probed any more.
    pub(super) fn probe_ended(open: &mut Option<Self>, now: DateTime<Utc>) -> Option<Self> {
        let outage = open.take()?;
        Some(outage.end(OutageEnd::ProbeEnded, now))
    }

    fn follow_dependent(&mut self, resource: &ResourceRef, is_held: bool, now: DateTime<Utc>) {
        let mut known = self.held_down.iter_mut();
        let is_it = |held: &&mut HeldDown| held.name == resource.name && held.kind == resource.kind;
        match known.find(is_it) {
            Some(held) if is_held => held.until = None,
            Some(held) => held.until = held.until.or(Some(now)),
            None if is_held => self.held_down.push(HeldDown {
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                from: now,
                until: None,
            }),
            None => {}
        }
    }

    fn end(mut self, end: OutageEnd, now: DateTime<Utc>) -> Self {
        let is_held = self.held_down.iter().any(|held| held.until.is_none());
        let last = self.held_down.iter().filter_map(|held| held.until).max();
        let (end, ended) = match (end, last) {
            (OutageEnd::ProbeEnded, _) if is_held => (OutageEnd::StillHeldDown, now),
            (OutageEnd::Restored, Some(last)) => (end, last),
            (OutageEnd::Restored, None) => (OutageEnd::NothingHeldDown, now),
            _ => (end, now),
        };
        (self.end, self.ended) = (end, ended.trunc_subsecs(3));
        self
    }

    pub(super) fn seconds(&self) -> f64 {
        in_seconds(self.ended - self.began)
    }

    /// What happened, without start and namespace.
    pub fn sentence(&self) -> String {
        let begin = match self.verdict {
            Some(Judged {
                candidates,
                expired,
            }) => format!("{expired} of {candidates} leases expired"),
            None => "no outage seen by this process".to_owned(),
        };
        let held = self.held_down.iter().map(|held| {
            let lasted = held.until.map(|until| (until - held.from).num_seconds());
            let lasted = lasted.map(|seconds| format!(" for {}", time_span(seconds)));
            format!(", {} held down{}", held.name, lasted.unwrap_or_default())
        });
        let held: String = held.collect();
        let end = self.end.into_str().replace('_', " ");
        let after = time_span(self.seconds() as i64);
        let writes = self.writes;
        let many = plural(writes);
        format!("{begin}{held}; {end} after {after}, {writes} write{many} by this process")
    }
}

#[cfg(test)]
mod tests;
