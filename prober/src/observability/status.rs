//! Content of `/statusz`: every shoot, and the numbers behind what is done for it.

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound, Utc};
use prober_core::config::Config;
use prober_core::moment::Moment;
use prober_core::options::Source;
use prober_core::shoot::Intended;
use prober_core::verdict::Verdict;
use serde::Serialize;
use serde_json::Value;

use super::outage::Outage;
use super::outcome::ProbeOutcome;
use super::settings::ShownOption;
use super::shoot_statuses::{Failure, ShootState, ShootStatus, ShootStatuses};
use super::tone::Tone;
use super::waits::{NotScaled, ShownWait, reason};
use crate::clock::Clock;
use crate::config;
use crate::owner_records::OwnerStatus;
use crate::seed::Seed;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProberStatus {
    #[serde(flatten)]
    pub seed: SeedStatus,
    pub shoots_by_state: BTreeMap<&'static str, usize>,
    /// Every shoot; those that need attention first, then by name.
    pub shoots: Vec<ShootEntry>,
    /// The newest first.
    pub outages: Vec<Outage>,
    /// The config in force, defaults included, as a config file would say it.
    pub config: Value,
    pub config_refused: bool,
    /// True if a replica that does not lead protects the shoots whose own namespaces say nothing of
    /// it.
    #[serde(skip)]
    pub standby_protects: bool,
}

/// State of the seed as a whole.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SeedStatus {
    /// Kind whose objects are not known at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<&'static str>,
    /// Rights without which something that the config names cannot be scaled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_rights: Vec<String>,
}

impl From<&Seed> for SeedStatus {
    fn from(seed: &Seed) -> Self {
        Self {
            unknown: seed.unknown(),
            missing_rights: seed.rights.missing(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShootEntry {
    pub namespace: String,
    pub state: ShootState,
    /// Standing by its owner record; `None` while nobody checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeStatus>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    pub paused: bool,
    /// Settings by annotations, on the shoot's namespace or on `garden`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<ShownOption>,
    pub held_down: Vec<HeldDownSince>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<&'static str>,
    /// Writes that are not made yet, and what they wait for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<ShownWait>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_scaled: Vec<NotScaled>,
    /// Dependents that are not optional and do not exist, as in `Deployment/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub would_write: Vec<Intended>,
    /// Time until the next probe is due; negative if that is past.
    pub next_probe_in_seconds: i64,
    /// Last complete probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// Failure of the last probe, unless it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct HeldDownSince {
    pub kind: String,
    pub name: String,
    /// Time at which this process first saw it so; it may be so for longer.
    pub since: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Time since the probe was sent; all that follows is as of then.
    pub seconds_ago: i64,
    #[serde(flatten)]
    pub outcome: ProbeOutcome,
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
    /// Returns the most urgent concern.
    pub(super) fn concern(&self) -> Option<Concern> {
        let owner = self.owner.as_ref();
        let is_lost = owner.is_some_and(|owner| owner.standing.is_lost());
        let probe = self.probe.as_ref().filter(|_| !is_lost);
        let outcome = probe.and_then(|probe| Some(&probe.found.as_ref()?.outcome));
        let verdict = outcome.map(|outcome| outcome.finding.verdict);
        let holds = verdict.is_some_and(|verdict| verdict.aim().is_none());
        let no_shoot = matches!(self.state, ShootState::NoShoot | ShootState::Unreadable(_));
        let is_failing = probe.is_some_and(|probe| probe.failure.is_some());
        let has_held_down = probe.is_some_and(|probe| !probe.held_down.is_empty());
        let has_lost_zone = outcome.is_some_and(|outcome| !outcome.lost_zones.is_empty());
        let is_short = outcome.is_some_and(|outcome| outcome.finding.grace.is_too_short());
        let concerns = [
            (has_held_down, "held down", Tone::Bad),
            (
                verdict == Some(Verdict::ScaleDown),
                "in an outage",
                Tone::Bad,
            ),
            (has_lost_zone, "with a lost zone", Tone::Warn),
            (
                probe.is_some_and(|probe| !probe.missing.is_empty()),
                "without a controller that the config names",
                Tone::Warn,
            ),
            (is_failing, "probes failing", Tone::Warn),
            (is_lost, "not ours, or not known to be", Tone::Warn),
            (
                probe.is_some_and(|probe| probe.paused),
                "paused",
                Tone::Warn,
            ),
            (
                holds || self.probe.is_none() && no_shoot,
                "unclear",
                Tone::Warn,
            ),
            (is_short, "with too short a grace", Tone::Warn),
        ];
        let urgency = concerns.iter().position(|(applies, ..)| *applies)?;
        let (_, label, tone) = concerns[urgency];
        Some(Concern {
            urgency,
            label,
            tone,
        })
    }

    fn urgency(&self) -> usize {
        self.concern().map_or(usize::MAX, |concern| concern.urgency)
    }
}

impl ProberStatus {
    pub(crate) fn new(
        statuses: &ShootStatuses,
        clock: Clock,
        seed: SeedStatus,
        config: &Config,
        config_refused: bool,
    ) -> Self {
        let mut shoots_by_state = BTreeMap::new();
        let mut standby_protects = config.standby_protects;
        let mut shoots = Vec::new();
        for (namespace, state, status) in statuses.shoots() {
            *shoots_by_state.entry((&state).into()).or_default() += 1;
            let options = status.as_ref().and_then(|status| status.options);
            if let Some(option) = options.map(|options| options.standby_protects)
                && option.from != Source::Namespace
            {
                standby_protects = option.value;
            }
            shoots.push(ShootEntry {
                owner: statuses.owners.status(&namespace, clock.now()),
                namespace,
                state,
                probe: status.map(|status| ProbeStatus::new(status, clock)),
            });
        }
        shoots.sort_by(|a, b| (a.urgency(), &a.namespace).cmp(&(b.urgency(), &b.namespace)));
        Self {
            seed,
            shoots_by_state,
            shoots,
            outages: statuses.outages(),
            config: config::to_json(config),
            config_refused,
            standby_protects,
        }
    }
}

impl ProbeStatus {
    /// Status of one shoot; `None` while it is not probed.
    pub(crate) fn of(namespace: &str, statuses: &ShootStatuses, clock: Clock) -> Option<Self> {
        let status = statuses.probed(namespace)?;
        Some(Self::new(status, clock))
    }

    fn new(status: ShootStatus, clock: Clock) -> Self {
        let (now, wall) = (clock.now(), Utc::now());
        let held_down = status.held_down.into_iter();
        let held_down = held_down.map(|(resource, since): (_, Moment)| HeldDownSince {
            kind: resource.kind,
            name: resource.name,
            since: (wall - (now - since)).trunc_subsecs(0),
        });
        let waits = status.waits.into_iter().map(|(resource, waits)| ShownWait {
            kind: resource.kind,
            name: resource.name,
            requirement: waits.requirement.into(),
            reason: reason(waits.requirement),
            until: waits
                .until
                .map(|until| (wall + (until - now)).trunc_subsecs(0)),
        });
        let not_scaled = status.not_scaled.into_iter();
        let not_scaled = not_scaled.map(|(resource, cause)| NotScaled {
            kind: resource.kind,
            name: resource.name,
            cause,
        });
        let options = status.options.iter();
        Self {
            paused: status.paused,
            settings: options.flat_map(ShownOption::overruled).collect(),
            held_down: held_down.collect(),
            scaling: status.scaling.map(Into::into),
            waits: waits.collect(),
            not_scaled: not_scaled.collect(),
            missing: status
                .missing
                .iter()
                .map(|missing| format!("{}/{}", missing.kind, missing.name))
                .collect(),
            would_write: status.intended,
            next_probe_in_seconds: (status.due - now).num_seconds(),
            found: status.outcome.map(|outcome| Found {
                seconds_ago: (now - outcome.finding.judged_at).num_seconds(),
                outcome: ProbeOutcome::clone(&outcome),
            }),
            failure: status.failure,
        }
    }
}

#[cfg(test)]
mod tests;
