//! Inputs and outputs of the state machine.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::Requirement;
use crate::config::{Config, DependentId};
use crate::lease::LeaseList;
use crate::lifecycle::ShootSettings;
use crate::moment::{Moment, RequestTimes};
use crate::options::ResolvedOptions;
use crate::plan::{ByDirection, Direction};
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed, PlannedWrite};
use crate::verdict::{BackedNodes, NodeRecord};

#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Time at which this process first saw that it may be probed.
    pub eligible: Moment,
    /// True if the last operation on it is over for longer than initialDelay.
    pub in_operation: bool,
}

/// All that a decision depends on besides the probes and the answers. Whoever drives the machine
/// reads it again for each input; the machine notices itself what has changed since the last one.
#[derive(Clone, Debug)]
pub struct Environment<'a> {
    /// A reload is another `Arc`.
    pub config: &'a Arc<Config>,
    pub settings: &'a ShootSettings,
    /// Settings that annotations overrule.
    pub options: ResolvedOptions,
    pub leads: bool,
    /// True if nothing is written, and reported instead.
    pub dry_run: bool,
    /// Start of the time in which the seed's Clusters are seen and this process was not suspended;
    /// for a restore they were also read again since this replica leads. `None` while that is not so.
    pub seed_since: ByDirection<Option<Moment>>,
    /// Time at which the leader counts as gone unless it renews its Lease before; `None` if no
    /// leader is known.
    pub leader_silent_from: Option<Moment>,
    pub is_ours: bool,
    pub owner: Owner,
    /// True if operators want nothing written; `None` if that is not known.
    pub paused: Option<bool>,
    /// Each dependent of the config, in its order, as the seed's view shows it.
    pub dependents: Vec<DependentState>,
    /// Nodes that Machines back; `None` if the Machines are not known.
    pub machines: Option<Arc<BackedNodes>>,
    /// Time over which probes are spread that all shoots would take at once.
    pub spread: TimeDelta,
    /// A random number from 0 to 1.
    pub chance: f64,
}

/// Seed that the shoot belongs to, by its owner record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// This one, or nobody checks the record.
    #[default]
    Here,
    /// Not known for the moment: nothing is written.
    Unknown,
    /// Not known, which is tolerated: the leader protects, and nothing else is written.
    LeaderOnly,
    /// Another one, or not known for longer than is tolerated: the shoot is neither probed nor, by
    /// the verdict, written.
    Elsewhere {
        /// Time at which the check was sent that tells the leader to take all dependents to 0;
        /// `None` if nothing is to be written at all.
        passivates_since: Option<Moment>,
    },
}

impl Owner {
    pub(crate) const fn is_elsewhere(self) -> bool {
        matches!(self, Self::Elsewhere { .. })
    }
}

#[derive(Debug)]
pub enum Input {
    /// Time has passed, or the environment has changed.
    Woken,
    /// A probe has listed the leases.
    Leases(RequestTimes, LeaseList),
    Nodes(Vec<NodeRecord>),
    /// A person says that the nodes are well: nothing is probed, and what is held down may come
    /// back whatever the leases say.
    NodesConfirmed,
    Failed(ProbeFailure),
    /// The Cluster, the namespace and the Machines were read from the API server; `None` if one
    /// could not be.
    Verified(Option<Verified>),
    Permitted(DependentId),
    Read(DependentId, Result<DependentState, Refusal>),
    Written(DependentId, Result<Arc<Observed>, Refusal>),
}

/// Failure of a probe, as far as it matters for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeFailure {
    /// 429, and its Retry-After.
    Throttled(Option<TimeDelta>),
    Other,
}

#[derive(Clone, Debug)]
pub struct Verified {
    pub is_ours: bool,
    pub is_paused: bool,
    pub standby_protects: bool,
    pub machines: Arc<BackedNodes>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Begin a probe: list the leases; then [`Input::Leases`] or [`Input::Failed`]. Where the
    /// verdict may fall by them the nodes will be wanted next, and are best listed beside them.
    ListLeases { with_nodes: bool },
    /// List the nodes for the same probe, unless that is done already; then [`Input::Nodes`] or
    /// [`Input::Failed`].
    ListNodes,
    /// Read the Cluster, the namespace and the Machines; then [`Input::Verified`].
    Verify,
    /// Wait for the permit to write a dependent; then [`Input::Permitted`].
    AcquirePermit(DependentId, Direction),
    /// Read a dependent within this time; then [`Input::Read`].
    Read(DependentId, Duration),
    /// Write a dependent with the permit that is there; then [`Input::Written`].
    Write(Order),
    /// Cancel whatever is under way for a dependent, its permit included.
    Cancel(DependentId),
    /// Log it, count it, publish it.
    Report(Report),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub dependent: DependentId,
    pub change: PlannedWrite,
    /// Time at which the probe was sent that it rests on.
    pub judged_at: Moment,
    pub limit: Duration,
    /// True if it may be sent only while this replica leads.
    pub needs_lead: bool,
}

/// Something to be logged, counted or published as an Event.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// A probe was complete: [`super::Shoot::finding`] and [`super::Shoot::counted_leases`] have
    /// changed.
    Found,
    MachinesUnknown,
    Begun(Direction),
    /// A scaling is given up: the verdict has turned, operators want nothing written, or the probe
    /// is not wanted any more.
    Abandoned(Direction),
    /// A scaling has ended: how many dependents were written, and how many could not be.
    Ended(Direction, usize, usize),
    /// A dependent was written, or had been without an answer; `turn` is how long ago it was its
    /// turn.
    Written {
        dependent: DependentId,
        direction: Direction,
        change: PlannedWrite,
        /// Duration of the write; `None` if its answer was lost.
        took: Option<TimeDelta>,
        turn: TimeDelta,
        /// True if this replica does not lead: the leader did not act.
        without_lead: bool,
    },
    NotScaled(DependentId, Direction, Refusal),
    /// A write waits for something else than a probe, for the first time in a scaling.
    Waits(DependentId, Direction, Waits),
    /// A dependent that was restored is not ready in time; the next level does not wait any more.
    NotReady(DependentId),
    /// A dependent could not be scaled within its timeout; the restore goes on without it.
    LeftBehind(DependentId),
    KeepsChanging(DependentId),
    /// The owner record does not allow what would be written.
    NotOwner(Direction),
    /// A dry run would write a dependent: replicas before and after.
    WouldWrite(DependentId, Direction, i32, i32),
}

/// A write that a dry run would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intended {
    pub kind: String,
    pub name: String,
    pub before: i32,
    /// Its replicas then; the same when only annotations would be removed.
    pub after: i32,
}

/// A wait of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waits {
    pub requirement: Requirement,
    /// The end of the wait, where it ends by itself.
    pub until: Option<Moment>,
}

/// Reason for which the state machine wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// A probe is due.
    Probe,
    /// A requirement of a write is met.
    Requirement(Requirement),
    /// A step is due, or a level opens.
    Step,
    /// A dependent that could not be scaled is tried again.
    Retry,
}
