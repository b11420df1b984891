//! Times of probes: just when the verdict could fall, when a write wants an answer, and otherwise as
//! rarely as configured.

use std::time::Duration;

use chrono::TimeDelta;
use common_core::backoff::doubling;

use super::writing::URGENT;
use super::{Action, DependentRecord, Direction, Environment, Output, ProbeFailure, Shoot, Start};
use crate::dependent::UNDONE_OFTEN;
use crate::moment::Moment;
use crate::{scaled, span};

/// Time per shoot over which first probes are spread.
const SPREAD: TimeDelta = TimeDelta::milliseconds(10);
/// However short a grace a shoot asks for, doubt brings no probe sooner than this.
const SHORTEST_GAP: TimeDelta = TimeDelta::seconds(1);
/// The gap between probes for which a write waits, after one, and while a scale-down is under way, at
/// first.
const CLOSE_GAP: TimeDelta = TimeDelta::seconds(1);
/// The gap while a scale-down is under way, later.
const LONG_GAP: TimeDelta = TimeDelta::milliseconds(2500);
/// The wait after the first failed probe; it doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest rest after a 429.
const LONGEST_REST: TimeDelta = TimeDelta::seconds(60);
/// The complete probes that are followed by one that is taken early, by at most the inverse of it.
/// The first one is not: the second comes as soon as the leases' first stamps can be believed.
const EARLY_PROBES: u32 = 11;
const EARLIEST: f64 = 0.1;

/// The last probe, and the time of the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Probe {
    is_under_way: bool,
    /// Start and end of the last one; at first none has begun.
    began: Option<Moment>,
    ended: Moment,
    /// Start of the last one that a change by others has brought forward.
    changed_at: Option<Moment>,
    /// Failures in a row.
    pub failures: u32,
    /// End of the rest after a 429.
    throttled_until: Moment,
    /// Set when one is to follow at once.
    pub at_once: bool,
    /// Set when nodes matter, as far as is known.
    wants_nodes: bool,
    /// Complete ones.
    count: u32,
    /// Random numbers from 0 to 1: of this shoot, and of the last probe.
    share: f64,
    chance: f64,
    /// Time of the next one; while one is under way, of that one.
    pub due: Moment,
}

impl Probe {
    /// First probes are spread, so that neither a restart nor a reload hits all API servers at
    /// once.
    pub(super) fn new(start: Start, env: &Environment, now: Moment) -> Self {
        let spread = SPREAD * env.shoots;
        let wait = if start.in_operation {
            spread
        } else {
            let half = span(env.config.initial_delay / 2);
            // After a reload it may be over.
            (start.eligible + half - now).max(half.min(spread))
        };
        Self {
            ended: now,
            share: env.chance,
            chance: env.chance,
            due: now + scaled(wait, env.chance),
            ..Self::default()
        }
    }

    pub(super) fn completed(&mut self, chance: f64, now: Moment) {
        (self.is_under_way, self.ended, self.at_once) = (false, now, false);
        (self.failures, self.throttled_until) = (0, Moment::START);
        self.count = self.count.saturating_add(1);
        self.chance = chance;
    }

    /// Only the nodes can tell: they are listed with the next one, at once.
    pub(super) fn lacks_nodes(&mut self, now: Moment) {
        (self.is_under_way, self.ended) = (false, now);
        (self.at_once, self.wants_nodes) = (true, true);
    }

    pub(super) fn failed(&mut self, failure: ProbeFailure, now: Moment) {
        (self.is_under_way, self.ended, self.at_once) = (false, now, false);
        self.failures = self.failures.saturating_add(1);
        self.throttled_until = match failure {
            ProbeFailure::Throttled(after) => now + after.min(LONGEST_REST),
            ProbeFailure::Other => Moment::START,
        };
    }

    fn begin(&mut self, is_changed: bool, now: Moment) {
        (self.is_under_way, self.began) = (true, Some(now));
        (self.at_once, self.wants_nodes) = (false, false);
        if is_changed {
            self.changed_at = Some(now);
        }
    }

    /// The share of a gap by which the next one is early: shoots that began together get out of step,
    /// until they are spread over a whole gap. Later ones are as far apart as the lease clock wants.
    fn early(&self) -> f64 {
        if self.count <= EARLY_PROBES {
            self.share * EARLIEST
        } else {
            0.0
        }
    }
}

impl Shoot {
    pub(super) fn probe_if_due(&mut self, env: &Environment, out: &mut Output) {
        if self.probe.is_under_way {
            return;
        }
        self.probe.due = self.probe_due(env, out);
        if self.probe.due > out.now {
            return out.wake_at(self.probe.due);
        }
        let finding = self.finding();
        let possible = finding.and_then(|finding| finding.verdict_possible);
        let may_fall = possible.is_some_and(|possible| possible <= out.now);
        let matter = finding.is_some_and(|finding| finding.nodes_known);
        let wants_nodes = may_fall || matter || self.probe.wants_nodes || !self.is_settled(env);
        self.probe.begin(out.is_changed, out.now);
        out.actions.push(Action::Probe {
            with_nodes: wants_nodes && !self.judge.knows_nodes(out.now),
        });
    }

    /// Returns when to probe next, by what is known now: nothing is scheduled, and nothing brought
    /// forward.
    fn probe_due(&self, env: &Environment, out: &Output) -> Moment {
        let (probe, now) = (&self.probe, out.now);
        let Some(began) = probe.began else {
            return probe.due.max(probe.throttled_until);
        };
        let mut due = self.regular(env);
        if let Some(course) = self.down()
            && probe.failures == 0
        {
            let is_written = |known: &DependentRecord| {
                let is_new = |written| now < written + CLOSE_GAP;
                known.repeats < UNDONE_OFTEN && known.written.is_some_and(is_new)
            };
            if self.dependents.iter().any(is_written)
                || out.is_unfinished && now < course.since + URGENT
            {
                due = due.min(began + CLOSE_GAP);
            } else if out.is_unfinished {
                due = due.min(began + LONG_GAP);
            }
        }
        due = match out.wanted {
            _ if probe.at_once => due.min(now),
            // Others may change it again and again.
            Some(wanted) if began < wanted => {
                let last = probe.changed_at.filter(|_| out.is_changed);
                due.min(last.map_or(now, |last| now.max(last + CLOSE_GAP)))
            }
            // One that failed is repeated in its own time.
            Some(_) if probe.failures == 0 => due.min(began + CLOSE_GAP),
            _ => due,
        };
        due.max(probe.throttled_until)
    }

    /// Returns when to probe whatever is to be written: just when the verdict can fall, and before a
    /// renewal would be doubted; else as configured. A moment that has been judged schedules no other
    /// probe.
    fn regular(&self, env: &Environment) -> Moment {
        let (probe, finding) = (&self.probe, self.finding());
        let grace = finding.map_or_else(|| env.grace(), |finding| finding.grace);
        let stretch = 1.0 + probe.chance * env.config.backoff_jitter_factor;
        let fails = probe.failures > 0;
        // A leader probes soon while anything is held down.
        let recovers = env.goes_first() && self.holds_down();
        let mut interval = scaled(span(env.config.probe_interval), stretch);
        let mut gap = scaled(grace.longest_gap().max(SHORTEST_GAP), 1.0 - probe.early());
        if recovers {
            gap = gap.min(grace.recovery_gap());
        }
        if fails && (recovers || self.down().is_some()) {
            interval = interval.min(grace.recovery_gap());
        }
        let mut due = probe.ended + interval;
        let possible = finding.and_then(|finding| finding.verdict_possible);
        // Also while no probe was ever complete.
        let is_near = finding.is_none() || possible.is_some_and(|possible| possible <= due);
        if fails && is_near {
            let wait = doubling(FIRST_RETRY, probe.failures, Duration::MAX);
            due = due.min(probe.ended + scaled(span(wait), stretch));
        }
        let Some(finding) = finding else { return due };
        let judged_at = if fails {
            probe.ended
        } else {
            finding.judged_at
        };
        let moments = possible.into_iter().chain([finding.judged_at + gap]);
        due = moments
            .filter(|&moment| moment > judged_at)
            .fold(due, Moment::min)
            .max(probe.ended);
        // A probe that would still be under way when the verdict can fall begins then.
        let ends = due + (self.completed() - finding.judged_at);
        possible
            .filter(|&possible| due < possible && possible < ends)
            .unwrap_or(due)
    }
}

impl Start {
    /// Returns from when on a shoot is written: at once for the protection of one in operation.
    pub(super) fn writes_from(self, direction: Direction, env: &Environment) -> Moment {
        if self.in_operation && direction == Direction::Down {
            self.eligible
        } else {
            self.eligible + span(env.config.initial_delay)
        }
    }
}
