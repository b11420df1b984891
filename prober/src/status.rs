//! What the prober shows of itself at `/statusz`: every shoot, and the numbers behind what is done for it.

mod age_bar;
mod page;

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use common::status::Status;
use maud::Markup;
use serde::Serialize;
use serde_json::Value;

use crate::clock::Clock;
use crate::core::judgement::{Finding, SeenLease};
use crate::core::lease::LeaseState;
use crate::core::moment::Moment;
use crate::core::options::{ResolvedOptions, ShownOption, Source};
use crate::core::plan::Direction;
use crate::core::zones::LostZone;
use crate::history::Entry;
use crate::owner_records::OwnerStatus;
pub use crate::shoot_statuses::Failure;
use crate::shoot_statuses::{Intended, ShootStatus, ShootStatuses};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProberStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<&'static str>,
    pub shoots_by_state: BTreeMap<&'static str, usize>,
    /// Every shoot; those that need attention first, then by name.
    pub shoots: Vec<ShootEntry>,
    /// What happened last, the newest first.
    pub history: Vec<Entry>,
    /// The config in force, defaults included, as a config file would say it.
    pub config: Value,
    pub config_refused: bool,
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
    pub verdict: &'static str,
    pub candidates: usize,
    pub expired: usize,
    /// Of these, those whose stamps could not be believed yet.
    pub undecided: usize,
    pub skewed: usize,
    /// From which share of expired leases on there is an outage.
    pub fraction: f64,
    pub expired_after_seconds: f64,
    pub given_up_after_seconds: f64,
    pub excluded: BTreeMap<&'static str, usize>,
    /// The oldest leases that counted, oldest first; only while one is expired or undecided, or something is held down.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<LeaseAge>,
    /// Zones, or worker pools where nodes name none, that are lost while the shoot is not; nothing is scaled for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_zones: Vec<LostZone>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseAge {
    pub node: String,
    /// For how long it had not been renewed then, on our clock. What was renewed since only the next probe will know.
    pub age_seconds: f64,
    /// `valid`, `expired` or `undecided`.
    pub state: &'static str,
    /// How far the node's clock is behind ours; negative: ahead.
    #[serde(skip_serializing_if = "is_zero")]
    pub skew_seconds: f64,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Why a shoot needs attention, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Concern {
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
    fn concern(&self) -> Concern {
        if self.owner.as_ref().is_some_and(|owner| matches!(owner.standing, "elsewhere" | "unresolved")) {
            return Concern::NotOurs;
        }
        let Some(probe) = &self.probe else {
            return if matches!(self.state, "unreadable" | "no_shoot") { Concern::Unclear } else { Concern::None };
        };
        let verdict = probe.found.as_ref().map(|found| found.verdict);
        match probe {
            _ if !probe.held_down.is_empty() => Concern::HeldDown,
            _ if verdict == Some("scale_down") => Concern::Outage,
            ProbeStatus { found: Some(found), .. } if !found.lost_zones.is_empty() => Concern::LostZone,
            ProbeStatus { failure: Some(_), .. } => Concern::Failing,
            ProbeStatus { paused: true, .. } => Concern::Paused,
            _ if verdict.is_some_and(|verdict| verdict.starts_with("hold")) => Concern::Unclear,
            _ => Concern::None,
        }
    }
}

impl ProberStatus {
    pub fn new(
        statuses: &ShootStatuses,
        clock: Clock,
        unknown: Option<&'static str>,
        config: Value,
        config_refused: bool,
    ) -> Self {
        let (now, wall) = (clock.now(), Utc::now());
        let mut shoots_by_state = BTreeMap::new();
        let mut shoots: Vec<ShootEntry> = statuses
            .shoots()
            .into_iter()
            .map(|(namespace, state, status)| {
                *shoots_by_state.entry(state).or_default() += 1;
                let owner = statuses.owners.status(&namespace, now);
                ShootEntry { namespace, state, owner, probe: status.map(|status| probe(status, now, wall)) }
            })
            .collect();
        shoots.sort_by(|a, b| (a.concern(), &a.namespace).cmp(&(b.concern(), &b.namespace)));
        Self { unknown, shoots_by_state, shoots, history: statuses.history.entries(), config, config_refused }
    }

    /// Whether a replica that does not lead protects the shoots whose own namespaces say nothing of it.
    fn standby_protects(&self) -> bool {
        let settings = self.shoots.iter().filter_map(|shoot| shoot.probe.as_ref()).flat_map(|probe| &probe.settings);
        let mut by_garden = settings.filter(|shown| shown.setting == "standbyProtects" && shown.from == Source::Garden);
        match by_garden.next() {
            Some(shown) => shown.value == "true",
            None => self.config["standbyProtects"].as_bool().unwrap_or(true),
        }
    }
}

impl Status for ProberStatus {
    fn body(&self) -> Markup {
        page::body(self)
    }

    fn without_lead(&self) -> &'static str {
        match self.standby_protects() {
            false => "This one probes all shoots, too, and writes nothing, since standbyProtects is false.",
            true => {
                "The leader acts first; this one probes all shoots, too, and protects those for which the leader does not act."
            }
        }
    }
}

fn probe(status: ShootStatus, now: Moment, wall: DateTime<Utc>) -> ProbeStatus {
    let held_down = status.held_down.into_iter().map(|(resource, since)| HeldDown {
        kind: resource.kind,
        name: resource.name,
        since: (wall - (now - since)).trunc_subsecs(0),
    });
    ProbeStatus {
        paused: status.paused,
        settings: status.options.iter().flat_map(ResolvedOptions::overruled).collect(),
        held_down: held_down.collect(),
        scaling: status.scaling.map(Direction::as_str),
        would_write: status.intended,
        next_look_in_seconds: (status.due - now).num_seconds(),
        found: status.finding.map(|finding| found(&finding, now)),
        failure: status.failure,
    }
}

fn found(finding: &Finding, now: Moment) -> Found {
    let age = |lease: &SeenLease| LeaseAge {
        node: lease.node.clone(),
        age_seconds: seconds(finding.judged_at - lease.renewed),
        state: match lease.state {
            LeaseState::Valid => "valid",
            LeaseState::Expired => "expired",
            LeaseState::Undecided => "undecided",
        },
        skew_seconds: seconds(lease.skew),
    };
    Found {
        seconds_ago: (now - finding.judged_at).num_seconds(),
        verdict: finding.verdict.as_str(),
        candidates: finding.tally.candidates,
        expired: finding.tally.expired,
        undecided: finding.tally.undecided,
        skewed: finding.skewed,
        fraction: finding.fraction,
        expired_after_seconds: seconds(finding.grace.threshold()),
        given_up_after_seconds: seconds(finding.grace.period()),
        excluded: finding.excluded.clone(),
        leases: finding.leases.iter().map(age).collect(),
        lost_zones: finding.lost_zones.clone(),
    }
}

fn seconds(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 1000.0
}

#[cfg(test)]
mod tests;
