//! The one model of a shoot: its task publishes it, and gauges, page, JSON and commands read it. The
//! page and the JSON have the seed's objects besides, as they are when it is read; a shoot without a
//! task shows these and its Cluster alone.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use go_compat::duration::GoDuration;
use prober_core::config::{Dependent, ResourceRef};
use prober_core::judgement::{CountedLease, Finding};
use prober_core::lease::LeaseState;
use prober_core::moment::Moment;
use prober_core::options::{ResolvedOptions, Source, Sourced};
use prober_core::replicas::{DependentState, Unscalable};
use prober_core::verdict::{Tally, Verdict};
use serde::{Deserialize, Serialize};

use crate::owner::OwnerStatus;

/// Most leases that are shown of a shoot: more would be read by nobody, and thousands of shoots may
/// be down at once.
const SHOWN_LEASES: usize = 20;
/// A probe that is due takes probeTimeout at most; after this much more it is overdue.
const SLACK: TimeDelta = TimeDelta::seconds(1);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootView {
    pub namespace: String,
    /// State by its Cluster, in a word: whether it is probed, or why not.
    pub state: Cow<'static, str>,
    /// Reason why its Cluster cannot be understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Number of its nodes that usable Machines back; `None` while the Machines are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<usize>,
    /// Settings in effect, with their sources; empty before the namespaces were read.
    pub settings: Vec<ShownOption>,
    /// Standing by its owner record; `None` while nobody checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerStatus>,
    /// In the order of the config.
    pub dependents: Vec<ShownDependent>,
    /// Verdict by which it is acted on in place of probes, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decree: Option<Verdict>,
    /// `None` while it is not probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeStatus>,
    /// True if its operators want nothing written, as its task knows it.
    #[serde(skip)]
    pub(super) is_paused: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownOption {
    /// Name of the config's key.
    pub setting: Cow<'static, str>,
    pub value: String,
    pub from: Source,
}

/// A controller that is held down while the shoot is in an outage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownDependent {
    #[serde(flatten)]
    pub resource: ResourceRef,
    pub condition: Condition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// Saved replicas, as annotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<String>,
    /// Time at which this process first saw it held down, and so at 0; it may be so for longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// Wait of its write, if it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<ShownWait>,
    /// Cause by which it could not be scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_scaled: Option<String>,
    /// Replicas to which it would be scaled, were this no dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_become: Option<i32>,
    /// Reason for which its scale-down would be refused in an outage, as its rehearsal has shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Condition of a dependent, as far as it concerns the watchdog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Running,
    /// It carries the marker, whatever its replicas.
    HeldDown,
    /// It has no replicas and no marker.
    AtZero,
    /// `ignore-scaling` is set.
    Ignored,
    /// It or its kind does not exist, which is fine since it is optional.
    Absent,
    /// It does not exist, though it must.
    Missing,
    Unscalable,
    /// It could not be read, so that it may be held down or not.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A write that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownWait {
    /// Name of the reason.
    #[serde(rename = "for")]
    pub name: Cow<'static, str>,
    pub reason: Cow<'static, str>,
    /// End of the wait, where it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    /// True if the probe that is due should have ended.
    pub overdue: bool,
    /// Last complete probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// Failure of the last probe, unless it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Time of the next probe; of the one under way, if any.
    #[serde(skip)]
    pub(super) due: Moment,
    /// Time at which the last probe was complete, or the first one was due.
    #[serde(skip)]
    pub(super) complete: Moment,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Time since the probe was sent; all that follows is as of then.
    pub seconds_ago: i64,
    pub verdict: Verdict,
    #[serde(flatten)]
    pub tally: Tally,
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
    #[serde(skip)]
    pub(super) judged_at: Moment,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenLease {
    pub node: String,
    /// Time since the last renewal at that moment, on our clock. Only the next probe shows later
    /// renewals.
    pub age_seconds: f64,
    pub state: LeaseState,
    /// Lag of the node's clock behind ours, if they differ; negative if it is ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew_seconds: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub stage: Cow<'static, str>,
    pub category: Cow<'static, str>,
    pub message: String,
    /// Probes that have failed in a row.
    pub failed_probes: u32,
    /// Time of the first of them.
    pub since: DateTime<Utc>,
}

impl ShootView {
    /// Brings up to date what depends on the time alone.
    pub(super) fn stamp(&mut self, probe_timeout: TimeDelta, now: Moment) {
        if let Some(probe) = &mut self.probe {
            probe.overdue = now - probe.due > probe_timeout + SLACK;
            if let Some(found) = &mut probe.found {
                found.seconds_ago = (now - found.judged_at).num_seconds();
            }
        }
    }

    /// Names of the dependents that are held down.
    pub fn held_down(&self) -> Vec<&str> {
        let held = self.dependents.iter().filter(|one| one.is_held_down());
        held.map(|one| one.resource.name.as_str()).collect()
    }

    /// True if any dependent could not be read.
    pub fn is_unknown(&self) -> bool {
        let mut dependents = self.dependents.iter();
        dependents.any(|dependent| dependent.condition == Condition::Unknown)
    }

    /// Last complete probe.
    pub fn found(&self) -> Option<&Found> {
        self.probe.as_ref()?.found.as_ref()
    }

    /// Verdict of the last probe, if it was complete.
    pub fn verdict(&self) -> Option<Verdict> {
        let probe = self.probe.as_ref()?;
        let found = probe.found.as_ref().filter(|_| probe.failure.is_none())?;
        Some(found.verdict)
    }

    /// True if a setting that is a flag is set.
    pub(super) fn is_set(&self, setting: &str) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|option| option.setting == setting && option.value == "true")
    }
}

impl ShownOption {
    /// All settings.
    pub(super) fn all(options: &ResolvedOptions) -> [Self; 4] {
        let Sourced { value, from } = options.scale_up_stabilization;
        let value = GoDuration(value);
        [
            Self::new("pause", options.pause),
            Self::new("restoreOnlyHeldDown", options.restore_only_held_down),
            Self::new("scaleUpStabilization", Sourced { value, from }),
            Self::new("standbyProtects", options.standby_protects),
        ]
    }

    fn new(setting: &'static str, option: Sourced<impl ToString>) -> Self {
        Self {
            setting: setting.into(),
            value: option.value.to_string(),
            from: option.from,
        }
    }
}

impl ShownDependent {
    pub(super) fn new(dependent: &Dependent) -> Self {
        Self {
            resource: dependent.resource.clone(),
            ..Self::default()
        }
    }

    /// True if it is down, and the watchdog's.
    pub(super) fn is_held_down(&self) -> bool {
        self.condition == Condition::HeldDown && self.replicas <= Some(0)
    }

    /// Adds how the seed shows it now.
    pub(super) fn show(&mut self, dependent: &Dependent, state: &DependentState) {
        self.condition = match state {
            DependentState::Unknown => Condition::Unknown,
            DependentState::Absent | DependentState::Unscalable(Unscalable::NoSuchKind)
                if dependent.optional =>
            {
                Condition::Absent
            }
            DependentState::Absent => Condition::Missing,
            DependentState::Unscalable(why) => {
                self.not_scaled.get_or_insert_with(|| why.to_string());
                Condition::Unscalable
            }
            DependentState::Present(observed) => {
                let marks = &observed.marks;
                self.replicas = Some(observed.replicas);
                self.ready = Some(observed.ready);
                self.remembered.clone_from(&marks.replicas);
                match observed.replicas {
                    _ if marks.ignored => Condition::Ignored,
                    _ if marks.held_down => Condition::HeldDown,
                    0 => Condition::AtZero,
                    _ => Condition::Running,
                }
            }
        };
    }
}

impl Found {
    /// Finding of a probe with the leases that counted.
    pub(super) fn new(finding: &Finding, mut counted: Vec<CountedLease<'_>>) -> Self {
        let excluded = finding.excluded.iter();
        counted.sort_unstable_by_key(|lease| (Reverse(lease.age), lease.node));
        let seen = |lease: CountedLease<'_>| SeenLease {
            node: lease.node.to_owned(),
            age_seconds: lease.age.as_seconds_f64(),
            state: lease.state,
            skew_seconds: (!lease.skew.is_zero()).then(|| lease.skew.as_seconds_f64()),
        };
        Self {
            seconds_ago: 0,
            verdict: finding.verdict,
            tally: finding.tally,
            skewed: finding.skewed,
            fraction: finding.fraction,
            expired_after_seconds: finding.grace.threshold().as_seconds_f64(),
            unknown_after_seconds: finding.grace.period().as_seconds_f64(),
            grace_too_short: finding.grace.is_too_short(),
            excluded: excluded
                .map(|(&reason, &count)| (reason.into(), count))
                .collect(),
            leases: counted.into_iter().take(SHOWN_LEASES).map(seen).collect(),
            judged_at: finding.judged_at,
        }
    }
}

#[cfg(test)]
mod tests;
