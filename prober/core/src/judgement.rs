//! From what a shoot's API server shows to a finding: what the leases, the Machines and the nodes
//! say together.
//!
//! ```text
//! leases --lease clocks--> by Machines --> do the nodes matter? --> by nodes --> tally --> verdict
//! ```
//!
//! Silence counts only where it could have been broken (D-54): an API server that was away comes
//! back with every lease old, and its kubelets need a beat to renew. So expired leases are
//! undecided for a while after any time in which it may not have answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use serde::Serialize;

use super::as_seconds;
use super::lease::{Criteria, Grace, LeaseClock, LeaseClocks, LeaseRecord, LeaseState};
use super::moment::{Moment, RequestTimes};
use super::plan::ordering_deadline;
use super::schedule::verdict_possible;
use super::verdict::{
    BackedNodes, Candidates, NodeRecord, PoolConditions, Tally, Verdict, nodes_matter,
};
use super::zones::{LostZone, lost};

/// So many leases are shown to people: more would be read by nobody, and thousands of shoots may be
/// down at once.
const SHOWN_LEASES: usize = 20;
/// With leases and not a single Machine nothing is concluded until no lease was renewed for so long
/// (D-55).
const ABANDONED: TimeDelta = TimeDelta::minutes(10);

#[derive(Clone, Debug, PartialEq)]
pub struct Rules<'a> {
    pub grace: Grace,
    /// From which share of expired leases on there is an outage.
    pub fraction: f64,
    pub pool_conditions: &'a PoolConditions,
    /// See [`Criteria::renewed_after`].
    pub renewed_after: Option<Moment>,
}

/// What a probe came to: stored and shown as it is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub verdict: Verdict,
    /// Whether it is a hold that would be "up" if leases were valid without proof (D-59).
    #[serde(skip)]
    pub holds_for_proof: bool,
    /// The moment that was judged: when the leases were asked for.
    #[serde(skip)]
    pub judged_at: Moment,
    #[serde(flatten)]
    pub tally: Tally,
    /// How many leases are judged by clocks that differ from ours.
    pub skewed: usize,
    /// From which share of expired leases on there is an outage.
    pub fraction: f64,
    #[serde(flatten)]
    pub grace: Grace,
    pub excluded: BTreeMap<&'static str, usize>,
    /// Whether the nodes mattered, so that the candidates are known and not just an upper bound.
    #[serde(skip)]
    pub nodes_known: bool,
    /// How many expired leases were not renewed for the whole grace.
    #[serde(skip)]
    pub past_grace: usize,
    /// The oldest leases that counted, oldest first; none while nodes do not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<SeenLease>,
    /// Zones, or worker pools where nodes name none, that are lost while the shoot is not; nothing
    /// is scaled for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_zones: Vec<LostZone>,
    /// When the verdict could fall if nothing were renewed from now on.
    #[serde(skip)]
    pub verdict_possible: Option<Moment>,
    /// Until when a scale-down may wait between its levels; see [`ordering_deadline`].
    #[serde(skip)]
    pub ordering_deadline: Option<Moment>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SeenLease {
    pub node: String,
    /// For how long it had not been renewed then, on our clock. What was renewed since only the
    /// next probe will know.
    #[serde(rename = "ageSeconds", serialize_with = "as_seconds")]
    pub age: TimeDelta,
    pub state: LeaseState,
    /// How far the node's clock is behind ours; negative: ahead.
    #[serde(
        rename = "skewSeconds",
        serialize_with = "as_seconds",
        skip_serializing_if = "TimeDelta::is_zero"
    )]
    pub skew: TimeDelta,
}

#[derive(Debug, Default, Clone)]
pub struct Judge {
    leases: LeaseClocks,
    machines: Arc<BackedNodes>,
    /// The nodes as listed last, and for which probe; kept while they matter.
    nodes: Option<(RequestTimes, Vec<NodeRecord>)>,
    last: Option<RequestTimes>,
    /// Whether a probe since then got no answer at all.
    unanswered: bool,
    /// The first probe after any time in which the API server may have been away.
    answering: Moment,
}

impl Judge {
    pub fn observe<'a>(
        &mut self,
        times: RequestTimes,
        leases: impl IntoIterator<Item = LeaseRecord<'a>>,
        grace: Grace,
    ) {
        let by = self.leases.grace(grace);
        if self
            .last
            .is_none_or(|last| self.may_have_been_away(times.sent - last.received, by))
        {
            self.answering = times.sent;
        }
        self.unanswered = false;
        self.leases.observe(&times, leases, grace);
        self.last = Some(times);
    }

    /// Whether kubelets may not have been able to renew between two complete probes that are this
    /// far apart.
    fn may_have_been_away(&self, gap: TimeDelta, grace: Grace) -> bool {
        gap > grace.longest_break() || self.unanswered && gap > grace.longest_silence()
    }

    /// Notes a probe that as a whole got no answer.
    pub(crate) fn note_unanswered(&mut self) {
        self.unanswered = true;
    }

    /// Applies the Machines. Returns whether they have changed.
    pub fn set_machines(&mut self, machines: Arc<BackedNodes>) -> bool {
        let changed = self.machines != machines;
        self.machines = machines;
        changed
    }

    pub fn set_nodes(&mut self, nodes: Vec<NodeRecord>) {
        self.nodes = self.last.map(|times| (times, nodes));
    }

    /// Whether the nodes are to be listed before the last probe is judged. Those of an earlier
    /// probe that was sent since `good_since` do while every lease that Machines allow is expired:
    /// then no node can change the verdict but by being counted or not (D-53). For half a beat they
    /// also do while no lease is seen to change: probes that follow each other closely (D-57) would
    /// list them again and again, just when all shoots of a seed may do so. What else changes of a
    /// node is then noticed that much later. What is known of the nodes is forgotten when they do
    /// not matter.
    pub fn wants_nodes(
        &mut self,
        rules: &Rules<'_>,
        settled: bool,
        good_since: Option<Moment>,
    ) -> bool {
        let by = self.criteria(rules);
        let candidates = Candidates::by_machines(&self.leases, &self.machines);
        let allowed = candidates.tally(by);
        if self.has_moved_away(by) || !nodes_matter(allowed, settled) {
            self.nodes = None;
            return false;
        }
        let unrenewed_since = |listed: &RequestTimes| {
            let mut clocks = candidates.clocks();
            by.now - listed.sent < by.grace.recovery_gap()
                && clocks.all(|clock| !clock.changed_since(listed.received))
        };
        let good = |listed: &RequestTimes| {
            good_since.is_some_and(|since| listed.sent >= since)
                && (allowed.expired == allowed.candidates || unrenewed_since(listed))
        };
        !self
            .nodes
            .as_ref()
            .is_some_and(|(listed, _)| listed.sent == self.judged_at() || good(listed))
    }

    pub fn judge(&self, rules: &Rules<'_>) -> Finding {
        let by = self.criteria(rules);
        let Criteria { now, grace, .. } = by;
        let candidates = match &self.nodes {
            Some((_, nodes)) => {
                Candidates::by_nodes(&self.leases, &self.machines, nodes, rules.pool_conditions)
            }
            None => Candidates::by_machines(&self.leases, &self.machines),
        };
        let nodes_known = self.nodes.is_some();
        let tally = candidates.tally(by);
        let verdict = self.verdict(tally, by, rules);
        let unproven = Criteria {
            renewed_after: None,
            ..by
        };
        let clocks = candidates.clocks();
        let is_expired = |clock: &LeaseClock| clock.state(by) == LeaseState::Expired;
        Finding {
            verdict,
            holds_for_proof: verdict.aim().is_none()
                && self
                    .verdict(candidates.tally(unproven), unproven, rules)
                    .is_up(),
            judged_at: now,
            grace,
            fraction: rules.fraction,
            tally,
            nodes_known,
            excluded: candidates
                .excluded
                .iter()
                .map(|(reason, count)| (reason.into_str(), *count))
                .collect(),
            skewed: clocks
                .clone()
                .filter(|clock| !clock.skew(grace).is_zero())
                .count(),
            past_grace: clocks
                .clone()
                .filter(|clock| is_expired(clock) && clock.renewed(grace) + grace.period() <= now)
                .count(),
            verdict_possible: verdict_possible(clocks.clone(), nodes_known, rules.fraction, by),
            leases: if nodes_known {
                self.oldest(&candidates, by)
            } else {
                Vec::new()
            },
            lost_zones: if verdict == Verdict::ScaleDown {
                Vec::new()
            } else {
                self.lost_zones(&candidates, tally, by)
            },
            ordering_deadline: ordering_deadline(
                clocks,
                self.last.map_or(now, |times| times.received),
                grace,
            ),
        }
    }

    /// Whether there are leases, not all of them long silent, and no Machine: these moved away with
    /// their control plane, or were deleted by force (D-55).
    fn has_moved_away(&self, by: Criteria) -> bool {
        self.machines.count == 0
            && self.leases.len() >= 2
            && self.recently_renewed(by).next().is_some()
    }

    fn recently_renewed(&self, by: Criteria) -> impl Iterator<Item = &LeaseClock> {
        self.leases
            .iter()
            .map(|(_, clock)| clock)
            .filter(move |clock| !clock.is_silent_for(ABANDONED, by))
    }

    /// What follows from the leases that count, but where it is unknown which do.
    fn verdict(&self, tally: Tally, by: Criteria, rules: &Rules<'_>) -> Verdict {
        let (fraction, proof_wanted) = (rules.fraction, rules.renewed_after.is_some());
        if self.has_moved_away(by) {
            // What is held down comes back when enough of the nodes are seen to renew (D-59).
            let renewed = Tally::of(self.recently_renewed(by).map(|clock| clock.state(by)));
            return if proof_wanted && renewed.verdict(fraction).is_up() {
                Verdict::ScaleUpHeldDown
            } else {
                Verdict::HoldNoMachines
            };
        }
        if proof_wanted && tally.candidates == 0 {
            // That no node counts any more proves nothing: those that Machines back are judged
            // (D-59).
            let backed = Candidates::by_machines(&self.leases, &self.machines).tally(by);
            return match backed.verdict(fraction) {
                Verdict::ScaleDown => Verdict::HoldUndecided,
                verdict => verdict,
            };
        }
        tally.verdict(fraction)
    }

    fn criteria(&self, rules: &Rules<'_>) -> Criteria {
        Criteria {
            now: self.judged_at(),
            answering: self.answering,
            renewed_after: rules.renewed_after,
            grace: self.leases.grace(rules.grace),
        }
    }

    fn judged_at(&self) -> Moment {
        self.last.map_or(Moment::START, |times| times.sent)
    }

    fn lost_zones(&self, candidates: &Candidates<'_>, tally: Tally, by: Criteria) -> Vec<LostZone> {
        let Some((_, nodes)) = self.nodes.as_ref().filter(|_| tally.expired > 0) else {
            return Vec::new();
        };
        // The candidates come in the order of their nodes.
        let mut nodes = nodes.iter();
        lost(candidates.leases.iter().filter_map(|&(name, clock)| {
            let zone = nodes
                .find(|node| node.name == name)?
                .traits
                .failure_zone()?;
            Some((zone, clock.state(by)))
        }))
    }

    fn oldest(&self, candidates: &Candidates<'_>, by: Criteria) -> Vec<SeenLease> {
        let mut leases: Vec<_> = candidates
            .leases
            .iter()
            .map(|&(node, clock)| (clock.renewed(by.grace), node, clock))
            .collect();
        leases.sort_unstable_by_key(|&(renewed, node, _)| (renewed, node));
        leases.truncate(SHOWN_LEASES);
        let seen = |(renewed, node, clock): (Moment, &str, &LeaseClock)| SeenLease {
            node: node.to_owned(),
            age: by.now - renewed,
            state: clock.state(by),
            skew: clock.skew(by.grace),
        };
        leases.into_iter().map(seen).collect()
    }
}
