//! From what a shoot's API server shows to a finding: what the leases, the Machines and the nodes
//! say together.
//!
//! ```text
//! leases --lease clocks--> by Machines --> do the nodes matter? --> by nodes --> tally --> verdict
//! ```
//!
//! Silence counts only where it could have been broken: an API server that was away comes
//! back with every lease old, and its kubelets need a beat to renew. So expired leases are
//! undecided for a while after any time in which it may not have answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;

use super::horizon::{ordering_deadline, verdict_possible};
use super::lease::{Criteria, Grace, LeaseClock, LeaseClocks, LeaseRecord, LeaseState};
use super::moment::{Moment, RequestTimes};
use super::verdict::{
    BackedNodes, Candidates, NodeRecord, PoolConditions, Tally, Verdict, nodes_matter,
};

/// Silence of all leases after which a shoot without a single Machine counts as one without nodes.
const ABANDONED: TimeDelta = TimeDelta::minutes(10);

#[derive(Clone, Debug, PartialEq)]
pub struct Rules<'a> {
    pub grace: Grace,
    /// Share of expired leases that makes an outage.
    pub fraction: f64,
    pub pool_conditions: &'a PoolConditions,
    /// See [`Criteria::renewed_after`].
    pub renewed_after: Option<Moment>,
    /// Time at which the verdict fell, if that was "down".
    pub down_since: Option<Moment>,
    /// Time for which nodes that were listed will do while all leases are expired.
    pub nodes_good_for: TimeDelta,
}

/// Result of a probe.
#[derive(Clone, Debug)]
pub struct Finding {
    pub verdict: Verdict,
    /// True if it is a hold that would be "up" if leases were valid without proof.
    pub holds_for_proof: bool,
    /// The moment that was judged: when the leases were asked for.
    pub judged_at: Moment,
    pub tally: Tally,
    /// Number of leases whose clocks differ from ours.
    pub skewed: usize,
    /// Share of expired leases that makes an outage.
    pub fraction: f64,
    pub grace: Grace,
    pub criteria: Criteria,
    pub excluded: BTreeMap<&'static str, usize>,
    /// True if the nodes mattered, so that the candidates are known and not just an upper bound.
    pub nodes_known: bool,
    /// Earliest moment of a "down" if nothing is renewed from now on.
    pub verdict_possible: Option<Moment>,
    /// See [`ordering_deadline`].
    pub ordering_deadline: Moment,
}

impl Finding {
    /// A verdict that somebody else has found, without a probe: nothing is to be won by haste.
    pub(crate) fn decreed(verdict: Verdict, grace: Grace, now: Moment) -> Self {
        Self {
            verdict,
            holds_for_proof: false,
            judged_at: now,
            tally: Tally::default(),
            skewed: 0,
            fraction: 0.0,
            grace,
            criteria: Criteria {
                now,
                answering: Moment::START,
                renewed_after: None,
                grace,
            },
            excluded: BTreeMap::new(),
            nodes_known: false,
            verdict_possible: None,
            ordering_deadline: Moment::NEVER,
        }
    }
}

/// A lease that counts, as it was when the leases were listed.
#[derive(Clone, Debug)]
pub struct CountedLease<'a> {
    pub node: &'a str,
    /// Time since the last renewal, on our clock.
    pub age: TimeDelta,
    pub state: LeaseState,
    /// Lag of the node's clock behind ours; negative if it is ahead.
    pub skew: TimeDelta,
}

#[derive(Debug, Default, Clone)]
pub struct Judge {
    leases: LeaseClocks,
    machines: Arc<BackedNodes>,
    /// The nodes as listed last, and for which probe; kept while they matter.
    nodes: Option<(RequestTimes, Vec<NodeRecord>)>,
    /// Time for which they will do.
    nodes_good_for: TimeDelta,
    last: Option<RequestTimes>,
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
            .is_none_or(|last| times.sent - last.received > by.longest_break())
        {
            self.answering = times.sent;
        }
        self.leases.observe(&times, leases, grace);
        self.last = Some(times);
    }

    pub fn set_machines(&mut self, machines: Arc<BackedNodes>) {
        if !Arc::ptr_eq(&self.machines, &machines) {
            self.leases.share_names(|name| machines.name(name));
        }
        self.machines = machines;
    }

    /// Applies the nodes that were listed after the last leases.
    pub fn set_nodes(&mut self, mut nodes: Vec<NodeRecord>) {
        for node in &mut nodes {
            if let Some(name) = self.machines.name(&node.name) {
                node.name = Arc::clone(name);
            }
        }
        self.nodes = self.last.map(|times| (times, nodes));
    }

    /// True if the last probe cannot be judged without the nodes, which are to be listed. Those that
    /// were listed before do for half a beat, and for longer while every lease that Machines allow
    /// is expired: then no node can change the verdict but by being counted or not. What else
    /// changes of a node is noticed that much later. They are forgotten when they do not matter;
    /// `settled` means that a scale-up would find nothing to do.
    pub fn lacks_nodes(&mut self, rules: &Rules<'_>, settled: bool) -> bool {
        let by = self.criteria(rules);
        let allowed = Candidates::by_machines(&self.leases, &self.machines).tally(by);
        if self.has_moved_away(by) || !nodes_matter(allowed, settled) {
            self.nodes = None;
            return false;
        }
        self.nodes_good_for = if allowed.expired == allowed.candidates {
            rules.nodes_good_for
        } else {
            by.grace.recovery_gap()
        };
        !self.knows_nodes(by.now)
    }

    /// True if the nodes were listed lately.
    pub(crate) fn knows_nodes(&self, now: Moment) -> bool {
        self.nodes
            .as_ref()
            .is_some_and(|(listed, _)| now - listed.sent < self.nodes_good_for)
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
        Finding {
            verdict,
            holds_for_proof: verdict.aim().is_none()
                && self
                    .verdict(candidates.tally(unproven), unproven, rules)
                    .is_up(),
            judged_at: now,
            grace,
            criteria: by,
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
            verdict_possible: verdict_possible(clocks.clone(), nodes_known, rules.fraction, by),
            ordering_deadline: ordering_deadline(
                clocks,
                rules
                    .down_since
                    .or(self.last.map(|times| times.received))
                    .unwrap_or(now),
                grace,
            ),
        }
    }

    /// True if there are leases, not all of them long silent, and no Machine: these moved away with
    /// their control plane, or were deleted by force.
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

    /// Returns the verdict on the leases that count, but where it is unknown which do.
    fn verdict(&self, tally: Tally, by: Criteria, rules: &Rules<'_>) -> Verdict {
        let (fraction, proof_wanted) = (rules.fraction, rules.renewed_after.is_some());
        if self.has_moved_away(by) {
            // What is held down comes back when enough of the nodes are seen to renew.
            let renewed = Tally::of(self.recently_renewed(by).map(|clock| clock.state(by)));
            return if proof_wanted && renewed.verdict(fraction).is_up() {
                Verdict::ScaleUpHeldDown
            } else {
                Verdict::HoldNoMachines
            };
        }
        if proof_wanted && tally.candidates == 0 {
            // That no node counts any more proves nothing: those that Machines back are judged.
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

    /// Leases that count by the nodes, in their order; empty while the nodes do not matter.
    pub(crate) fn counted_leases(
        &self,
        by: Criteria,
        conditions: &PoolConditions,
    ) -> Vec<CountedLease<'_>> {
        let Some((_, nodes)) = &self.nodes else {
            return Vec::new();
        };
        let candidates = Candidates::by_nodes(&self.leases, &self.machines, nodes, conditions);
        let counted = |(name, clock): (_, &LeaseClock)| CountedLease {
            node: name,
            age: by.now - clock.renewed(by.grace),
            state: clock.state(by),
            skew: clock.skew(by.grace),
        };
        candidates.leases.into_iter().map(counted).collect()
    }
}

#[cfg(test)]
mod tests;
