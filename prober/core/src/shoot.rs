//! One shoot, without I/O: inputs and the time go in, actions and the next moment come out.
//!
//! Level-triggered: at each input the next writes are computed again from the seed's objects, the
//! last complete probe and the time. No scaling begins, runs or ends.
//!
//! ```text
//! answers --> judge --> finding --> course: which direction, since when, until when order matters
//! objects --> view  --> plan: what would be written?  --> decide: what forbids it, its time, its evidence --> write | wait
//!                                                                    '--> the answer that it wants --> when to probe
//! ```

mod decide;
mod interface;
mod levels;
mod probing;
mod terms;
mod writing;

use std::sync::Arc;

#[cfg(test)]
pub(crate) use self::decide::SWITCHED_OFF;
pub use self::decide::{Reason, Waits};
pub use self::interface::{
    Action, Answer, Environment, Input, Order, Owner, ProbeFailure, Report, Start,
};
use self::probing::Probe;
use self::terms::Terms;
pub use super::dependent::DependentRecord;
use super::judgement::{CountedLease, Finding, Judge, Rules};
use super::moment::Moment;
use super::object_view::ObjectView;
use super::plan::Direction;
use super::replicas::{DependentState, scale_up};
use super::verdict::{Scope, Verdict};
use crate::config::{DependentId, ResourceRef};
use crate::span;

/// The state machine of one shoot.
///
/// Call [`Self::input`] for each answer to an action, for each change of the [`Environment`], and
/// with [`Input::Woken`] at the moment of [`Self::next`]. Carry out the actions that it returns in
/// their order. [`Self::next`] is valid until the next input.
#[derive(Clone, Debug)]
pub struct Shoot {
    start: Start,
    judge: Judge,
    evidence: Option<Evidence>,
    course: Option<Course>,
    /// First of the complete probes that all said "up", without a time between them in which the API
    /// server may have been away.
    up_since: Option<Moment>,
    /// End of the last complete probe before the newest marker was seen: for a restore, renewals
    /// must be seen later.
    marked_after: Moment,
    terms: Terms,
    /// In the order of the config.
    dependents: Vec<DependentRecord>,
    probe: Probe,
    next: Option<Moment>,
}

/// The last complete probe.
#[derive(Clone, Debug)]
struct Evidence {
    /// Its end.
    completed: Moment,
    finding: Arc<Finding>,
}

/// Direction of the last verdict that was no hold, and since when it is that one.
#[derive(Clone, Copy, Debug)]
struct Course {
    direction: Direction,
    since: Moment,
    /// Ordering deadline by the last probe that said so.
    deadline: Moment,
}

/// Direction in which dependents are to go, and which of them.
type Goal = (Direction, Scope);

/// One input, and what follows from it.
#[derive(Default)]
struct Output {
    now: Moment,
    actions: Vec<Action>,
    wake: Option<Moment>,
    /// The permit that came with it, until a write takes it.
    permit: Option<Direction>,
    /// Newest of the answers that writes wait for.
    wanted: Option<Moment>,
    /// True if one of them is to be newer than what others have changed.
    is_changed: bool,
    /// True while a scale-down is under way, which is probed closely.
    is_unfinished: bool,
}

impl Output {
    fn new(now: Moment) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }

    fn wake_at(&mut self, moment: Moment) {
        let is_next = self.wake.is_none_or(|wake| moment < wake);
        if moment > self.now && moment < Moment::NEVER && is_next {
            self.wake = Some(moment);
        }
    }

    fn report(&mut self, report: Report) {
        self.actions.push(Action::Report(report));
    }
}

impl Shoot {
    pub fn new(start: Start, env: &Environment, now: Moment) -> Self {
        let dependents = env.config.dependents.iter();
        let mut shoot = Self {
            start,
            judge: Judge::default(),
            evidence: None,
            course: None,
            up_since: None,
            marked_after: Moment::START,
            terms: Terms::of(env, false, now),
            dependents: dependents.map(DependentRecord::new).collect(),
            probe: Probe::new(start, env, now),
            next: None,
        };
        shoot.observe(env, &mut Output::new(now));
        shoot.next = Some(shoot.probe.due);
        shoot
    }

    pub fn input(&mut self, input: Input, env: &Environment, now: Moment) -> Vec<Action> {
        let mut out = Output::new(now);
        self.observe(env, &mut out);
        match input {
            Input::Woken => {}
            Input::Permitted(direction) => out.permit = Some(direction),
            Input::Probed(answer) => self.probed(answer, env, &mut out),
            Input::Failed(failure) => self.probe.failed(failure, now),
            Input::Decreed(verdict) => {
                self.probe.completed(env.chance, now);
                self.adopt(Finding::decreed(verdict, env.grace(), now), &mut out);
            }
            Input::Written(id, result) => self.answered(id, result, &mut out),
        }
        self.act(env, &mut out);
        self.probe_if_due(env, &mut out);
        self.next = out.wake;
        out.actions
    }

    /// Takes in what has changed around the shoot.
    fn observe(&mut self, env: &Environment, out: &mut Output) {
        if self.terms.observe(env, out.now) {
            self.probe.at_once = true;
        }
        for (at, state) in env.dependents.iter().enumerate() {
            let known = &mut self.dependents[at];
            let marked = known.show(ObjectView::observe, state.clone(), out.now);
            self.seen(DependentId(at), marked, out);
        }
    }

    /// Follows what a view or a read shows: a new marker, and a write that had no answer.
    fn seen(&mut self, id: DependentId, marked: bool, out: &mut Output) {
        if marked {
            self.marked_after = self.completed();
        }
        if let Some(sent) = self.dependents[id.0].landed() {
            self.made(id, sent, out);
        }
    }

    fn probed(&mut self, answer: Answer, env: &Environment, out: &mut Output) {
        let rules = self.rules(env);
        let leases = answer.leases.iter();
        self.judge.observe(answer.times, leases, rules.grace);
        let Some(machines) = &env.machines else {
            out.report(Report::MachinesUnknown);
            return self.probe.failed(ProbeFailure::Other, out.now);
        };
        self.judge.set_machines(Arc::clone(machines));
        if let Some(nodes) = answer.nodes {
            self.judge.set_nodes(nodes);
        }
        if self.judge.lacks_nodes(&rules, self.is_settled(env)) {
            return self.probe.lacks_nodes(out.now);
        }
        let finding = self.judge.judge(&rules);
        self.probe.completed(env.chance, out.now);
        self.adopt(finding, out);
    }

    /// Takes in the finding of a probe that is complete now.
    fn adopt(&mut self, finding: Finding, out: &mut Output) {
        let answering = finding.criteria.answering;
        let up_since = self.up_since.filter(|&since| answering <= since);
        let is_up = finding.verdict.is_up();
        self.up_since = is_up.then(|| up_since.unwrap_or(finding.judged_at));
        if let Some((direction, _)) = finding.verdict.aim() {
            let same = self.course.filter(|course| course.direction == direction);
            if same.is_none() {
                self.dependents
                    .iter_mut()
                    .for_each(DependentRecord::begin_course);
            }
            self.course = Some(Course {
                direction,
                since: same.map_or(out.now, |course| course.since),
                deadline: finding.ordering_deadline,
            });
        }
        self.evidence = Some(Evidence {
            completed: out.now,
            finding: Arc::new(finding),
        });
        out.report(Report::Found);
    }

    fn rules<'a>(&self, env: &'a Environment) -> Rules<'a> {
        let mut dependents = self.dependents.iter();
        let wants_proof = dependents.any(|known| known.view.wants_proof());
        Rules {
            grace: env.grace(),
            fraction: env.config.node_lease_failure_fraction,
            pool_conditions: &env.settings.pool_conditions,
            renewed_after: wants_proof.then_some(self.marked_after),
            down_since: self.down().map(|course| course.since),
            nodes_good_for: span(env.config.probe_interval),
        }
    }

    /// Returns what is to become of the dependents. A scale-down that is half done goes on until a
    /// probe contradicts; a restore only while the last probe was complete and says so.
    fn goal(&self) -> Option<Goal> {
        let (finding, course) = (self.finding()?, self.course?);
        let aim = finding.verdict.aim();
        match course.direction {
            Direction::Up => aim.filter(|_| self.probe.failures == 0),
            Direction::Down => {
                let goes_on = self.holds_down() && !finding.holds_for_proof;
                aim.or(goes_on.then_some((Direction::Down, Scope::All)))
            }
        }
    }

    /// The course, if it is one of an outage.
    fn down(&self) -> Option<Course> {
        self.course
            .filter(|course| course.direction == Direction::Down)
    }

    /// True if a scale-up would find nothing to do; false while that is unknown.
    fn is_settled(&self, env: &Environment) -> bool {
        let only_held_down = env.options.restore_only_held_down.value;
        self.dependents.iter().all(|known| match known.state() {
            DependentState::Present(observed) => {
                scale_up(observed, Scope::All, only_held_down).is_none()
            }
            DependentState::Absent | DependentState::Unscalable(_) => true,
            DependentState::Unknown => false,
        })
    }

    /// End of the last complete probe.
    fn completed(&self) -> Moment {
        let evidence = self.evidence.as_ref();
        evidence.map_or(Moment::START, |evidence| evidence.completed)
    }

    fn holds_down(&self) -> bool {
        self.dependents.iter().any(DependentRecord::is_held_down)
    }

    /// Returns when [`Input::Woken`] is wanted if nothing else happens before; `None` while a probe is
    /// under way and nothing else is due.
    pub fn next(&self) -> Option<Moment> {
        self.next
    }

    /// Verdict of the last probe; `None` if that was not complete, or there was none.
    pub fn verdict(&self) -> Option<Verdict> {
        let finding = self.finding().filter(|_| self.probe.failures == 0)?;
        Some(finding.verdict)
    }

    /// Finding of the last complete probe.
    pub fn finding(&self) -> Option<&Arc<Finding>> {
        self.evidence.as_ref().map(|evidence| &evidence.finding)
    }

    /// Leases that count by the nodes, in their order, as of [`Report::Found`]; empty while the
    /// nodes do not matter.
    pub fn counted_leases(&self) -> Vec<CountedLease<'_>> {
        self.finding().map_or_else(Vec::new, |finding| {
            let conditions = &self.terms.settings.pool_conditions;
            self.judge.counted_leases(finding.criteria, conditions)
        })
    }

    /// The dependents that are at 0 and carry the marker.
    pub fn held_down(&self) -> impl Iterator<Item = &ResourceRef> {
        self.dependents()
            .filter(|dependent| dependent.is_held_down() && !dependent.view.has_replicas())
            .map(|dependent| &dependent.resource)
    }

    pub fn dependents(&self) -> impl Iterator<Item = &DependentRecord> {
        self.dependents.iter()
    }

    /// Direction in which this replica still has something to do.
    pub fn scaling(&self) -> Option<Direction> {
        let (direction, _) = self.goal()?;
        let is_busy = |known: &DependentRecord| {
            let waits = known.waits.is_some_and(|waits| !waits.reason.forbids());
            waits || known.under_way().is_some()
        };
        let takes_part = self.terms.goes_first || self.stands_in();
        (takes_part && self.dependents.iter().any(is_busy)).then_some(direction)
    }

    /// Time of the next probe; while one is under way, of that one.
    pub fn next_probe(&self) -> Moment {
        self.probe.due
    }
}

#[cfg(test)]
mod tests;
