//! The one model of what the prober says of itself and of each shoot. The status page shows it,
//! `/statusz.json` is it, and the command line reads it with the same types.
//!
//! ```text
//! tasks' reports, seed's objects --snapshot--> ProberStatus --facts--> page
//!                                                  '-> JSON --> ProberStatus --facts--> `status`, `explain`, `restore`
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use prober_core::config::ResourceRef;
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outage::Outage;
use super::outcome::SeenLease;
use super::settings::ShownOption;
use super::shoot_statuses::{Failure, ShootState};
use super::tone::Tone;
use super::waits::ShownWait;
use super::why::Condition;
use crate::owner::OwnerStatus;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProberStatus {
    /// Kind of the seed's objects that are not known at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Cow<'static, str>>,
    /// Rights without which something that the config names cannot be scaled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_rights: Vec<String>,
    pub shoots_by_state: BTreeMap<Cow<'static, str>, usize>,
    /// Every shoot; those that need attention first, then by name.
    pub shoots: Vec<ShootEntry>,
    /// The newest first.
    pub outages: Vec<Outage>,
    /// Settings by annotations on `garden`, for all shoots.
    pub settings: Vec<ShownOption>,
    /// The config in force, defaults included, as a config file would say it.
    pub config: Value,
    pub config_refused: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootEntry {
    pub namespace: String,
    /// State by its Cluster, in a word.
    pub state: Cow<'static, str>,
    /// The same in a sentence.
    pub because: String,
    /// Number of its nodes that usable Machines back; `None` while the Machines are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<usize>,
    /// True if its operators want nothing written; `None` before the namespaces were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Settings in effect, with their sources; empty before the namespaces were read.
    pub settings: Vec<ShownOption>,
    /// Standing by its owner record; `None` while nobody checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerStatus>,
    /// In the order of the config.
    pub dependents: Vec<ShownDependent>,
    /// `None` while it is not probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeStatus>,
}

/// A controller that is held down while the shoot is in an outage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownDependent {
    #[serde(flatten)]
    pub resource: ResourceRef,
    pub condition: Condition,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// Saved replicas, as annotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<String>,
    /// Reason for its condition, and what becomes of it.
    pub because: String,
    /// Time at which this process first saw it held down; it may be so for longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// Requirement that a write waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<ShownWait>,
    /// Cause by which it could not be scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_scaled: Option<String>,
    /// Replicas after the write that a dry run would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_become: Option<i32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    /// Direction of the scaling that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Cow<'static, str>>,
    /// Time until the next probe is due; negative if that is past.
    pub next_probe_in_seconds: i64,
    /// True if the probe that is due should have ended.
    pub overdue: bool,
    /// Last complete probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// Failure of the last probe, unless it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Time since the probe was sent; all that follows is as of then.
    pub seconds_ago: i64,
    pub verdict: Verdict,
    pub candidates: usize,
    pub expired: usize,
    pub undecided: usize,
    /// Leases by clocks that differ from ours.
    pub skewed: usize,
    /// Share of expired leases that makes an outage.
    pub fraction: f64,
    pub expired_after_seconds: f64,
    /// Time after which kube-controller-manager marks a node Unknown.
    pub unknown_after_seconds: f64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grace_too_short: bool,
    /// Leases and nodes that do not count, by reason.
    pub excluded: BTreeMap<Cow<'static, str>, usize>,
    /// Oldest leases that counted, oldest first; empty while nodes do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<SeenLease>,
}

/// Reason why a shoot needs attention.
#[derive(Clone, Copy, Debug)]
pub(super) struct Concern {
    /// 0 is the most urgent.
    pub urgency: usize,
    pub label: &'static str,
    pub tone: Tone,
}

impl ShootEntry {
    /// Names of the dependents in a condition.
    pub fn names(&self, condition: Condition) -> Vec<&str> {
        let dependents = self.dependents.iter();
        dependents
            .filter(|dependent| dependent.condition == condition)
            .map(|dependent| dependent.resource.name.as_str())
            .collect()
    }

    /// Verdict of the last probe, if it was complete.
    pub fn verdict(&self) -> Option<Verdict> {
        self.probe.as_ref()?.verdict()
    }

    /// True if the probe that is due should have ended.
    pub fn is_overdue(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.overdue)
    }

    /// Returns the most urgent concern.
    pub(super) fn concern(&self) -> Option<Concern> {
        let owner = self.owner.as_ref();
        let is_lost = owner.is_some_and(|owner| owner.standing.is_lost());
        let probe = self.probe.as_ref().filter(|_| !is_lost);
        let found = probe.and_then(|probe| probe.found.as_ref());
        let verdict = found.map(|found| found.verdict);
        let holds = verdict.is_some_and(|verdict| verdict.aim().is_none());
        let no_shoot = [ShootState::NoShoot, ShootState::Unreadable(String::new())];
        let no_shoot = no_shoot
            .iter()
            .any(|state| self.state == <&str>::from(state));
        let is_failing = probe.is_some_and(|probe| probe.failure.is_some());
        let concerns = [
            (
                !self.names(Condition::HeldDown).is_empty(),
                "held down",
                Tone::Bad,
            ),
            (
                verdict == Some(Verdict::ScaleDown),
                "in an outage",
                Tone::Bad,
            ),
            (
                found.is_some() && !self.names(Condition::Missing).is_empty(),
                "without a controller that the config names",
                Tone::Warn,
            ),
            (self.is_overdue(), "probes overdue", Tone::Bad),
            (is_failing, "probes failing", Tone::Warn),
            (is_lost, "not ours, or not known to be", Tone::Warn),
            (self.paused == Some(true), "paused", Tone::Warn),
            (
                holds || self.probe.is_none() && no_shoot,
                "unclear",
                Tone::Warn,
            ),
            (
                found.is_some_and(|found| found.grace_too_short),
                "with too short a grace",
                Tone::Warn,
            ),
        ];
        let urgency = concerns.iter().position(|(applies, ..)| *applies)?;
        let (_, label, tone) = concerns[urgency];
        Some(Concern {
            urgency,
            label,
            tone,
        })
    }

    pub(super) fn urgency(&self) -> usize {
        self.concern().map_or(usize::MAX, |concern| concern.urgency)
    }
}

impl ProbeStatus {
    /// Verdict of the last probe, if it was complete.
    pub fn verdict(&self) -> Option<Verdict> {
        let found = self.found.as_ref().filter(|_| self.failure.is_none())?;
        Some(found.verdict)
    }
}

#[cfg(test)]
mod tests;
