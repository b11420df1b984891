//! When the machine probes.

use std::collections::VecDeque;

use chrono::TimeDelta;

use super::{Action, Context, Direction, Environment, ProbeFailure, Report, Shoot, Start};
use crate::moment::Moment;
use crate::schedule::{Failures, ScheduleInputs, next_probe, rest};
use crate::{scaled, span};

/// However short a grace a shoot asks for, doubt brings no probe sooner than this.
const SHORTEST_GAP: TimeDelta = TimeDelta::seconds(1);
/// Probes that are requested at once, because what others wrote is newer than the last one, are so
/// far apart; from the fourth in a minute on further (D-52).
const REPROBE_GAP: TimeDelta = TimeDelta::seconds(1);
const LONG_REPROBE_GAP: TimeDelta = TimeDelta::seconds(10);
const REPROBES_PER_MINUTE: usize = 3;

/// The probe that is under way, and when the next one is due.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeState {
    pub phase: ProbePhase,
    pub next: Moment,
    pub requests: ReprobeRequests,
    pub jitter: StartupJitter,
    /// In a row.
    pub failures: u32,
    /// When the last probe began, and when the last complete one was over.
    pub began: Moment,
    pub completed: Moment,
    /// Until when the API server asked us to stay away (429); none after a complete probe.
    pub throttled_until: Option<Moment>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum ProbePhase {
    #[default]
    Idle,
    Leases,
    Nodes,
}

impl ProbeState {
    pub(super) fn new(chance: f64) -> Self {
        Self {
            jitter: StartupJitter::new(chance),
            ..Self::default()
        }
    }

    /// When the next probe is due; while one is under way, when that was. An API server that asks
    /// to be left alone is.
    pub(super) fn due(&self) -> Moment {
        let due = self.requests.due.unwrap_or(self.next).min(self.next);
        self.throttled_until.map_or(due, |until| until.max(due))
    }

    pub(super) fn no_later_than(&mut self, moment: Moment) {
        self.next = self.next.min(moment);
    }

    /// Lets the next probe begin at once if none has since then, and otherwise no later than the
    /// gap after the last one; one that failed is repeated in its own time.
    pub(super) fn soon(&mut self, since: Moment, now: Moment) {
        let began = self.began >= since;
        if began && self.failures > 0 {
            return;
        }
        let from = if began { self.began + REPROBE_GAP } else { now };
        self.no_later_than(from.max(now));
    }

    /// Lets probes follow each other closely while and after something is scaled down, unless
    /// others keep writing.
    pub(super) fn again_soon(&mut self, now: Moment) {
        if !self.requests.are_many(now) {
            self.soon(Moment::START, now);
        }
    }

    fn begin(&mut self, now: Moment) {
        self.requests.probed(now);
        (self.phase, self.began) = (ProbePhase::Leases, now);
    }

    pub(super) fn complete(&mut self, now: Moment) {
        self.phase = ProbePhase::Idle;
        (self.failures, self.throttled_until, self.completed) = (0, None, now);
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

/// Probes that are requested besides those of the schedule.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct ReprobeRequests {
    made: VecDeque<Moment>,
    due: Option<Moment>,
}

impl ReprobeRequests {
    /// Requests a probe at once, or as soon as that may be. True if so many were requested that
    /// others keep writing.
    fn request(&mut self, now: Moment) -> bool {
        let many = self.are_many(now);
        let gap = if many { LONG_REPROBE_GAP } else { REPROBE_GAP };
        let first = self.due.is_none();
        self.due = Some(self.last().map_or(now, |last| now.max(last + gap)));
        many && first
    }

    /// Whether so many were made within a minute that others keep writing.
    fn are_many(&mut self, now: Moment) -> bool {
        self.made.retain(|&made| now - made < TimeDelta::minutes(1));
        self.made.len() >= REPROBES_PER_MINUTE
    }

    fn probed(&mut self, now: Moment) {
        if self.due.take().is_some() {
            self.made.push_back(now);
            if self.made.len() > REPROBES_PER_MINUTE {
                self.made.pop_front();
            }
        }
    }

    fn last(&self) -> Option<Moment> {
        self.made.back().copied()
    }
}

/// Lets shoots that began together, or were reloaded together, get out of step: each takes its next
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
            probes: Self::PROBES,
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
    /// First probes are spread, so that a restart does not hit all API servers at once; shoots that
    /// are held down go first (D-51).
    pub(super) fn first_probe(&self, env: &Environment<'_>, now: Moment) -> Moment {
        let Start {
            eligible,
            in_operation,
        } = self.start;
        let latest = if in_operation {
            now + env.spread
        } else {
            eligible + span(self.config.initial_delay / 2)
        };
        if latest <= now || self.holds_down() {
            return now;
        }
        now + scaled(latest - now, env.chance)
    }

    /// Since when nodes that were listed may still be judged by (D-53); none when they are to be
    /// listed for each probe.
    pub(super) fn nodes_good_since(&self, cx: &Context<'_>) -> Option<Moment> {
        self.verdicts.is_down().then(|| {
            let changes = [
                self.probing.requests.last(),
                self.permission.since.down,
                cx.env.seed_since.down,
                self.writes_from(Direction::Down, cx.env)
                    .filter(|&from| from <= cx.now),
            ];
            changes
                .into_iter()
                .flatten()
                .chain([self.permission.unchanged_since])
                .fold(cx.now - span(self.config.probe_interval), Moment::max)
        })
    }

    /// Probes if it is time.
    pub(super) fn probe_if_due(&mut self, cx: &mut Context<'_>) {
        if self.probing.phase != ProbePhase::Idle || self.owner.stood_down {
            return;
        }
        if cx.reprobe_requested
            && self.probing.requests.request(cx.now)
            && let Some(dependent) = cx.changed
        {
            cx.report(Report::KeepsChanging(dependent));
        }
        if self.probing.due() > cx.now {
            return;
        }
        self.probing.begin(cx.now);
        let may_fall = self
            .finding()
            .and_then(|finding| finding.verdict_possible)
            .is_some_and(|possible| possible <= cx.now);
        let with_nodes = may_fall && !self.verdicts.is_down();
        cx.actions.push(Action::ListLeases { with_nodes });
    }

    /// When to probe next, after a complete probe or a failure.
    pub(super) fn scheduled(&self, failures: Option<Failures>, cx: &Context<'_>) -> Moment {
        let finding = self.finding();
        let stretch = 1.0 + cx.env.chance * self.config.backoff_jitter_factor;
        let judged_at = finding.map_or(cx.now, |finding| finding.judged_at);
        let grace = finding.map_or_else(
            || cx.env.settings.grace(&self.config),
            |finding| finding.grace,
        );
        // Who leads, or would if the leader is gone, probes soon while anything is held down
        // (D-53); so does a dry run.
        let leads = cx.env.leads
            || cx.env.dry_run
            || cx.env.leader_silent_from.is_some_and(|from| from <= cx.now);
        let recovers = leads && self.holds_down();
        let mut interval = scaled(span(self.config.probe_interval), stretch);
        if failures.is_some() && (recovers || self.verdicts.is_down()) {
            interval = interval.min(grace.recovery_gap());
        }
        let mut gap = scaled(
            grace.longest_gap().max(SHORTEST_GAP),
            1.0 - self.probing.jitter.share(),
        );
        if recovers {
            gap = gap.min(grace.recovery_gap());
        }
        // What was under way during a protective write says nothing of the time since.
        if self.probing.began < self.markers.by_us {
            gap = REPROBE_GAP;
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
            stretch,
        })
    }
}
