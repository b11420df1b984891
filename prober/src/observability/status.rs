//! What the prober shows of itself at `/statusz`: every shoot, and the numbers behind what is done
//! for it.

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound, Utc};
use common::status::Status;
use maud::Markup;
use prober_core::config::Config;
use prober_core::judgement::Finding;
use prober_core::moment::Moment;
use prober_core::options::{ResolvedOptions, ShownOption, Source};
use prober_core::outage::Outage;
use prober_core::shoot::Intended;
use prober_core::verdict::Verdict;
use serde::Serialize;
use serde_json::Value;

use super::page;
pub use super::shoot_statuses::Failure;
use super::shoot_statuses::{ShootStatus, ShootStatuses};
use crate::clock::Clock;
use crate::config;
use crate::owner_records::OwnerStatus;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProberStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<&'static str>,
    pub shoots_by_state: BTreeMap<&'static str, usize>,
    /// Every shoot; those that need attention first, then by name.
    pub shoots: Vec<ShootEntry>,
    /// The newest first.
    pub outages: Vec<Outage>,
    /// The config in force, defaults included, as a config file would say it.
    pub config: Value,
    pub config_refused: bool,
    /// Whether a replica that does not lead protects the shoots whose own namespaces say nothing of
    /// it.
    #[serde(skip)]
    standby_protects: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootEntry {
    pub namespace: String,
    pub state: &'static str,
    /// What its owner record says; none while none is checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeStatus>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    pub paused: bool,
    /// What annotations set, on the shoot's namespace or on `garden`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<ShownOption>,
    pub held_down: Vec<HeldDown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub would_write: Vec<Intended>,
    /// When the next probe is due; negative when that is past.
    pub next_look_in_seconds: i64,
    /// What the last complete probe found; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// Why the last probe was not complete; none when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct HeldDown {
    pub kind: String,
    pub name: String,
    /// When this process first saw it so; it may be so for longer.
    pub since: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// When the probe was sent; all that follows is as of then.
    pub seconds_ago: i64,
    #[serde(flatten)]
    pub finding: Finding,
}

/// Why a shoot needs attention, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Concern {
    HeldDown,
    Outage,
    LostZone,
    Failing,
    NotOurs,
    Paused,
    Unclear,
    None,
}

impl ShootEntry {
    pub(super) fn concern(&self) -> Concern {
        if self
            .owner
            .as_ref()
            .is_some_and(|owner| owner.standing.is_lost())
        {
            return Concern::NotOurs;
        }
        let Some(probe) = &self.probe else {
            return if matches!(self.state, "unreadable" | "no_shoot") {
                Concern::Unclear
            } else {
                Concern::None
            };
        };
        let finding = probe.found.as_ref().map(|found| &found.finding);
        match (finding.map(|finding| finding.verdict), probe) {
            (_, probe) if !probe.held_down.is_empty() => Concern::HeldDown,
            (Some(Verdict::ScaleDown), _) => Concern::Outage,
            _ if finding.is_some_and(|finding| !finding.lost_zones.is_empty()) => Concern::LostZone,
            (
                _,
                ProbeStatus {
                    failure: Some(_), ..
                },
            ) => Concern::Failing,
            (_, ProbeStatus { paused: true, .. }) => Concern::Paused,
            (Some(verdict), _) if verdict.aim().is_none() => Concern::Unclear,
            _ => Concern::None,
        }
    }
}

impl ProberStatus {
    pub fn new(
        statuses: &ShootStatuses,
        clock: Clock,
        unknown: Option<&'static str>,
        config: &Config,
        config_refused: bool,
    ) -> Self {
        let (now, wall, shoots) = (clock.now(), Utc::now(), statuses.shoots());
        let mut options = shoots
            .iter()
            .filter_map(|(.., status)| Some(status.as_ref()?.options?.standby_protects));
        let outer = options.find(|standby| standby.from != Source::Namespace);
        let standby_protects = outer.map_or(config.standby_protects, |standby| standby.value);
        let mut shoots_by_state = BTreeMap::new();
        let entry = |(namespace, state, status): (String, _, Option<_>)| {
            *shoots_by_state.entry(state).or_default() += 1;
            let owner = statuses.owners.status(&namespace, now);
            ShootEntry {
                namespace,
                state,
                owner,
                probe: status.map(|status| probe(status, now, wall)),
            }
        };
        let mut shoots: Vec<ShootEntry> = shoots.into_iter().map(entry).collect();
        shoots.sort_by(|a, b| (a.concern(), &a.namespace).cmp(&(b.concern(), &b.namespace)));
        let (outages, config) = (statuses.outages(), config::to_json(config));
        Self {
            unknown,
            shoots_by_state,
            shoots,
            outages,
            config,
            config_refused,
            standby_protects,
        }
    }
}

impl ProbeStatus {
    /// Of one shoot; none while it is not probed.
    pub fn of(namespace: &str, statuses: &ShootStatuses, clock: Clock) -> Option<Self> {
        statuses
            .probed(namespace)
            .map(|status| probe(status, clock.now(), Utc::now()))
    }
}

impl Status for ProberStatus {
    fn body(&self) -> Markup {
        page::body(self)
    }

    fn without_lead(&self) -> &'static str {
        match self.standby_protects {
            false => {
                "This one probes all shoots, too, and writes nothing, since standbyProtects is false."
            }
            true => {
                "The leader acts first; this one probes all shoots, too, and protects those for which the leader does not act."
            }
        }
    }
}

fn probe(status: ShootStatus, now: Moment, wall: DateTime<Utc>) -> ProbeStatus {
    let held_down = status
        .held_down
        .into_iter()
        .map(|(resource, since)| HeldDown {
            kind: resource.kind,
            name: resource.name,
            since: (wall - (now - since)).trunc_subsecs(0),
        });
    ProbeStatus {
        paused: status.paused,
        settings: status
            .options
            .iter()
            .flat_map(ResolvedOptions::overruled)
            .collect(),
        held_down: held_down.collect(),
        scaling: status.scaling.map(Into::into),
        would_write: status.intended,
        next_look_in_seconds: (status.due - now).num_seconds(),
        found: status.finding.map(|finding| Found {
            seconds_ago: (now - finding.judged_at).num_seconds(),
            finding: Finding::clone(&finding),
        }),
        failure: status.failure,
    }
}

#[cfg(test)]
mod tests;
