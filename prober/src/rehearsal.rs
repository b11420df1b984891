//! Rehearsals: dry runs of the patches that would scale a shoot's dependents down, before an outage
//! is the first to need them. Decides when each is due, and keeps what came of it. No I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;
use common::text::shortened;
use prober_core::config::{Config, Dependent, DependentId};
use prober_core::moment::Moment;
use prober_core::refusal::Refusal;
use prober_core::replicas::{DependentState, Observed, PlannedWrite, Unscalable, scale_down};
use prober_core::scaled;
use prober_core::shoot::Environment;

/// Time over which the first rehearsals of a seed's shoots are spread.
const SPREAD: TimeDelta = TimeDelta::minutes(10);
/// Most of it for one shoot: of a small seed all is told within a minute of the first complete
/// probes, which leaves 10 s for the requests.
const SHARE: TimeDelta = TimeDelta::seconds(50);
/// Pause after one that found anything but that all is well, and shortest one after a change.
const AGAIN_SOON: TimeDelta = TimeDelta::minutes(10);
/// Pause after one that was accepted, or cannot be made: permissions and policies change, too.
const AGAIN: TimeDelta = TimeDelta::hours(6);
/// Pause after one that was overtaken by a change of the object, which says nothing.
const AFTER_CONFLICT: TimeDelta = TimeDelta::minutes(1);
/// Letters of an API server's words that are kept.
const WORDS: usize = 200;

/// What came of a rehearsal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    /// The write would be refused, or not do what it is for, in these words.
    Refused(String),
    /// Admission knows no dry runs, so that nobody can tell.
    Unsupported,
    /// The object was changed meanwhile.
    Overtaken,
    /// No answer, or one that tells of the API server and not of the write.
    Unanswered,
}

impl Outcome {
    /// Judges what a dry run of the change has led to.
    pub(crate) fn of(change: &PlannedWrite, answer: Result<DependentState, Refusal>) -> Self {
        match answer {
            Ok(DependentState::Present(after)) => Self::landed(change, &after),
            Ok(_) => Self::Refused("the answer has no spec.replicas".to_owned()),
            Err(Refusal::Conflict(_)) => Self::Overtaken,
            Err(Refusal::Status { code: 400, said })
                if said.contains("does not support dry run") =>
            {
                Self::Unsupported
            }
            // Of the 5xx only this one has a cause that lasts: a webhook that fails and must not.
            Err(
                Refusal::Denied { code: 403, said }
                | Refusal::Status { said, .. }
                | Refusal::Unavailable { code: 500, said },
            ) => Self::Refused(shortened(said, WORDS)),
            // What does not exist, the seed's view says.
            Err(_) => Self::Unanswered,
        }
    }

    /// Admission may have changed what was sent.
    fn landed(change: &PlannedWrite, after: &Observed) -> Self {
        if after.replicas != change.replicas() {
            let replicas = after.replicas;
            return Self::Refused(format!("the answer sets spec.replicas to {replicas} again"));
        }
        if after.marks != change.write.marks {
            return Self::Refused("the answer drops the watchdog's annotations".to_owned());
        }
        Self::Accepted
    }

    const fn pause(&self) -> TimeDelta {
        match self {
            Self::Accepted | Self::Unsupported => AGAIN,
            Self::Refused(_) | Self::Unanswered => AGAIN_SOON,
            Self::Overtaken => AFTER_CONFLICT,
        }
    }
}

/// The rehearsals of one shoot.
#[derive(Debug, Default)]
pub(crate) struct Rehearsals {
    /// `None` while this replica rehearses nothing.
    term: Option<Term>,
    /// In the order of the config.
    dependents: Vec<Rehearsal>,
}

/// A time in which one config is in effect and this replica leads.
#[derive(Debug)]
struct Term {
    config: Arc<Config>,
    /// Earliest rehearsal.
    from: Moment,
}

#[derive(Debug, Default)]
struct Rehearsal {
    /// `None` until the dependent's state is known.
    plan: Option<Plan>,
    last: Option<Last>,
}

/// The patch of a scale-down, if there is anything to scale, or why it would fail before anything is
/// sent.
type Plan = Result<Option<PlannedWrite>, Refusal>;

#[derive(Debug)]
struct Last {
    base: Arc<Observed>,
    at: Moment,
    pause: TimeDelta,
    /// Words of the last refusal, until one is accepted.
    refused: Option<String>,
}

/// Returns `None` while the state is unknown.
fn plan(config: &Dependent, state: &DependentState) -> Option<Plan> {
    Some(match state {
        DependentState::Unknown => return None,
        DependentState::Present(base) => Ok(scale_down(base, false).map(|write| PlannedWrite {
            base: Arc::clone(base),
            write,
        })),
        DependentState::Absent | DependentState::Unscalable(Unscalable::NoSuchKind)
            if config.optional =>
        {
            Ok(None)
        }
        DependentState::Absent => Err(Refusal::NotFound),
        DependentState::Unscalable(why) => Err(Refusal::Unscalable(*why)),
    })
}

impl Rehearsal {
    /// The patch, if there is one.
    fn change(&self) -> Option<&PlannedWrite> {
        self.plan.as_ref()?.as_ref().ok()?.as_ref()
    }

    /// Takes in the dependent's state. While it is unknown or the same, the last plan stands.
    fn follow(&mut self, config: &Dependent, state: &DependentState) {
        if let DependentState::Present(seen) = state
            && self
                .change()
                .is_some_and(|change| Arc::ptr_eq(&change.base, seen))
        {
            return;
        }
        self.plan = plan(config, state).or(self.plan.take());
    }

    /// Returns its patch, if there is one, and when that is to be rehearsed.
    fn next(&self, term: &Term) -> Option<(Moment, &PlannedWrite)> {
        let change = self.change()?;
        let is_current =
            |last: &Last| last.at >= term.from && last.base.is_same_state(&change.base);
        let due = match &self.last {
            None => term.from,
            Some(last) if is_current(last) => last.at + last.pause,
            Some(last) => term.from.max(last.at + AGAIN_SOON),
        };
        Some((due, change))
    }

    fn refused(&self) -> Option<String> {
        match self.plan.as_ref()? {
            Ok(None) => None,
            Ok(Some(_)) => self.last.as_ref()?.refused.clone(),
            Err(refusal) => Some(refusal.to_string()),
        }
    }
}

impl Rehearsals {
    /// Takes in what has changed around a shoot that is probed. What came of earlier ones is kept
    /// while none may be made, since too many must not follow each other.
    pub(crate) fn follow(&mut self, env: &Environment, now: Moment) {
        let config = &env.config;
        if !env.leads || env.dry_run || !env.is_ours {
            self.term = None;
            return;
        }
        let is_followed = |term: &Term| Arc::ptr_eq(&term.config, config);
        if !self.term.as_ref().is_some_and(is_followed) {
            let spread = SPREAD.min(SHARE * env.shoots);
            self.term = Some(Term {
                config: Arc::clone(config),
                from: now + scaled(spread, env.chance),
            });
        }
        self.dependents
            .resize_with(config.dependents.len(), Rehearsal::default);
        let known = self.dependents.iter_mut().zip(&config.dependents);
        for ((known, config), state) in known.zip(&env.dependents) {
            known.follow(config, state);
        }
    }

    /// Returns the next patch to be rehearsed, and when it is due.
    pub(crate) fn next(&self) -> Option<(Moment, DependentId, &PlannedWrite)> {
        let term = self.term.as_ref()?;
        let known = self.dependents.iter().enumerate();
        let patches = known.filter_map(|(at, known)| {
            let (due, change) = known.next(term)?;
            Some((due, DependentId(at), change))
        });
        patches.min_by_key(|(due, ..)| *due)
    }

    /// Takes in what came of one.
    pub(crate) fn ended(
        &mut self,
        id: DependentId,
        base: Arc<Observed>,
        outcome: Outcome,
        now: Moment,
    ) {
        let Some(known) = self.dependents.get_mut(id.0) else {
            return;
        };
        let pause = outcome.pause();
        let refused = match outcome {
            Outcome::Refused(words) => Some(words),
            Outcome::Accepted | Outcome::Unsupported => None,
            Outcome::Overtaken | Outcome::Unanswered => {
                known.last.take().and_then(|last| last.refused)
            }
        };
        known.last = Some(Last {
            base,
            at: now,
            pause,
            refused,
        });
    }

    /// What would be refused, and why; `None` while this replica rehearses nothing.
    pub(crate) fn refused(&self) -> Option<BTreeMap<DependentId, String>> {
        self.term.as_ref()?;
        let known = self.dependents.iter().enumerate();
        let refused = known.filter_map(|(at, known)| Some((DependentId(at), known.refused()?)));
        Some(refused.collect())
    }
}

#[cfg(test)]
mod tests;
