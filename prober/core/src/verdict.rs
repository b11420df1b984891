//! Candidates and verdict: the leases that count, and the conclusion from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use super::lease::{Criteria, LeaseClock, LeaseClocks, LeaseState};
use super::plan::Direction;
use super::sorted::position;

/// Annotation of nodes that machine-controller-manager does not manage, whatever its value. Such
/// nodes do not count.
const NOT_MANAGED_BY_MCM: &str = "node.machine.sapcloud.io/not-managed-by-mcm";
const POOL_LABEL: &str = "worker.gardener.cloud/pool";
/// Conditions that make a node unhealthy if its pool configures none: Gardener's default list.
const DEFAULT_UNHEALTHY_CONDITIONS: [&str; 4] = [
    "KernelDeadlock",
    "ReadonlyFilesystem",
    "DiskPressure",
    "NetworkUnavailable",
];
const TRUE: &str = "True";
/// Condition type of an in-place update, and the reasons for which the node does not count.
const IN_PLACE_UPDATE: &str = "InPlaceUpdate";
const IN_PLACE_UPDATE_REASONS: [&str; 2] = ["ReadyForUpdate", "UpdateFailed"];

/// Limits per node. Real nodes have about twenty conditions, of which usually only Ready is True.
/// Kubernetes limits a condition's type and reason to 316 and 1,024 bytes; a longer text counts as
/// empty.
const MAX_CONDITIONS: usize = 64;
const MAX_CONDITION_TEXT: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    pub name: Arc<str>,
    /// Shared by nodes with equal traits, which is most nodes of a large shoot.
    pub traits: Arc<NodeTraits>,
}

impl NodeRecord {
    pub fn new(name: &str, traits: NodeTraits) -> Self {
        Self {
            name: name.into(),
            traits: Arc::new(traits),
        }
    }
}

/// Relevant properties of a node except its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeTraits {
    pub pool: Option<String>,
    pub not_managed_by_mcm: bool,
    /// Relevant entries of `status.conditions`: those that are True, and the in-place update.
    /// Bounded.
    pub conditions: Vec<NodeCondition>,
}

impl NodeTraits {
    pub fn note_label(&mut self, key: &str, value: &str) {
        if key == POOL_LABEL {
            self.pool = Some(value.to_owned());
        }
    }

    pub fn note_annotation(&mut self, key: &str) {
        self.not_managed_by_mcm |= key == NOT_MANAGED_BY_MCM;
    }

    /// Keeps a condition if it is relevant. Most conditions of a node are False.
    pub fn note_condition(&mut self, condition: NodeCondition<&str>) {
        let NodeCondition {
            kind,
            status,
            reason,
        } = condition;
        let matters = status == TRUE || kind == IN_PLACE_UPDATE;
        if matters && self.conditions.len() < MAX_CONDITIONS {
            let short = |text: &str| match text.len() {
                ..=MAX_CONDITION_TEXT => text.to_owned(),
                _ => String::new(),
            };
            let [kind, status, reason] = [kind, status, reason].map(short);
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

/// Condition types that make a node unhealthy when True, by worker pool. Pools without an entry use
/// the default.
pub type PoolConditions = BTreeMap<String, Vec<String>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Exclusion {
    /// No Machine backs the node, or only ones that are Failed or Terminating.
    NoUsableMachine,
    NotManaged,
    UnhealthyCondition,
    InPlaceUpdate,
    NoNode,
    /// The node has no lease, or one without `renewTime`.
    NoLease,
    /// The lease has no `renewTime`.
    NoRenewTime,
}

/// Conclusion from the leases that count. A hold changes nothing in either direction.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantNames, Serialize, Deserialize,
)]
#[strum(serialize_all = "snake_case", const_into_str)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    ScaleUp,
    /// Scale up only the dependents that carry the meltdown marker: one node proves too little for
    /// the others.
    ScaleUpHeldDown,
    /// The nodes cannot reach their API server: scale the dependents to 0.
    ScaleDown,
    /// There is only one candidate, and its lease is not known to be valid. A single node may
    /// simply be broken.
    HoldSingleCandidate,
    /// The verdict depends on leases whose renew times cannot be trusted yet, or that the API
    /// server itself may have kept from being renewed.
    HoldUndecided,
    /// There are leases but no Machines: the Machines were migrated or force-deleted.
    HoldNoMachines,
}

/// Selects the dependents that are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    All,
    /// Only those that carry the meltdown marker.
    HeldDown,
}

impl Verdict {
    /// Label values of all verdicts.
    pub const WORDS: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Direction and scope of the scaling, or `None` for a hold.
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

/// True if the share of expired leases means an outage. Uses float64 division and comparison like
/// the Go original.
pub fn fails(expired: usize, candidates: usize, fraction: f64) -> bool {
    expired as f64 / candidates as f64 >= fraction
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Verdict for these counts: up only if it holds with every undecided lease expired, down only
    /// if it holds with every undecided lease valid.
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

/// Sorted names of the nodes that are backed by a Machine that is neither Failed nor Terminating.
/// They are kept once for a node, with its Machine: what else is kept of the node shares them from the
/// next change of the Machines on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BackedNodes {
    nodes: Box<[Arc<str>]>,
    /// Number of Machines, including those that back no node.
    pub count: usize,
}

/// Collects the node that each Machine backs, if any.
impl<N: Into<Arc<str>>> FromIterator<Option<N>> for BackedNodes {
    fn from_iter<I: IntoIterator<Item = Option<N>>>(machines: I) -> Self {
        let mut count = 0;
        let machines = machines.into_iter().inspect(|_| count += 1);
        let mut nodes: Vec<Arc<str>> = machines.flatten().map(Into::into).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Self {
            nodes: nodes.into(),
            count,
        }
    }
}

impl BackedNodes {
    /// The name of a backed node, to be shared.
    pub(crate) fn name(&self, node: &str) -> Option<&Arc<str>> {
        let at = position(&self.nodes, |backed| backed, node, 0)?;
        Some(&self.nodes[at])
    }
}

#[derive(Debug, Default)]
pub(crate) struct Candidates<'a> {
    pub leases: Vec<(&'a str, &'a LeaseClock)>,
    pub excluded: BTreeMap<Exclusion, usize>,
}

impl<'a> Candidates<'a> {
    /// Leases that Machines allow: every possible candidate, regardless of the nodes.
    pub(crate) fn by_machines(leases: &'a LeaseClocks, machines: &BackedNodes) -> Self {
        let mut candidates = Self::new(leases, leases.len());
        let mut backed = machines.nodes.iter().map(|node| &**node).peekable();
        for (name, clock) in leases.iter() {
            // Both are sorted, so one pass finds the common names.
            while backed.next_if(|node| *node < name).is_some() {}
            if backed.peek() == Some(&name) {
                candidates.leases.push((name, clock));
            } else {
                candidates.exclude(Exclusion::NoUsableMachine, 1);
            }
        }
        candidates
    }

    /// Leases of the nodes that pass every filter.
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

    pub(crate) fn tally(&self, by: Criteria) -> Tally {
        Tally::of(self.clocks().map(|clock| clock.state(by)))
    }

    /// Creates an empty set with room for `count` leases.
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

/// True if the nodes must be fetched because they can change the outcome. `settled` means that
/// nothing is held down, marked or at 0, so a scale-up would write nothing.
pub(crate) fn nodes_matter(allowed: Tally, settled: bool) -> bool {
    allowed.expired + allowed.undecided > 0 || !settled
}

#[cfg(test)]
mod tests;
