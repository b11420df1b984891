//! When the machine probes.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::TimeDelta;

use super::{Action, Context, Direction, Environment, Probing, Report, Shoot};
use crate::judgement::Finding;
use crate::moment::Moment;
use crate::schedule::{Failure, ScheduleInputs, next_probe};
use crate::{scaled, span};

/// However short a grace a shoot asks for, doubt brings no probe sooner than this.
const SHORTEST_GAP: TimeDelta = TimeDelta::seconds(1);
/// Probes that are requested at once, because what others wrote is newer than the last one, are so
/// far apart; from the fourth in a minute on further (D-52).
const REPROBE_GAP: TimeDelta = TimeDelta::seconds(1);
const LONG_REPROBE_GAP: TimeDelta = TimeDelta::seconds(10);
const REPROBES_PER_MINUTE: usize = 3;

#[derive(Debug, Default, Clone, Hash)]
pub(super) struct ReprobeRequests {
    made: VecDeque<Moment>,
    pub(super) due: Option<Moment>,
}

impl ReprobeRequests {
    /// Requests a probe at once, or as soon as that may be. True if so many were requested that
    /// others keep writing.
    fn request(&mut self, now: Moment) -> bool {
        let often = self.is_often(now);
        let gap = if often { LONG_REPROBE_GAP } else { REPROBE_GAP };
        let first = self.due.is_none();
        self.due = Some(self.made.back().map_or(now, |&last| now.max(last + gap)));
        often && first
    }

    /// Whether others keep writing: so many were requested within a minute.
    fn is_often(&mut self, now: Moment) -> bool {
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

    pub(super) fn probe_completed(&mut self) {
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
        let latest = match self.start.in_operation {
            true => now + env.spread,
            false => self.start.eligible + span(env.config.initial_delay / 2),
        };
        if latest <= now || self.held_down().next().is_some() {
            return now;
        }
        now + scaled(latest - now, env.chance)
    }

    /// Since when nodes that were listed may still be judged by (D-53); none when they are to be
    /// listed for each probe.
    pub(super) fn nodes_good_since(&self, cx: &Context<'_>) -> Option<Moment> {
        (self.last_direction == Some(Direction::Down)).then(|| {
            let requested = self
                .reprobes
                .made
                .back()
                .copied()
                .max(self.free_since.down)
                .max(Some(self.same_since));
            (cx.now - span(cx.env.config.probe_interval)).max(requested.unwrap_or(Moment::START))
        })
    }

    /// Probes if it is time, or lets the caller know when it will be.
    pub(super) fn probe_if_due(&mut self, cx: &mut Context<'_>) {
        if self.probing != Probing::Idle || self.stood_down {
            return;
        }
        if cx.reprobe_requested
            && self.reprobes.request(cx.now)
            && let Some(dependent) = cx.changed
        {
            cx.report(Report::KeepsChanging(dependent));
        }
        if self.due() > cx.now {
            return;
        }
        self.reprobes.probed(cx.now);
        self.probed_at = cx.now;
        self.probing = Probing::Leases;
        let may_fall = |finding: &Arc<Finding>| {
            finding
                .verdict_possible
                .is_some_and(|possible| possible <= cx.now)
        };
        let with_nodes = self.last_direction != Some(Direction::Down)
            && self.finding.as_ref().is_some_and(may_fall);
        cx.actions.push(Action::ListLeases { with_nodes });
    }

    /// Lets the next probe begin at once if none has since then, and otherwise no later than the
    /// gap after the last one; one that failed is repeated in its own time.
    pub(super) fn probe_soon(&mut self, since: Moment, cx: &Context<'_>) {
        if self.failures > 0 && self.probed_at >= since {
            return;
        }
        let gap = if self.probed_at < since {
            TimeDelta::zero()
        } else {
            REPROBE_GAP
        };
        self.next_probe = self.next_probe.min((self.probed_at + gap).max(cx.now));
    }

    /// The same while and after something is scaled down, unless others keep writing.
    pub(super) fn probe_again_soon(&mut self, cx: &Context<'_>) {
        if !self.reprobes.is_often(cx.now) {
            self.probe_soon(Moment::START, cx);
        }
    }

    /// When to probe next, after a complete probe or a failure.
    pub(super) fn scheduled(&self, failure: Option<Failure>, cx: &Context<'_>) -> Moment {
        let Environment { config, chance, .. } = cx.env;
        let finding = self.finding.as_deref();
        let stretch = 1.0 + chance * config.backoff_jitter_factor;
        let judged_at = finding.map_or(cx.now, |finding| finding.judged_at);
        let grace = cx.env.settings.grace(config);
        // Who leads, or would if the leader is gone, probes soon while anything is held down
        // (D-53); so does who only looks.
        let leads = cx.env.leads
            || cx.env.dry_run
            || cx.env.leader_silent_from.is_some_and(|from| from <= cx.now);
        let recovery = (leads && self.held_down().next().is_some()).then(|| grace.recovery_gap());
        let interval = scaled(span(config.probe_interval), stretch);
        let in_outage = failure.is_some()
            && (recovery.is_some() || self.last_direction == Some(Direction::Down));
        let interval = if in_outage {
            interval.min(grace.recovery_gap())
        } else {
            interval
        };
        let gap = scaled(
            grace.longest_gap().max(SHORTEST_GAP),
            1.0 - self.jitter.share(),
        );
        let gap = recovery.map_or(gap, |recovery| recovery.min(gap));
        // What was under way during a protective write says nothing of the time since.
        let gap = if self.probed_at < self.protected_at {
            REPROBE_GAP
        } else {
            gap
        };
        next_probe(&ScheduleInputs {
            now: cx.now,
            judged_at: if failure.is_some() { cx.now } else { judged_at },
            interval,
            verdict_possible: finding.and_then(|finding| finding.verdict_possible),
            doubt_from: finding.map(|_| judged_at + gap),
            failure,
            stretch,
        })
    }
}
