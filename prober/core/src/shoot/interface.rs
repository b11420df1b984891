//! Inputs and outputs of the state machine.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::Waits;
use crate::config::{Config, DependentId};
use crate::lease::{Grace, LeaseList};
use crate::lifecycle::ShootSettings;
use crate::moment::{Moment, RequestTimes};
use crate::options::ResolvedOptions;
use crate::plan::{ByDirection, Direction};
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed, PlannedWrite};
use crate::verdict::{BackedNodes, NodeRecord, Verdict};

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
pub struct Environment {
    /// A reload is another `Arc`. Its list of dependents stays as it was at the start.
    pub config: Arc<Config>,
    pub settings: Arc<ShootSettings>,
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
    /// Shoots of the seed, over which is spread what all would do at once.
    pub shoots: i32,
    /// A random number from 0 to 1.
    pub chance: f64,
}

impl Environment {
    pub(super) fn grace(&self) -> Grace {
        self.settings.grace(&self.config)
    }

    /// True if this replica waits for no other: it leads, or only says what it would do.
    pub(super) fn goes_first(&self) -> bool {
        self.leads || self.dry_run
    }
}

/// Seed that the shoot belongs to, by its owner record. A shoot that belongs to another one is not
/// probed at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// This one, or nobody checks the record.
    #[default]
    Here,
    /// Not known for the moment: nothing is written.
    Unknown,
    /// Not known, which is tolerated: the leader protects, and nothing else is written.
    LeaderOnly,
}

/// Answer of a shoot's API server to a probe.
#[derive(Debug)]
pub struct Answer {
    pub times: RequestTimes,
    pub leases: LeaseList,
    /// `None` if they were not listed.
    pub nodes: Option<Vec<NodeRecord>>,
}

#[derive(Debug)]
pub enum Input {
    /// Time has passed, or the environment has changed.
    Woken,
    Probed(Answer),
    Failed(ProbeFailure),
    /// One write in this direction may be sent. If none is, the permit is given back.
    Permitted(Direction),
    /// In place of a probe's answer: the owner record says what is to be done.
    Decreed(Verdict),
    Written(DependentId, Result<Arc<Observed>, Refusal>),
}

/// Failure of a probe, as far as it matters for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeFailure {
    /// 429 with this Retry-After.
    Throttled(TimeDelta),
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// List the leases, and the nodes where they will be wanted; then [`Input::Probed`] or
    /// [`Input::Failed`].
    Probe { with_nodes: bool },
    /// Wait until a write in this direction may be sent; then [`Input::Permitted`]. Asked again while
    /// that is awaited, it changes nothing.
    AwaitPermit(Direction),
    /// Write a dependent with the permit of this input; then [`Input::Written`].
    Write(Order),
    /// Cancel the write of a dependent that is under way.
    Cancel(DependentId),
    /// Log it, count it, publish it.
    Report(Report),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    pub dependent: DependentId,
    pub direction: Direction,
    pub change: PlannedWrite,
    /// Time at which the probe was sent that it rests on.
    pub judged_at: Moment,
    pub limit: Duration,
    /// True if it may be sent only while this replica leads. Else, on the way down, the seed's API
    /// server must confirm first what is known of the shoot.
    pub needs_lead: bool,
}

/// Something to be logged, counted or published as an Event.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// A probe was complete: [`super::Shoot::finding`] and [`super::Shoot::counted_leases`] have
    /// changed.
    Found,
    MachinesUnknown,
    /// A dependent was written, or had been without an answer; `since_due` is how long ago it became
    /// due.
    Written {
        dependent: DependentId,
        direction: Direction,
        change: PlannedWrite,
        since_due: TimeDelta,
        /// True if this replica does not lead: the leader did not act.
        without_lead: bool,
    },
    NotScaled(DependentId, Direction, Refusal),
    /// A write waits for something else than a probe or a permit, for the first time in a course.
    Waits(DependentId, Direction, Waits),
    /// A dependent that was restored is not ready in time; the next level does not wait any more.
    NotReady(DependentId),
    /// A dependent could not be scaled within its timeout; the restore goes on without it.
    LeftBehind(DependentId),
    KeepsChanging(DependentId),
    /// A dry run would write a dependent: replicas before and after.
    WouldWrite(DependentId, Direction, i32, i32),
}
