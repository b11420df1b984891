//! The owner record: a DNS record that names the seed that a shoot belongs to. It is for the bad
//! case of a migration, in which Gardener cannot reach the old seed to say there that the shoot is
//! gone. Synchronous functions of values, the time included.
//!
//! ```text
//! config's templates, Cluster --> question: name, and the value that says "ours"
//! answers of the checks, now ---> standing, and the time of the next check --> what the shoot decides by
//! ```
//!
//! Not knowing is never evidence: a failed check changes nothing for as long as is tolerated, and
//! then stops every write.

use std::time::Duration;

use common_core::backoff::doubling;
use prober_core::config::{OnLoss, OwnerCheck};
use prober_core::moment::Moment;
use prober_core::shoot::Owner;
use prober_core::span;
use prober_core::template::{Facts, is_dns_name};
use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, IntoStaticStr, VariantNames};

/// Result of all checks of a shoot's owner record so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames, EnumDiscriminants)]
#[strum(serialize_all = "snake_case", const_into_str)]
#[strum_discriminants(
    name(Standing),
    doc = "The same without its reason.",
    derive(IntoStaticStr, Serialize, Deserialize),
    serde(rename_all = "snake_case"),
    strum(serialize_all = "snake_case", const_into_str)
)]
pub enum Ownership {
    Ours,
    /// The first check is not over.
    NotChecked,
    /// No check has resolved it yet, and that is tolerated so far.
    Unproven(Unresolved),
    /// The last check that resolved it said another value, the one before did not: one odd answer
    /// ends no protection, but nothing is written until the next check.
    Doubted,
    /// Two checks in a row said another value.
    Elsewhere {
        /// Time at which the last one was sent; `None` if checks have failed since.
        checked: Option<Moment>,
    },
    /// It could not be resolved for longer than is tolerated.
    Unresolved(Unresolved),
}

/// Reason why a check did not tell whose the shoot is.
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
    Deserialize,
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
    /// Returns what the shoot decides by.
    pub(crate) fn owner(self, on_loss: OnLoss) -> Owner {
        match self {
            Self::Ours => Owner::Here,
            Self::NotChecked | Self::Doubted => Owner::Unknown,
            Self::Unproven(_) => Owner::LeaderOnly,
            Self::Elsewhere { .. } | Self::Unresolved(_) => Owner::Unknown,
        }
    }

    /// True if the shoot is left alone: neither probed nor written.
    pub fn is_lost(self) -> bool {
        Standing::from(self).is_lost()
    }

    /// Reason why it is not known whose the shoot is.
    pub(super) const fn unresolved(self) -> Option<Unresolved> {
        match self {
            Self::Unproven(why) | Self::Unresolved(why) => Some(why),
            _ => None,
        }
    }
}

impl Standing {
    /// True if the shoot is left alone: neither probed nor written.
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Elsewhere | Self::Unresolved)
    }
}

/// Name that a check asks for, and the value that says that the shoot is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub name: String,
    pub ours: String,
}

impl Question {
    /// `None` if the Cluster lacks what the templates name, or makes no DNS name of it.
    pub fn of(check: &OwnerCheck, facts: &Facts) -> Option<Self> {
        let (name, ours) = (check.name.fill(facts)?, check.value.fill(facts)?);
        is_dns_name(&name).then_some(Self { name, ours })
    }

    /// Compares the values of the TXT records with ours.
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
    /// Label of the result in metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Elsewhere(_) => "elsewhere",
            Self::Unresolved(why) => why.into_str(),
        }
    }
}

/// Wait after a check that failed, and after the first that says "elsewhere".
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Largest share of the wait between two checks that is left out at random, so that shoots get out
/// of step.
const JITTER: f64 = 0.1;

/// History of the checks of one shoot's record, as far as it matters.
#[derive(Clone, Debug)]
pub(crate) struct OwnerRecord {
    pub began: Moment,
    /// Time at which the first check was sent.
    asked: Option<Moment>,
    /// Time of the next check; of the one under way, if any.
    next: Moment,
    resolved: Option<Resolved>,
    failing: Option<Failing>,
}

/// Last check that resolved it.
#[derive(Clone, Debug)]
struct Resolved {
    /// Value other than ours.
    elsewhere: Option<String>,
    sent: Moment,
    /// Number of checks in a row that said "elsewhere", or "ours".
    in_a_row: u32,
}

/// Checks that have failed since the last one that resolved it.
#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Moment,
    why: Unresolved,
    times: u32,
}

impl OwnerRecord {
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            began: now,
            asked: None,
            next: now,
            resolved: None,
            failing: None,
        }
    }

    pub(crate) fn next(&self) -> Moment {
        self.next
    }

    /// Time at which the last check was sent that resolved it.
    pub(crate) fn resolved_at(&self) -> Option<Moment> {
        Some(self.resolved.as_ref()?.sent)
    }

    /// A check is sent.
    pub(crate) fn ask(&mut self, now: Moment) {
        self.asked.get_or_insert(now);
    }

    /// Makes another check due at once. Earlier results stay in effect, but a check that asked for
    /// something else confirms nothing.
    pub(crate) fn ask_again(&mut self, now: Moment) {
        self.next = self.next.min(now);
        if let Some(resolved) = &mut self.resolved
            && resolved.in_a_row < 2
        {
            resolved.in_a_row = 0;
        }
    }

    /// Value that names another owner, if the last check that resolved it said so.
    pub(crate) fn elsewhere(&self) -> Option<&str> {
        self.resolved.as_ref()?.elsewhere.as_deref()
    }

    pub(crate) fn standing(&self, check: &OwnerCheck, now: Moment) -> Ownership {
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

    /// Time at which the standing changes without an answer.
    pub(crate) fn turns_at(&self, check: &OwnerCheck, now: Moment) -> Option<Moment> {
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

    /// End of the tolerance, which counts from the first check that failed, or from the time at
    /// which one that is overdue should have ended.
    fn tolerated_until(&self, check: &OwnerCheck) -> Moment {
        let since = match (&self.resolved, self.failing) {
            (None, _) => self.began,
            (Some(_), Some(failing)) => failing.since,
            (Some(_), None) => self.next + span(check.timeout),
        };
        since + span(check.tolerance)
    }

    /// Applies the answer to a check that was sent at `sent`. `chance` is a random number from 0 to
    /// 1.
    pub(crate) fn answered(
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
        self.next = now + span(wait.mul_f64(1.0 - JITTER * chance));
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
            // Two checks with a failure between them confirm nothing; confirmed ones stay so.
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
