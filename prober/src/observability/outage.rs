//! An outage in brief, from the verdict to the last restore, as one process observed it. Log lines and
//! Events say who wrote what and when.

use chrono::{DateTime, Utc};
use common::text::{plural, time_span};
use prober_core::config::ResourceRef;
use prober_core::verdict::{Tally, Verdict};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use super::view::{ShootView, ShownDependent};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    pub namespace: String,
    /// Time at which the verdict fell here, or what others hold down was first seen.
    pub began: DateTime<Utc>,
    /// Numbers of its first verdict; `None` if this process came to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Tally>,
    pub held_down: Vec<HeldDown>,
    /// Number of writes by this process.
    pub writes: usize,
    /// Time at which the last controller was restored; if none was, at which the nodes recovered or
    /// the probe ended.
    pub ended: DateTime<Utc>,
    pub end: OutageEnd,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldDown {
    #[serde(flatten)]
    pub resource: ResourceRef,
    /// Time at which this process first saw it so.
    pub from: DateTime<Utc>,
    /// Time from which on it was not so any more; `None` if it stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum OutageEnd {
    Restored,
    /// The nodes recovered, or the probe ended, before anything was held down.
    #[default]
    NothingHeldDown,
    /// The probe or the process ended with resources still held down.
    StillHeldDown,
}

impl Outage {
    /// Begins, continues or ends the record of a probed shoot. Returns the one that has ended. While
    /// anything is written none does: a watch may be faster than the answer to the last write.
    pub(super) fn follow(
        open: &mut Option<Self>,
        shoot: &ShootView,
        is_written: bool,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        shoot.probe.as_ref()?;
        let verdict = shoot.verdict();
        let is_down = verdict == Some(Verdict::ScaleDown);
        let is_held = shoot.dependents.iter().any(|one| one.since.is_some());
        if open.is_none() && (is_down || is_held) {
            *open = Some(Self {
                namespace: shoot.namespace.clone(),
                began: now,
                ..Self::default()
            });
        }
        let outage = open.as_mut()?;
        if is_down && outage.verdict.is_none() {
            outage.verdict = shoot.found().map(|found| found.tally);
        }
        for dependent in &shoot.dependents {
            outage.follow_dependent(dependent, now);
        }
        if is_held || is_written || !verdict.is_some_and(Verdict::is_up) {
            return None;
        }
        open.take().map(|outage| outage.end(now))
    }

    fn follow_dependent(&mut self, dependent: &ShownDependent, now: DateTime<Utc>) {
        let mut known = self.held_down.iter_mut();
        let known = known.find(|held| held.resource == dependent.resource);
        match (known, dependent.since) {
            (Some(held), Some(_)) => held.until = None,
            (Some(held), None) => held.until = held.until.or(Some(now)),
            (None, Some(from)) => self.held_down.push(HeldDown {
                resource: dependent.resource.clone(),
                from,
                until: None,
            }),
            (None, None) => {}
        }
    }

    pub(super) fn end(mut self, now: DateTime<Utc>) -> Self {
        let is_held = self.held_down.iter().any(|held| held.until.is_none());
        let last = self.held_down.iter().filter_map(|held| held.until).max();
        (self.end, self.ended) = match last {
            _ if is_held => (OutageEnd::StillHeldDown, now),
            Some(last) => (OutageEnd::Restored, last),
            None => (OutageEnd::NothingHeldDown, now),
        };
        self
    }

    pub(super) fn seconds(&self) -> f64 {
        (self.ended - self.began).as_seconds_f64()
    }

    /// Course of the outage, without start and namespace.
    pub fn sentence(&self) -> String {
        let mut text = match self.verdict {
            Some(Tally {
                candidates,
                expired,
                ..
            }) => format!("{expired} of {candidates} leases expired"),
            None => "no outage seen by this process".to_owned(),
        };
        for held in &self.held_down {
            text += &format!(", {} held down", held.resource.name);
            if let Some(until) = held.until {
                text += &format!(" for {}", time_span((until - held.from).num_seconds()));
            }
        }
        let end = self.end.into_str().replace('_', " ");
        let (after, writes) = (time_span(self.seconds() as i64), self.writes);
        let many = plural(writes);
        format!("{text}; {end} after {after}, {writes} write{many} by this process")
    }
}

#[cfg(test)]
mod tests;
