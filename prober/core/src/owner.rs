//! The owner record: a DNS record that names the seed that a shoot belongs to. It is for the bad
//! case of a migration, in which Gardener cannot reach the old seed to say there that the shoot is
//! gone.
//!
//! ```text
//! config's templates, Cluster --> what to ask for, and the value that says "ours"
//! answers of the checks, now ---> standing, and when to check next
//! ```
//!
//! Not knowing is never evidence: what cannot be resolved changes nothing for as long as is
//! tolerated, and then stops every write.

use std::time::Duration;

use common_core::backoff::doubling;
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

use super::moment::Moment;
use super::{scaled, span};
use crate::config::OwnerCheck;
use crate::template::{Facts, is_dns_name};

/// What the owner record of a shoot comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames, Serialize)]
#[serde(into = "&'static str")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Ownership {
    Ours,
    /// The first check is not over.
    NotChecked,
    /// No check has resolved it yet, and that is tolerated so far.
    Unproven(Unresolved),
    /// The last check that resolved it said another value, the one before did not: one odd answer
    /// ends no protection, but nothing is written until it is checked again.
    Doubted,
    /// Two checks in a row said another value. When the last one was sent, unless checks have
    /// failed since.
    Elsewhere {
        checked: Option<Moment>,
    },
    /// It could not be resolved for longer than is tolerated.
    Unresolved(Unresolved),
}

/// Why a check did not tell whose the shoot is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    IntoStaticStr,
    VariantNames,
    Serialize,
    thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Unresolved {
    #[error("there is no such name")]
    NoName,
    #[error("the name has no TXT record")]
    NoRecord,
    #[error("there are TXT records with different values")]
    Ambiguous,
    /// SERVFAIL, or another error code.
    #[error("the DNS server failed")]
    Server,
    #[error("the DNS server refused the query")]
    Refused,
    #[error("there was no answer in time")]
    Timeout,
    #[error("the answer was cut off, over TCP as well")]
    Truncated,
    #[error("the DNS server cannot be reached")]
    Network,
    #[error("the answer cannot be understood")]
    Decode,
    #[error("the Cluster does not say what the name or the value takes")]
    Unknown,
    #[error("there is no DNS server to ask")]
    NoServers,
    #[error("this process was suspended, and has not checked since")]
    Suspended,
}

impl Ownership {
    /// Whether the shoot is left alone: neither probed nor written.
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Elsewhere { .. } | Self::Unresolved(_))
    }

    /// Why it is not known whose the shoot is, if so.
    pub const fn unresolved(self) -> Option<Unresolved> {
        match self {
            Self::Unproven(why) | Self::Unresolved(why) => Some(why),
            _ => None,
        }
    }
}

/// What one check asks for, and the value that says that the shoot is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    pub name: String,
    pub ours: String,
}

impl Question {
    /// None if the Cluster does not say what it takes, or makes no DNS name of it.
    pub fn of(check: &OwnerCheck, facts: &Facts) -> Option<Self> {
        let (name, ours) = (check.name.fill(facts)?, check.value.fill(facts)?);
        is_dns_name(&name).then_some(Self { name, ours })
    }

    /// What the values of the TXT records come to.
    pub fn judge(&self, records: &[String]) -> OwnerAnswer {
        match records {
            [] => OwnerAnswer::Unresolved(Unresolved::NoRecord),
            [first, others @ ..] if others.iter().any(|other| other != first) => {
                OwnerAnswer::Unresolved(Unresolved::Ambiguous)
            }
            [value, ..] if *value == self.ours => OwnerAnswer::Ours,
            [value, ..] => OwnerAnswer::Elsewhere(value.clone()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerAnswer {
    Ours,
    Elsewhere(String),
    Unresolved(Unresolved),
}

impl OwnerAnswer {
    /// The result of a check, for its metric.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Elsewhere(_) => "elsewhere",
            Self::Unresolved(why) => why.into_str(),
        }
    }
}

/// After a check that failed, and after the first that says "elsewhere", the next one follows so
/// soon.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// So much of the wait between two checks is left out at random, so that shoots do not move in
/// step.
const JITTER: f64 = 0.1;

/// What the checks of one shoot's record have shown.
#[derive(Clone, Debug)]
pub struct OwnerRecord {
    pub began: Moment,
    /// When the first check was sent.
    asked: Option<Moment>,
    /// When the next check is due; while one is under way, when that was.
    next: Moment,
    resolved: Option<Resolved>,
    failing: Option<Failing>,
}

/// What the last check said that resolved it.
#[derive(Clone, Debug)]
struct Resolved {
    /// Another value than ours.
    elsewhere: Option<String>,
    /// When it was sent.
    sent: Moment,
    /// How many in a row said "elsewhere", or "ours".
    in_a_row: u32,
}

/// Checks have failed since then.
#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Moment,
    why: Unresolved,
    times: u32,
}

impl OwnerRecord {
    pub fn new(now: Moment) -> Self {
        Self {
            began: now,
            asked: None,
            next: now,
            resolved: None,
            failing: None,
        }
    }

    pub fn next(&self) -> Moment {
        self.next
    }

    /// When the last check was sent that resolved it.
    pub fn resolved_at(&self) -> Option<Moment> {
        Some(self.resolved.as_ref()?.sent)
    }

    /// A check is sent.
    pub fn ask(&mut self, now: Moment) {
        self.asked.get_or_insert(now);
    }

    /// Another check is wanted at once. What was found goes on to hold; one that asked for
    /// something else confirms nothing.
    pub fn ask_again(&mut self, now: Moment) {
        self.next = self.next.min(now);
        if let Some(resolved) = &mut self.resolved
            && resolved.in_a_row < 2
        {
            resolved.in_a_row = 0;
        }
    }

    /// The value that names another owner, if the last check that resolved it said so.
    pub fn elsewhere(&self) -> Option<&str> {
        self.resolved.as_ref()?.elsewhere.as_deref()
    }

    pub fn standing(&self, check: &OwnerCheck, now: Moment) -> Ownership {
        let why = self
            .failing
            .map_or(Unresolved::Timeout, |failing| failing.why);
        if now >= self.tolerated_until(check) {
            return Ownership::Unresolved(why);
        }
        match &self.resolved {
            Some(resolved) if resolved.elsewhere.is_none() => Ownership::Ours,
            Some(resolved) if resolved.in_a_row >= 2 => Ownership::Elsewhere {
                checked: self.failing.is_none().then_some(resolved.sent),
            },
            Some(_) => Ownership::Doubted,
            None if self.failing.is_none()
                && self.first_check_ends(check).is_none_or(|end| now < end) =>
            {
                Ownership::NotChecked
            }
            None => Ownership::Unproven(why),
        }
    }

    /// When the standing changes by itself, with no answer.
    pub fn turns_at(&self, check: &OwnerCheck, now: Moment) -> Option<Moment> {
        let first = self
            .first_check_ends(check)
            .filter(|_| self.resolved.is_none());
        first
            .into_iter()
            .chain([self.tolerated_until(check)])
            .filter(|&moment| moment > now)
            .min()
    }

    fn first_check_ends(&self, check: &OwnerCheck) -> Option<Moment> {
        Some(self.asked? + span(check.timeout))
    }

    /// The tolerance counts from the first check that failed, or from the end of one that has not
    /// come to its end.
    fn tolerated_until(&self, check: &OwnerCheck) -> Moment {
        let since = match (&self.resolved, self.failing) {
            (None, _) => self.began,
            (Some(_), Some(failing)) => failing.since,
            (Some(_), None) => self.next + span(check.timeout),
        };
        since + span(check.tolerance)
    }

    /// Takes in the answer to a check that was sent at `sent`. `chance` is a random number from 0
    /// to 1.
    pub fn answered(
        &mut self,
        answer: OwnerAnswer,
        sent: Moment,
        check: &OwnerCheck,
        now: Moment,
        chance: f64,
    ) {
        let wait = match answer {
            OwnerAnswer::Unresolved(why) => self.failed(why, sent, check),
            OwnerAnswer::Ours => self.resolved(None, sent, check),
            OwnerAnswer::Elsewhere(value) => self.resolved(Some(value), sent, check),
        };
        self.next = now + scaled(span(wait), 1.0 - JITTER * chance);
    }

    fn failed(&mut self, why: Unresolved, sent: Moment, check: &OwnerCheck) -> Duration {
        let failing = self.failing.get_or_insert(Failing {
            since: sent,
            why,
            times: 0,
        });
        failing.why = why;
        failing.times = failing.times.saturating_add(1);
        doubling(AGAIN_AFTER, failing.times, check.interval)
    }

    fn resolved(
        &mut self,
        elsewhere: Option<String>,
        sent: Moment,
        check: &OwnerCheck,
    ) -> Duration {
        let failed_before = self.failing.take().is_some();
        let before = match &self.resolved {
            Some(before) if before.elsewhere.is_some() != elsewhere.is_some() => 0,
            // Two that are not in a row confirm nothing; what was confirmed stays so.
            Some(before) if failed_before && before.in_a_row < 2 => 0,
            Some(before) => before.in_a_row,
            None => 0,
        };
        let in_a_row = before.saturating_add(1);
        let unconfirmed = elsewhere.is_some() && in_a_row < 2;
        self.resolved = Some(Resolved {
            elsewhere,
            sent,
            in_a_row,
        });
        if unconfirmed {
            AGAIN_AFTER.min(check.interval)
        } else {
            check.interval
        }
    }
}

#[cfg(test)]
mod tests;
