//! Candidates and verdict (rules 44 to 48, D-19, D-20, D-21): which leases count, and what follows
//! from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use super::lease::{Criteria, LeaseClock, LeaseClocks, LeaseState};
use super::plan::Direction;
use super::sorted::position;

/// A node with this annotation, whatever its value, is not managed by machine-controller-manager
/// and does not count.
const NOT_MANAGED_BY_MCM: &str = "node.machine.sapcloud.io/not-managed-by-mcm";
const POOL_LABEL: &str = "worker.gardener.cloud/pool";
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// Kubernetes' limit for the value of a label.
const MAX_LABEL: usize = 63;
/// What makes a node unhealthy where its pool does not say (Gardener's default list, rule 45).
const DEFAULT_UNHEALTHY_CONDITIONS: [&str; 4] = [
    "KernelDeadlock",
    "ReadonlyFilesystem",
    "DiskPressure",
    "NetworkUnavailable",
];
const TRUE: &str = "True";
/// The condition type that accompanies an in-place update, and the reasons with which the node does
/// not count.
const IN_PLACE_UPDATE: &str = "InPlaceUpdate";
const IN_PLACE_UPDATE_REASONS: [&str; 2] = ["ReadyForUpdate", "UpdateFailed"];

/// The most conditions that are kept of a node: honest nodes have some twenty, of which Ready alone
/// is True as a rule. Kubernetes' own limits for a condition's type and reason are 316 and 1,024
/// bytes.
const MAX_CONDITIONS: usize = 64;
const MAX_CONDITION_TEXT: usize = 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRecord {
    pub name: String,
    /// Shared by nodes that are alike: all but a few of a large shoot.
    pub traits: Arc<NodeTraits>,
}

impl NodeRecord {
    pub fn new(name: &str, traits: NodeTraits) -> Self {
        Self {
            name: name.to_owned(),
            traits: Arc::new(traits),
        }
    }
}

/// What matters of a node beside its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeTraits {
    pub pool: Option<String>,
    pub zone: Option<String>,
    pub not_managed_by_mcm: bool,
    /// Those of `status.conditions` that can matter: the ones that are True, and that of an
    /// in-place update. No more than an honest node has.
    pub conditions: Vec<NodeCondition>,
}

impl NodeTraits {
    pub fn note_label(&mut self, key: &str, value: &str) {
        match key {
            POOL_LABEL => self.pool = Some(value.to_owned()),
            ZONE_LABEL => self.zone = Some(value.to_owned()),
            _ => {}
        }
    }

    /// Which nodes it is most likely to be lost together with: those of its zone, else of its pool.
    /// It is shown to people, and whoever owns the shoot chooses it: what no label can be is no
    /// name.
    pub(crate) fn failure_zone(&self) -> Option<&str> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_label =
            |name: &&str| (1..=MAX_LABEL).contains(&name.len()) && name.bytes().all(plain);
        self.zone
            .as_deref()
            .filter(is_label)
            .or(self.pool.as_deref().filter(is_label))
    }

    pub fn note_annotation(&mut self, key: &str) {
        self.not_managed_by_mcm |= key == NOT_MANAGED_BY_MCM;
    }

    /// Takes one of the node's conditions if it can matter: most conditions of a node are False.
    pub fn note_condition(&mut self, condition: NodeCondition<&str>) {
        let NodeCondition {
            kind,
            status,
            reason,
        } = condition;
        let matters = status == TRUE || kind == IN_PLACE_UPDATE;
        let is_honest = || {
            [kind, status, reason]
                .iter()
                .all(|text| text.len() <= MAX_CONDITION_TEXT)
        };
        if matters && self.conditions.len() < MAX_CONDITIONS && is_honest() {
            let [kind, status, reason] = [kind, status, reason].map(str::to_owned);
            self.conditions.push(NodeCondition {
                kind,
                status,
                reason,
            });
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeCondition<T = String> {
    pub kind: T,
    pub status: T,
    pub reason: T,
}

/// Per worker pool, the condition types that make a node unhealthy when True; pools that are not in
/// it use the default.
pub type PoolConditions = BTreeMap<String, Vec<String>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Exclusion {
    /// No Machine says that it backs the node, or only ones that are Failed or Terminating.
    NoUsableMachine,
    NotManaged,
    UnhealthyCondition,
    InPlaceUpdate,
    NoNode,
    /// There is a node, but no lease of that name, or one without renewTime.
    NoLease,
    /// There is a lease without renewTime (D-19).
    NoRenewTime,
}

/// What follows from the leases that count. A hold changes nothing in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantNames, Serialize)]
#[strum(serialize_all = "snake_case", const_into_str)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    ScaleUp,
    /// Only those that carry the meltdown marker (D-20).
    ScaleUpHeldDown,
    /// The nodes lost the way to their API server: take the dependents to 0.
    ScaleDown,
    /// There is one candidate only, and its lease is not known to be valid (D-20).
    HoldSingleCandidate,
    /// The verdict depends on leases whose stamps cannot be believed yet (D-21), or whose silence
    /// may be the API server's (D-54).
    HoldUndecided,
    /// There are leases, and not a single Machine: they have moved away, or were deleted by force
    /// (D-55).
    HoldNoMachines,
}

/// Which of the dependents are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    All,
    /// Only those that carry the meltdown marker.
    HeldDown,
}

impl Verdict {
    /// All of them, as they are called.
    pub const WORDS: &[&str] = <Self as VariantNames>::VARIANTS;

    /// What to scale in which direction; none to hold.
    pub const fn aim(self) -> Option<(Direction, Scope)> {
        match self {
            Self::ScaleUp => Some((Direction::Up, Scope::All)),
            Self::ScaleUpHeldDown => Some((Direction::Up, Scope::HeldDown)),
            Self::ScaleDown => Some((Direction::Down, Scope::All)),
            Self::HoldSingleCandidate | Self::HoldUndecided | Self::HoldNoMachines => None,
        }
    }

    pub const fn is_up(self) -> bool {
        matches!(self, Self::ScaleUp | Self::ScaleUpHeldDown)
    }
}

/// Whether this many expired leases among the candidates mean an outage: float64 division and
/// comparison, exactly Go's.
pub fn fails(expired: usize, candidates: usize, fraction: f64) -> bool {
    expired as f64 / candidates as f64 >= fraction
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub candidates: usize,
    pub expired: usize,
    pub undecided: usize,
}

impl Tally {
    pub fn of(states: impl IntoIterator<Item = LeaseState>) -> Self {
        states
            .into_iter()
            .fold(Self::default(), |tally, state| Self {
                candidates: tally.candidates + 1,
                expired: tally.expired + usize::from(state == LeaseState::Expired),
                undecided: tally.undecided + usize::from(state == LeaseState::Undecided),
            })
    }

    /// What follows from the counts: up only if it is up with every undecided lease expired, down
    /// only if it is down with every undecided lease valid.
    pub fn verdict(self, fraction: f64) -> Verdict {
        match self.candidates {
            0 => Verdict::ScaleUp,
            1 if self.expired + self.undecided == 0 => Verdict::ScaleUpHeldDown,
            1 => Verdict::HoldSingleCandidate,
            n if fails(self.expired, n, fraction) => Verdict::ScaleDown,
            n if fails(self.expired + self.undecided, n, fraction) => Verdict::HoldUndecided,
            _ => Verdict::ScaleUp,
        }
    }
}

/// The names of the nodes that a Machine backs which is neither Failed nor Terminating, sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BackedNodes {
    nodes: Box<[Box<str>]>,
    /// How many Machines there are, those that back nothing included.
    pub count: usize,
}

/// Of each Machine the node that it backs; none if it backs none.
impl<'a> FromIterator<Option<&'a str>> for BackedNodes {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(machines: I) -> Self {
        let mut count = 0;
        let mut nodes: Vec<&str> = machines
            .into_iter()
            .inspect(|_| count += 1)
            .flatten()
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        Self {
            nodes: nodes.into_iter().map(Box::from).collect(),
            count,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Candidates<'a> {
    pub leases: Vec<(&'a str, &'a LeaseClock)>,
    pub excluded: BTreeMap<Exclusion, usize>,
}

impl<'a> Candidates<'a> {
    /// The leases that Machines allow: all that could be candidates, whatever the nodes say.
    pub(crate) fn by_machines(leases: &'a LeaseClocks, machines: &BackedNodes) -> Self {
        let mut candidates = Self::new(leases, leases.len());
        let mut backed = machines.nodes.iter().map(|node| &**node).peekable();
        for (name, clock) in leases.iter() {
            // Both are sorted, so that one walk along them finds what they share.
            while backed.next_if(|node| *node < name).is_some() {}
            if backed.peek() == Some(&name) {
                candidates.leases.push((name, clock));
            } else {
                candidates.exclude(Exclusion::NoUsableMachine, 1);
            }
        }
        candidates
    }

    /// The leases of the nodes that pass every filter (rules 44 to 46).
    pub(crate) fn by_nodes(
        leases: &'a LeaseClocks,
        machines: &BackedNodes,
        nodes: &[NodeRecord],
        conditions: &PoolConditions,
    ) -> Self {
        let mut candidates = Self::new(leases, nodes.len());
        let (mut next_lease, mut next_machine, mut with_node) = (0, 0, 0);
        for node in nodes {
            let lease = leases.position(&node.name, next_lease);
            let machine = position(&machines.nodes, |backed| backed, &node.name, next_machine);
            next_lease = lease.map_or(next_lease, |at| at + 1);
            next_machine = machine.map_or(next_machine, |at| at + 1);
            with_node += usize::from(lease.is_some());
            match (
                exclusion(&node.traits, machine.is_some(), conditions),
                lease,
            ) {
                (Some(reason), _) => candidates.exclude(reason, 1),
                (None, None) => candidates.exclude(Exclusion::NoLease, 1),
                (None, Some(at)) => candidates.leases.push(leases.entry(at)),
            }
        }
        candidates.exclude(Exclusion::NoNode, leases.len().saturating_sub(with_node));
        candidates
    }

    pub(crate) fn clocks(&self) -> impl Iterator<Item = &'a LeaseClock> + Clone {
        self.leases.iter().map(|(_, clock)| *clock)
    }

    /// The states of the leases, counted.
    pub(crate) fn tally(&self, by: Criteria) -> Tally {
        Tally::of(self.clocks().map(|clock| clock.state(by)))
    }

    /// Empty, with room for `count` leases.
    fn new(leases: &LeaseClocks, count: usize) -> Self {
        let mut candidates = Self {
            leases: Vec::with_capacity(count),
            excluded: BTreeMap::new(),
        };
        candidates.exclude(Exclusion::NoRenewTime, leases.without_renew_time);
        candidates
    }

    fn exclude(&mut self, reason: Exclusion, count: usize) {
        if count > 0 {
            *self.excluded.entry(reason).or_default() += count;
        }
    }
}

fn exclusion(node: &NodeTraits, is_backed: bool, conditions: &PoolConditions) -> Option<Exclusion> {
    if node.not_managed_by_mcm {
        return Some(Exclusion::NotManaged);
    }
    let listed = node.pool.as_ref().and_then(|pool| conditions.get(pool));
    let unhealthy = |kind: &str| match listed {
        Some(listed) => listed.iter().any(|condition| condition == kind),
        None => DEFAULT_UNHEALTHY_CONDITIONS.contains(&kind),
    };
    if node
        .conditions
        .iter()
        .any(|condition| condition.status == TRUE && unhealthy(&condition.kind))
    {
        return Some(Exclusion::UnhealthyCondition);
    }
    if !is_backed {
        return Some(Exclusion::NoUsableMachine);
    }
    let updated = |condition: &NodeCondition| {
        condition.kind == IN_PLACE_UPDATE
            && IN_PLACE_UPDATE_REASONS.contains(&condition.reason.as_str())
    };
    node.conditions
        .iter()
        .any(updated)
        .then_some(Exclusion::InPlaceUpdate)
}

/// Whether the nodes must be known: only then can they change what is done. `settled` says that
/// nothing is held down, marked or at 0, so that a scale-up would write nothing.
pub(crate) fn nodes_matter(allowed: Tally, settled: bool) -> bool {
    allowed.expired + allowed.undecided > 0 || !settled
}

#[cfg(test)]
mod tests;
