//! The nodes of a chaotic life: when each exists, is excluded and renews its lease. The truth by
//! which the oracle judges.

use std::ops::Range;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;

use super::Seconds;
use super::plan::{Away, FOR_GOOD, Plan, Silences};
use crate::lease::{LeaseList, LeaseRecord, LeaseUid};
use crate::tests::scene::{node_record, wall};
use crate::verdict::{BackedNodes, NodeRecord};

/// Renewals begin so long before a life.
const BEFORE: Seconds = 200.0;

/// The nodes that decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counts {
    Candidates,
    /// Where there is none, those that Machines back; without any Machine all of them. What was not
    /// renewed since then is as good as silent (D-55, D-59).
    Proof(Seconds),
}

struct Node {
    name: String,
    uid: String,
    node: Range<Seconds>,
    lease: Range<Seconds>,
    machine: Range<Seconds>,
    /// Times in which a condition excludes it, and in which its Machine does not back it.
    excluded: Vec<Range<Seconds>>,
    unbacked: Vec<Range<Seconds>>,
    /// Time at which the API server took each renewal, and its stamp.
    renewals: Vec<(Seconds, Seconds)>,
}

/// True if one of these spans contains a moment.
pub fn any_contains(spans: &[Range<Seconds>], t: Seconds) -> bool {
    spans.iter().any(|span| span.contains(&t))
}

impl Node {
    fn renewed_by(&self, t: Seconds) -> Option<(Seconds, Seconds)> {
        let later = self.renewals.partition_point(|(taken, _)| *taken <= t);
        Some(self.renewals[later.checked_sub(1)?])
    }

    fn has_lease(&self, t: Seconds) -> bool {
        self.lease.contains(&t) && self.renewed_by(t).is_some()
    }

    fn is_backed(&self, t: Seconds) -> bool {
        self.machine.contains(&t) && !any_contains(&self.unbacked, t)
    }

    fn is_candidate(&self, t: Seconds) -> bool {
        let exists = self.has_lease(t) && self.node.contains(&t);
        exists && self.is_backed(t) && !any_contains(&self.excluded, t)
    }

    /// Time since its last renewal.
    fn age(&self, t: Seconds) -> Seconds {
        self.renewed_by(t).map_or(FOR_GOOD, |(taken, _)| t - taken)
    }
}

pub struct Nodes {
    nodes: Vec<Node>,
    fraction: f64,
    lease_duration: i32,
    /// Times in which no node can renew, and in which nobody reaches the API server.
    pub silences: Vec<Range<Seconds>>,
    pub away: Vec<Range<Seconds>>,
}

impl Nodes {
    pub fn new(plan: &Plan, rng: &mut StdRng) -> Self {
        let silences = silences(plan, rng);
        let away = away(plan, rng);
        let mut nodes = Vec::new();
        for number in 0..rng.random_range(plan.nodes.0..plan.nodes.1) {
            let spared = plan.spares && rng.random::<f64>() < 0.3;
            let cuts = [if spared { &[] } else { &silences[..] }, &away].concat();
            let churns = |rng: &mut StdRng| plan.churn && rng.random::<f64>() < 0.5;
            let exists = if churns(rng) {
                let from = rng.random_range(0.0..plan.life * 0.7);
                from..from + rng.random_range(60.0..plan.life)
            } else {
                -BEFORE..FOR_GOOD
            };
            let again = exists.end + rng.random_range(5.0..200.0);
            nodes.push(node(plan, number, exists, &cuts, rng));
            if churns(rng) && again < plan.calm_from() {
                let mut again = node(plan, number, again..FOR_GOOD, &cuts, rng);
                again.uid.push_str("-again");
                let before = nodes.last_mut().expect("just pushed");
                before.lease.end = before.lease.end.min(again.lease.start);
                nodes.push(again);
            }
        }
        for node in nodes.iter_mut().take(plan.excluded) {
            node.excluded.push(-BEFORE..FOR_GOOD);
        }
        for silence in silences.iter().filter(|_| plan.routes_go) {
            let from = silence.start + rng.random_range(25.0..50.0);
            let to = silence.end + rng.random_range(0.0..20.0);
            for node in nodes.iter_mut().filter(|_| from < to) {
                node.excluded.push(from..to);
            }
        }
        if plan.machines_go {
            unback(plan, &mut nodes, rng);
        }
        Self {
            nodes,
            fraction: plan.fraction,
            lease_duration: plan.lease_duration,
            silences,
            away,
        }
    }

    pub fn machines(&self, t: Seconds) -> Arc<BackedNodes> {
        let backed = self.nodes.iter().filter(|node| node.is_backed(t));
        let names = backed.map(|node| Some(node.name.as_str()));
        Arc::new(names.collect())
    }

    pub fn leases(&self, t: Seconds) -> LeaseList {
        let mut leases = LeaseList::default();
        for node in self.leased(t) {
            leases.push(LeaseRecord {
                name: &node.name,
                uid: LeaseUid::from(node.uid.as_str()),
                renew_time: node.renewed_by(t).map(|(_, stamp)| wall(stamp)),
                duration_seconds: Some(self.lease_duration),
            });
        }
        leases
    }

    pub fn records(&self, t: Seconds) -> Vec<NodeRecord> {
        let record = |node: &Node| node_record(&node.name, any_contains(&node.excluded, t));
        let exist = self.nodes.iter().filter(|node| node.node.contains(&t));
        exist.map(record).collect()
    }

    fn leased(&self, t: Seconds) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| node.has_lease(t))
    }

    /// Ages of the candidates at `t`, the oldest first.
    fn ages(&self, t: Seconds) -> Vec<Seconds> {
        let candidates = self.nodes.iter().filter(|node| node.is_candidate(t));
        let mut ages: Vec<_> = candidates.map(|node| node.age(t)).collect();
        ages.sort_by(|one, other| other.total_cmp(one));
        ages
    }

    /// True if there is exactly one candidate.
    pub fn has_one_candidate(&self, t: Seconds) -> bool {
        self.ages(t).len() == 1
    }

    fn is_outage_of(&self, ages: &[Seconds], oldest: Seconds) -> bool {
        let old = ages.iter().filter(|age| **age >= oldest).count();
        ages.len() >= 2 && old as f64 / ages.len() as f64 >= self.fraction
    }

    /// True if enough candidates were last renewed so long before.
    pub fn is_outage(&self, t: Seconds, age: Seconds) -> bool {
        self.is_outage_of(&self.ages(t), age)
    }

    /// The same by the nodes that counted at each moment of the last seconds: a replica knows any
    /// of these.
    pub fn is_outage_by(
        &self,
        counts: Counts,
        t: Seconds,
        within: Seconds,
        age: Seconds,
    ) -> impl Iterator<Item = bool> {
        let since = match counts {
            Counts::Candidates => Seconds::MIN,
            Counts::Proof(since) => since,
        };
        (0..=(within * 4.0) as u32).map(move |step| {
            let counted = self.counted(counts, t - f64::from(step) / 4.0);
            let known = counted.into_iter().filter(|node| node.has_lease(t));
            let ages: Vec<_> = known.map(|node| node.age(t)).collect();
            self.is_outage_of(&ages, age.min(t - since))
        })
    }

    fn counted(&self, counts: Counts, t: Seconds) -> Vec<&Node> {
        let with = |is_one: fn(&Node, Seconds) -> bool| -> Vec<_> {
            self.leased(t).filter(|node| is_one(node, t)).collect()
        };
        let candidates = with(Node::is_candidate);
        if counts == Counts::Candidates || !candidates.is_empty() {
            return candidates;
        }
        if self.machines(t).count > 0 {
            return with(Node::is_backed);
        }
        self.leased(t).collect()
    }

    /// True while there are leases and not a single Machine, and has been for some seconds.
    pub fn has_moved_away(&self, t: Seconds, within: Seconds) -> bool {
        let moved = |t| self.machines(t).count == 0 && self.leased(t).count() >= 2;
        moved(t) && moved(t - within)
    }

    /// Age of the lease whose expiry turns the verdict.
    pub fn deciding_age(&self, t: Seconds) -> Option<Seconds> {
        let ages = self.ages(t);
        let mut oldest = ages.iter().copied();
        oldest.find(|&age| self.is_outage_of(&ages, age))
    }

    /// Returns when an outage that begins at `t` can be seen, and when its first node is marked.
    pub fn outage(&self, t: Seconds, plan: &Plan) -> (Seconds, Seconds) {
        let deciding = self.deciding_age(t).expect("an outage");
        (
            t - deciding + plan.threshold(),
            t - self.ages(t)[0] + plan.grace,
        )
    }

    /// Returns when kube-controller-manager marks the first node that is silent at `t`.
    pub fn first_end(&self, t: Seconds, grace: Seconds) -> Option<Seconds> {
        let ends = self.ages(t).into_iter().map(|age| t - age + grace);
        ends.filter(|end| *end > t).min_by(f64::total_cmp)
    }
}

/// Times in which no node renews; over before the calm.
fn silences(plan: &Plan, rng: &mut StdRng) -> Vec<Range<Seconds>> {
    if let Silences::Once(silence) = &plan.silences {
        return vec![silence.clone()];
    }
    let mut silences = vec![];
    let factor = plan.grace / 40.0;
    let mut t = 100.0 + rng.random_range(0.0..60.0) + plan.grace;
    while plan.silences != Silences::None && t < plan.calm_from() - 100.0 {
        let (from, to) =
            [(5.0, 40.0), (25.0, 60.0), (60.0, 200.0), (30.0, 90.0)][rng.random_range(0..4)];
        let end = t + rng.random_range(from..to) * factor;
        silences.push(t..end.min(plan.calm_from()));
        let (from, to) = match plan.silences {
            Silences::Blips => (2.0, 15.0),
            _ => [(2.0, 20.0), (10.0, 60.0), (30.0, 200.0)][rng.random_range(0..3)],
        };
        t = end + rng.random_range(from..to) * factor;
    }
    silences
}

fn away(plan: &Plan, rng: &mut StdRng) -> Vec<Range<Seconds>> {
    let (mut away, mut t) = (vec![], 200.0 + rng.random_range(0.0..100.0));
    match &plan.away {
        Away::Never => return away,
        Away::During(span) => return vec![span.clone()],
        Away::Once(lasts) => return vec![t..t + lasts],
        Away::Often => {}
    }
    while t < plan.calm_from() - 100.0 {
        let end = t + rng.random_range(1.0..60.0);
        away.push(t..end);
        t = end + rng.random_range(80.0..300.0);
    }
    away
}

fn node(
    plan: &Plan,
    number: usize,
    exists: Range<Seconds>,
    cuts: &[Range<Seconds>],
    rng: &mut StdRng,
) -> Node {
    let renewals = renewals(plan, &exists, cuts, rng);
    let mut excluded = vec![];
    if plan.conditions && rng.random::<f64>() < 0.5 {
        let mut from = rng.random_range(50.0..400.0);
        while from < plan.calm_from() {
            let to = from + rng.random_range(3.0..300.0);
            excluded.push(from..to.min(plan.calm_from()));
            from = to + rng.random_range(5.0..400.0);
        }
    }
    let begin = renewals.first().map_or(exists.start, |(taken, _)| *taken);
    let mut up_to = |most: Seconds| {
        if rng.random() {
            0.0
        } else {
            rng.random_range(0.0..most)
        }
    };
    Node {
        name: format!("node-{number:04}"),
        uid: format!("uid-{number}"),
        node: begin..exists.end,
        lease: begin..exists.end + up_to(400.0),
        machine: exists.start - 60.0..exists.end - up_to(20.0),
        excluded,
        unbacked: vec![],
        renewals,
    }
}

/// Renewals of a kubelet; after a cut it has reached the API server again within 7 s.
fn renewals(
    plan: &Plan,
    exists: &Range<Seconds>,
    cuts: &[Range<Seconds>],
    rng: &mut StdRng,
) -> Vec<(Seconds, Seconds)> {
    let error = plan.clocks.error(rng.random());
    let mut renewals = vec![];
    let mut t = exists.start + rng.random_range(0.0..plan.beat);
    while t < exists.end.min(plan.life + BEFORE) {
        let calm = t >= plan.calm_from();
        let mut taken = t + rng.random::<f64>() * if calm { 0.0 } else { plan.late };
        for mut sent in [t, taken] {
            while let Some(cut) = cuts.iter().find(|cut| cut.contains(&sent)) {
                sent = cut.end + rng.random_range(0.0..0.7 * plan.beat);
                (t, taken) = (sent, sent);
            }
        }
        if taken < exists.end {
            renewals.push((taken, t + error + plan.clocks.further(t)));
        }
        let stretch = rng.random_range(plan.stretch.0..plan.stretch.1);
        t = taken.max(t + plan.beat * if calm { 1.0 } else { stretch });
    }
    renewals
}

/// Machines are gone for some time, most of them at once.
fn unback(plan: &Plan, nodes: &mut [Node], rng: &mut StdRng) {
    let mut from = rng.random_range(60.0..400.0);
    while from < plan.calm_from() - 50.0 {
        let to = from + rng.random_range(5.0..200.0);
        for node in &mut *nodes {
            if rng.random::<f64>() < 0.9 {
                let back = to + rng.random_range(0.0..10.0);
                node.unbacked.push(from..back.min(plan.calm_from()));
            }
        }
        from = to + rng.random_range(20.0..400.0);
    }
}
