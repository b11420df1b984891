//! When the state machine probes.

use std::collections::VecDeque;

use chrono::TimeDelta;

use super::{Action, Context, Direction, Environment, ProbeFailure, Shoot};
use crate::moment::Moment;
use crate::schedule::{Failures, ScheduleInputs, next_probe, rest};
use crate::{scaled, span};

/// However short a grace a shoot asks for, doubt brings no probe sooner than this.
const SHORTEST_GAP: TimeDelta = TimeDelta::seconds(1);
/// The gap between probes for which a write waits.
const REQUESTED_GAP: TimeDelta = TimeDelta::seconds(1);
/// The same where others keep changing what is written, so that nobody is fought once a second.
const BRAKED_GAP: TimeDelta = TimeDelta::seconds(10);
const BRAKED_AFTER: usize = 3;
/// The gap between probes while a scale-down is under way, at first and later.
const PROTECTING_GAP: TimeDelta = TimeDelta::seconds(1);
const PROTECTING_LONG_GAP: TimeDelta = TimeDelta::milliseconds(2500);
const PROTECTING_CLOSELY: TimeDelta = TimeDelta::seconds(10);

/// Reason to probe sooner than by the schedule.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProbeReason {
    /// A write wants a probe that was sent since then.
    Requirement(Moment),
    /// Others have changed what is to be written.
    Changed,
    /// A scale-down is under way since then.
    Protecting(Moment),
    /// Settings or the lead have changed: by this moment.
    Terms(Moment),
}

/// The probe that is under way, and the time of the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeSchedule {
    phase: ProbePhase,
    next: Moment,
    changes: ChangeBrake,
    jitter: StartupJitter,
    /// In a row.
    failures: u32,
    /// Start of the last probe.
    began: Option<Moment>,
    /// End of the rest after a 429.
    throttled_until: Option<Moment>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProbePhase {
    #[default]
    Idle,
    Leases,
    Nodes,
}

impl ProbeSchedule {
    pub(super) fn new(chance: f64) -> Self {
        Self {
            jitter: StartupJitter::new(chance),
            ..Self::default()
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.phase == ProbePhase::Idle
    }

    pub(super) fn awaits_nodes(&self) -> bool {
        self.phase == ProbePhase::Nodes
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Time of the next probe; while one is under way, of that one. A 429 postpones it.
    pub(super) fn due(&self) -> Moment {
        let due = self.changes.due.map_or(self.next, |due| due.min(self.next));
        self.throttled_until.map_or(due, |until| until.max(due))
    }

    /// Sets the time of the next probe.
    pub(super) fn schedule(&mut self, next: Moment) {
        self.next = next;
    }

    /// Brings the next probe forward, unless one is under way. Returns true if others have changed
    /// what is to be written so often that they are given more time from now on.
    pub(super) fn request(&mut self, reason: ProbeReason, now: Moment) -> bool {
        if self.phase != ProbePhase::Idle {
            return false;
        }
        let gap = match reason {
            ProbeReason::Changed => return self.changes.request(now),
            ProbeReason::Terms(by) => {
                self.next = self.next.min(by);
                return false;
            }
            ProbeReason::Requirement(since) if self.began.is_none_or(|began| began < since) => {
                TimeDelta::zero()
            }
            // One that failed is repeated in its own time.
            ProbeReason::Requirement(_) | ProbeReason::Protecting(_) if self.failures > 0 => {
                return false;
            }
            ProbeReason::Requirement(_) => REQUESTED_GAP,
            ProbeReason::Protecting(_) if self.changes.are_many(now) => return false,
            ProbeReason::Protecting(since) if now < since + PROTECTING_CLOSELY => PROTECTING_GAP,
            ProbeReason::Protecting(_) => PROTECTING_LONG_GAP,
        };
        let from = self.began.map_or(now, |began| now.max(began + gap));
        self.next = self.next.min(from);
        false
    }

    /// Releases the brake: what others changed before the verdict turned is over.
    pub(super) fn turn(&mut self) {
        self.changes = ChangeBrake::default();
    }

    pub(super) fn begin(&mut self, now: Moment) {
        self.changes.probed(now);
        (self.phase, self.began) = (ProbePhase::Leases, Some(now));
    }

    pub(super) fn wants_nodes(&mut self) {
        self.phase = ProbePhase::Nodes;
    }

    pub(super) fn complete(&mut self) {
        self.phase = ProbePhase::Idle;
        (self.failures, self.throttled_until) = (0, None);
        self.jitter.probe_completed();
    }

    pub(super) fn fail(&mut self, failure: ProbeFailure, now: Moment) {
        self.phase = ProbePhase::Idle;
        self.failures = self.failures.saturating_add(1);
        self.throttled_until = match failure {
            ProbeFailure::Throttled(retry_after) => Some(now + rest(retry_after)),
            _ => None,
        };
    }
}

/// Probes that were requested because others changed what is to be written.
#[derive(Clone, Debug, Default)]
struct ChangeBrake {
    made: VecDeque<Moment>,
    due: Option<Moment>,
}

impl ChangeBrake {
    /// Requests a probe at once, or as soon as that may be. Returns true if it is the first that is
    /// braked.
    fn request(&mut self, now: Moment) -> bool {
        let many = self.are_many(now);
        let gap = if many { BRAKED_GAP } else { REQUESTED_GAP };
        let first = self.due.is_none();
        let last = self.made.back();
        self.due = Some(last.map_or(now, |&last| now.max(last + gap)));
        many && first
    }

    /// True if so many were made within a minute that others keep writing.
    fn are_many(&mut self, now: Moment) -> bool {
        self.made.retain(|&made| now - made < TimeDelta::minutes(1));
        self.made.len() >= BRAKED_AFTER
    }

    fn probed(&mut self, now: Moment) {
        if self.due.take().is_some() {
            self.made.push_back(now);
            if self.made.len() > BRAKED_AFTER {
                self.made.pop_front();
            }
        }
    }
}

/// Lets shoots that began together get out of step: each takes its next
/// probes a little early, by a share of its own, so that in the end they are spread over a whole
/// gap between probes. Later probes are as far apart as the lease clock wants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartupJitter {
    share: f64,
    probes: u32,
}

impl StartupJitter {
    /// The probes that are taken early, each by at most the inverse of it.
    const PROBES: u32 = 10;

    pub(super) fn new(chance: f64) -> Self {
        Self {
            share: chance / f64::from(Self::PROBES),
            // The second comes as soon as the leases' first stamps can be believed.
            probes: Self::PROBES + 1,
        }
    }

    fn probe_completed(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    fn share(self) -> f64 {
        if self.probes > 0 { self.share } else { 0.0 }
    }
}

impl Shoot {
    /// Returns the time of the first probe. They are spread, so that a restart does not hit all API
    /// servers at once.
    pub(super) fn first_probe(&self, env: &Environment<'_>, now: Moment) -> Moment {
        let start = self.watch.start;
        let latest = if start.in_operation {
            now + env.spread
        } else {
            start.eligible + span(self.config.initial_delay / 2)
        };
        if latest <= now {
            return now;
        }
        now + scaled(latest - now, env.chance)
    }

    /// Returns since when nodes must have been listed to be judged by once more; `None` when they
    /// are to be listed for each probe.
    pub(super) fn nodes_good_since(&self, cx: &Context<'_>) -> Option<Moment> {
        let recently = cx.now - span(self.config.probe_interval);
        let last_change = self.probes.changes.made.back().copied();
        (self.direction == Some(Direction::Down)).then(|| {
            self.terms_since(cx.env, cx.now)
                .max(recently)
                .max(last_change.unwrap_or(recently))
        })
    }

    /// Probes if it is time.
    pub(super) fn probe_if_due(&mut self, cx: &mut Context<'_>) {
        let is_idle = self.probes.phase == ProbePhase::Idle && !self.phase.has_stood_down();
        if !is_idle || self.probes.due() > cx.now {
            return;
        }
        self.probes.begin(cx.now);
        let may_fall = self
            .finding()
            .and_then(|finding| finding.verdict_possible)
            .is_some_and(|possible| possible <= cx.now);
        let with_nodes = may_fall && self.direction != Some(Direction::Down);
        cx.actions.push(Action::ListLeases { with_nodes });
    }

    /// Returns the time of the next probe by the schedule, after a complete one or a failure.
    pub(super) fn scheduled(&self, failures: Option<Failures>, cx: &Context<'_>) -> Moment {
        let finding = self.finding();
        let stretch = 1.0 + cx.env.chance * self.config.backoff_jitter_factor;
        let judged_at = finding.map_or(cx.now, |finding| finding.judged_at);
        let grace = finding.map_or_else(
            || cx.env.settings.grace(&self.config),
            |finding| finding.grace,
        );
        // A leader probes soon while anything is held down; so does a dry run.
        let recovers = (cx.env.leads || cx.env.dry_run) && self.holds_down();
        let mut interval = scaled(span(self.config.probe_interval), stretch);
        if failures.is_some() && (recovers || self.direction == Some(Direction::Down)) {
            interval = interval.min(grace.recovery_gap());
        }
        let mut gap = scaled(
            grace.longest_gap().max(SHORTEST_GAP),
            1.0 - self.probes.jitter.share(),
        );
        if recovers {
            gap = gap.min(grace.recovery_gap());
        }
        next_probe(&ScheduleInputs {
            now: cx.now,
            judged_at: if failures.is_some() {
                cx.now
            } else {
                judged_at
            },
            interval,
            verdict_possible: finding.and_then(|finding| finding.verdict_possible),
            doubt_from: finding.map(|_| judged_at + gap),
            failures,
            took: finding.map_or_else(TimeDelta::zero, |finding| {
                self.watch.facts.completed() - finding.judged_at
            }),
            stretch,
        })
    }
}
