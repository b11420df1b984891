//! When the machine looks.

use std::collections::VecDeque;

use chrono::TimeDelta;

use super::{Action, Context, Direction, Looking, Report, Shoot, Surroundings, scaled};
use crate::core::moment::Moment;
use crate::core::schedule::{Failure, JUST_AFTER, Outlook, next_look};
use crate::core::span;
use crate::core::verdict::Verdict;

/// However short a grace a shoot asks for, doubt brings no look sooner than this.
const SHORTEST_GAP: TimeDelta = TimeDelta::seconds(1);
/// Looks that are wanted at once, because what others wrote is newer than the last one, are so far apart; from the fourth in a minute
/// on further (D-52).
const DEMAND_GAP: TimeDelta = TimeDelta::seconds(1);
const LONG_DEMAND_GAP: TimeDelta = TimeDelta::seconds(10);
const DEMANDS_A_MINUTE: usize = 3;

/// The looks that were wanted at once.
#[derive(Debug, Default, Clone, Hash)]
pub(super) struct Demands {
    /// When the last of them were made.
    made: VecDeque<Moment>,
    due: Option<Moment>,
}

impl Demands {
    pub(super) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// Wants a look at once, or as soon as that may be. Says whether it has been wanted so often that others keep writing.
    fn want(&mut self, now: Moment) -> bool {
        self.made.retain(|&made| now - made < TimeDelta::minutes(1));
        let often = self.made.len() >= DEMANDS_A_MINUTE;
        let gap = if often { LONG_DEMAND_GAP } else { DEMAND_GAP };
        let first = self.due.is_none();
        self.due = Some(self.made.back().map_or(now, |&last| now.max(last + gap)));
        often && first
    }

    /// A look is made.
    fn meet(&mut self, now: Moment) {
        if self.due.take().is_some() {
            self.made.push_back(now);
            if self.made.len() > DEMANDS_A_MINUTE {
                self.made.pop_front();
            }
        }
    }
}

/// Lets shoots that began together, or were reloaded together, get out of step: each takes its next looks a little early, by a share of
/// its own, so that in the end they are spread over a whole gap between looks. Later looks are as far apart as the lease clock wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    share: f64,
    looks: u32,
}

impl Pace {
    /// The looks that are taken early, each by at most the inverse of it.
    const LOOKS: u32 = 10;

    pub(super) fn new(chance: f64) -> Self {
        Self { share: chance / f64::from(Self::LOOKS), looks: Self::LOOKS }
    }

    /// A look was complete.
    pub(super) fn count(&mut self) {
        self.looks = self.looks.saturating_sub(1);
    }

    fn share(self) -> f64 {
        if self.looks > 0 { self.share } else { 0.0 }
    }
}

impl Shoot {
    /// First looks are spread, so that a restart does not hit all API servers at once; shoots that are held down go first (D-51).
    pub(super) fn first_look(&self, around: &Surroundings, now: Moment) -> Moment {
        let latest = match self.start.in_operation {
            true => now + around.spread,
            false => self.start.eligible + span(around.config.initial_delay / 2),
        };
        if latest <= now || self.held_down().next().is_some() {
            return now;
        }
        now + scaled(latest - now, around.chance)
    }

    /// Since when nodes that were listed may still be judged by (D-53); none when they are to be listed for each look.
    pub(super) fn nodes_good_since(&self, cx: &Context<'_>) -> Option<Moment> {
        let recovering = self.last_direction == Some(Direction::Down) && self.held_down().next().is_some();
        recovering.then(|| {
            (cx.now - span(cx.around.config.probe_interval)).max(self.demands.made.back().copied().unwrap_or(Moment::START))
        })
    }

    /// Looks if it is time, or lets the caller know when it will be.
    pub(super) fn look_if_due(&mut self, cx: &mut Context<'_>) {
        if self.looking != Looking::Idle {
            return;
        }
        if let Some(changed) = cx.demanded
            && self.demands.want(cx.now)
            && let Some(dependent) = changed
        {
            cx.report(Report::KeepsChanging(dependent));
        }
        if self.looks_at() > cx.now {
            return;
        }
        self.demands.meet(cx.now);
        self.looking = Looking::Leases;
        cx.actions.push(Action::Look);
    }

    /// When to look next after a look, or after so many failures, which may be urgent.
    pub(super) fn scheduled(&self, failure: Option<(u32, bool)>, cx: &Context<'_>) -> Moment {
        let Surroundings { config, chance, .. } = cx.around;
        let finding = self.finding.as_deref();
        let stretch = 1.0 + chance * config.backoff_jitter_factor;
        let judged_at = finding.map_or(cx.now, |finding| finding.judged_at);
        let grace = self.rules(cx.around).grace;
        // All who lead look soon while anything is held down (D-53).
        let recovery = (cx.around.leads && self.held_down().next().is_some()).then(|| grace.recovery_gap());
        let interval = scaled(span(config.probe_interval), stretch);
        let interval = recovery.filter(|_| failure.is_some()).map_or(interval, |gap| interval.min(gap));
        let gap = scaled(grace.longest_gap().max(SHORTEST_GAP), 1.0 - self.pace.share());
        let gap = recovery.map_or(gap, |recovery| recovery.min(gap));
        // A shoot for which nothing waits to be written keeps its own pace: a look at the end of initialDelay would bring all
        // shoots into step.
        let waits = !(self.verdict().is_some_and(Verdict::is_up) && self.is_settled(cx.around));
        let awaited = [Some(self.acts_from(Direction::Down, cx)), Some(self.acts_from(Direction::Up, cx)), self.stable_from(cx)];
        let awaited = awaited.into_iter().flatten().map(|moment| moment + JUST_AFTER);
        next_look(&Outlook {
            now: cx.now,
            judged_at: if failure.is_some() { cx.now } else { judged_at },
            interval,
            verdict_possible: finding.and_then(|finding| finding.verdict_possible),
            doubt_from: finding.map(|_| judged_at + gap),
            awaited: awaited.filter(|&moment| waits && moment > judged_at).min(),
            failure: failure.map(|(in_a_row, urgent)| Failure {
                in_a_row,
                urgent,
                stretch,
                throttled_until: self.throttled_until,
            }),
        })
    }
}
