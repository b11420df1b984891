//! One dependent: the object as it is known, and what this replica has done about it since the
//! verdict turned.

use std::mem;
use std::time::Duration;

use chrono::TimeDelta;

use super::moment::Moment;
use super::object_view::ObjectView;
use super::plan::Direction;
use super::refusal::Refusal;
use super::replicas::{DependentState, PlannedWrite};
use crate::config::{Dependent, ResourceRef};
use crate::shoot::{Reason, Waits};

/// Time after which a protective request is retried on another connection: the connect timeout, and
/// half of the 10 s (one renewal interval) that lie at most between the verdict and the first node
/// being marked Unknown. Later attempts get more time in case the API server is merely slow. If the
/// write succeeded without a response, the next one conflicts, since it names an outdated version.
const PROTECTIVE_ANSWER: Duration = Duration::from_secs(5);
/// The shortest time between two writes of a standby, and of a leader where others keep undoing it,
/// so that nobody is fought once a second.
const AGAIN_AFTER: TimeDelta = TimeDelta::seconds(10);
/// The same for a leader at first.
const AGAIN_SOON: TimeDelta = TimeDelta::seconds(1);
/// A write that follows another one within this time was undone.
const UNDONE_WITHIN: TimeDelta = TimeDelta::minutes(1);
/// Writes that were undone in a row from which on others keep writing.
pub(crate) const UNDONE_OFTEN: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct DependentRecord {
    pub resource: ResourceRef,
    pub(crate) view: ObjectView,
    /// Time at which its level was opened in this course.
    pub(crate) open: Option<Moment>,
    /// Time of the first attempt since then.
    pub(crate) tried: Option<Moment>,
    /// True if it was said that later levels do not wait for it any more.
    pub(crate) left_behind: bool,
    /// True if a scale-down left it alone in this course: it was at 0, or not managed by the prober.
    pub(crate) was_left_alone: bool,
    /// The last write that is not known to be made: under way, or without an answer.
    pub(crate) sent: Option<Sent>,
    /// The last write of this replica in this course.
    pub(crate) written: Option<Moment>,
    /// Number of those in a row that followed another one within a minute.
    pub(crate) repeats: u32,
    /// Failed attempts in a row, and the end of the back-off after the last one.
    pub(crate) failures: u32,
    pub(crate) again_at: Moment,
    pub(crate) waits: Option<Waits>,
    /// Reason that was reported last.
    pub(crate) said: Option<Reason>,
    /// Write that a dry run would make.
    pub(crate) intended: Option<PlannedWrite>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub change: PlannedWrite,
    pub direction: Direction,
    /// Time at which it was due.
    pub due: Moment,
    /// False once it has failed without an answer, or was cancelled: it may have been made.
    pub is_under_way: bool,
}

impl DependentRecord {
    pub(crate) fn new(dependent: &Dependent) -> Self {
        Self {
            resource: dependent.resource.clone(),
            ..Self::default()
        }
    }

    /// Applies a state, by [`ObjectView::observe`] or [`ObjectView::read`]. Returns true if a marker
    /// newly appears. A change may have removed the cause of a failure.
    pub(crate) fn show(
        &mut self,
        apply: fn(&mut ObjectView, DependentState, Moment) -> bool,
        state: DependentState,
        now: Moment,
    ) -> bool {
        let before = (self.failures > 0).then(|| self.view.state().clone());
        let marked = apply(&mut self.view, state, now);
        if before.is_some_and(|before| !before.is_same(self.view.state())) {
            self.again_at = self.again_at.min(now);
        }
        marked
    }

    /// The verdict has turned: keeps the object and what is under way, and forgets all else.
    pub(crate) fn begin_course(&mut self) {
        *self = Self {
            resource: mem::take(&mut self.resource),
            view: mem::take(&mut self.view),
            sent: self.sent.take_if(|sent| sent.is_under_way),
            ..Self::default()
        };
    }

    /// Returns the write that had no answer, once it is seen to be made.
    pub(crate) fn landed(&mut self) -> Option<Sent> {
        let observed = self.view.observed()?;
        self.sent
            .take_if(|sent| !sent.is_under_way && sent.change.is_done(observed))
    }

    pub(crate) fn under_way(&self) -> Option<&Sent> {
        self.sent.as_ref().filter(|sent| sent.is_under_way)
    }

    /// Notes that it was written in this course.
    pub(crate) fn made(&mut self, now: Moment) {
        let is_repeated = self
            .written
            .is_some_and(|written| now - written < UNDONE_WITHIN);
        self.repeats = if is_repeated { self.repeats + 1 } else { 0 };
        self.written = Some(now);
    }

    /// Returns when it may be written again after the last write, if there was one.
    pub(crate) fn again_from(&self, leads: bool) -> Option<Moment> {
        let pause = match self.repeats {
            UNDONE_OFTEN.. => AGAIN_AFTER,
            _ if !leads => AGAIN_AFTER,
            0 => TimeDelta::zero(),
            _ => AGAIN_SOON,
        };
        Some(self.written? + pause)
    }

    /// Returns since when it is due, delays apart: its level is open, and it is as it is.
    pub(crate) fn due(&self) -> Moment {
        self.open.max(self.view.changed()).unwrap_or(Moment::START)
    }

    /// Time for a write.
    pub(crate) fn timeout(&self, direction: Direction, config: &Dependent) -> Duration {
        let timeout = direction.info(config).timeout;
        match direction {
            Direction::Down => timeout.min(PROTECTIVE_ANSWER * (self.failures + 1)),
            Direction::Up => timeout,
        }
    }

    /// Notes a failed attempt; `is_urgent` in the first seconds of an outage.
    pub(crate) fn failed(
        &mut self,
        direction: Direction,
        refusal: &Refusal,
        is_urgent: bool,
        now: Moment,
    ) {
        self.failures = self.failures.saturating_add(1);
        self.again_at = now + refusal.wait(direction, self.failures, is_urgent);
    }

    /// True if the last attempt failed.
    pub fn fails(&self) -> bool {
        self.failures > 0
    }

    /// Wait of the next write.
    pub fn waits(&self) -> Option<Waits> {
        self.waits
    }

    /// Write that a dry run would make.
    pub fn intended(&self) -> Option<&PlannedWrite> {
        self.intended.as_ref()
    }

    pub fn state(&self) -> &DependentState {
        self.view.state()
    }

    pub fn is_held_down(&self) -> bool {
        self.view.is_held_down()
    }

    /// True if it is at 0 since it was held down, and to be restored; also when the seed's view broke
    /// then. Where somebody removed its marker, `only_held_down` leaves it at 0.
    pub fn stays_held_down(&self, only_held_down: bool) -> bool {
        self.view.stays_held_down(only_held_down)
    }
}
