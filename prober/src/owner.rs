//! Owner records: DNS TXT records that name the seeds that shoots belong to. They are for the bad
//! case of a migration, in which Gardener cannot reach the old seed to say there that the shoot is
//! gone. Every replica checks all shoots of its seed, probed or not.
//!
//! ```text
//! Cluster --> Question --resolver--> Answer --> Record --> Standing --> which task runs (manager), what it may write
//!                                                             '-------> /ownership, page, metrics, log, Events
//! ```
//!
//! Not knowing is never evidence: a failed check changes nothing for as long as is tolerated, and
//! then the shoot is left alone.

pub(crate) mod resolver;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::events::Events;
use common::view::Key;
use common_core::backoff::doubling;
use http::StatusCode;
use parking_lot::Mutex;
use prober_core::config::{OnLoss, OwnerCheck};
use prober_core::moment::Moment;
use prober_core::shoot::Owner;
use prober_core::span;
use prober_core::template::{Facts, is_dns_name};
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use self::resolver::Resolver;
use crate::observability::metrics::count;
use crate::shared::Shared;

/// Wait after a check that failed, and after the first that names another seed.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Largest share of the wait between two checks that is left out at random, so that shoots get out
/// of step.
const JITTER: f64 = 0.1;
/// Most characters of a record's value that are repeated.
const SHOWN_OF_VALUE: usize = 100;

/// What DNS says about a shoot.
#[derive(Debug, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Answer {
    Ours,
    /// The value of the record is another one.
    Elsewhere(String),
    #[strum(transparent)]
    Unresolved(Why),
}

/// Reason why a check does not tell whose the shoot is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    IntoStaticStr,
    VariantNames,
    Serialize,
    Deserialize,
    thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Why {
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
}

/// What the checks so far say together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantNames, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Standing {
    Ours,
    /// The first check is not over.
    #[default]
    NotChecked,
    /// No check has resolved it yet, which is tolerated so far.
    Unproven,
    /// The last check that resolved it named another seed, the one before did not: one odd answer
    /// ends no protection, but nothing is written until the next check.
    Doubted,
    /// Two checks in a row named another seed.
    Elsewhere,
    /// It could not be resolved for longer than is tolerated.
    Unresolved,
}

impl Standing {
    /// True if the shoot is neither probed nor restored.
    pub const fn is_lost(self) -> bool {
        matches!(self, Self::Elsewhere | Self::Unresolved)
    }

    /// Verdict by which the shoot's task acts in place of probes, if any. The error is the reason
    /// for having no task.
    pub(crate) fn decree(self, on_loss: OnLoss) -> Result<Option<Verdict>, Self> {
        match self {
            Self::Elsewhere if on_loss == OnLoss::Passivate => Ok(Some(Verdict::ScaleDown)),
            lost if lost.is_lost() => Err(lost),
            _ => Ok(None),
        }
    }

    /// Standing after another check. It `follows` one that resolved the record: only two such in a
    /// row confirm that the shoot is elsewhere.
    fn after(self, answer: &Answer, follows: bool, is_tolerated: bool) -> Self {
        match (answer, self) {
            (Answer::Ours, _) => Self::Ours,
            (Answer::Elsewhere(_), Self::Doubted | Self::Unresolved) if follows => Self::Elsewhere,
            (Answer::Elsewhere(_), lost) if lost.is_lost() => lost,
            (Answer::Elsewhere(_), _) => Self::Doubted,
            (Answer::Unresolved(_), _) if !is_tolerated => Self::Unresolved,
            (Answer::Unresolved(_), Self::NotChecked) => Self::Unproven,
            (Answer::Unresolved(_), before) => before,
        }
    }
}

/// The owner record of a shoot, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnerStatus {
    pub standing: Standing,
    /// Name that was asked for last; empty before the first check, or if the Cluster lacks what it
    /// takes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Value that says that the shoot is ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ours: String,
    /// Value that names another seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Reason why the last check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Why>,
}

impl OwnerStatus {
    /// As in `owner.a.b says "there", not "here"`.
    pub fn sentence(&self) -> String {
        let Self { name, ours, .. } = self;
        let name = if name.is_empty() { "its name" } else { name };
        let found = match (self.standing, &self.elsewhere) {
            (Standing::Ours, _) => Some(format!("{ours:?}")),
            (_, Some(elsewhere)) => Some(format!("{elsewhere:?}, not {ours:?}")),
            _ => None,
        };
        match (found, self.category) {
            (Some(found), None) => format!("{name} says {found}"),
            (Some(found), Some(why)) => {
                format!("{name} said {found}, and cannot be resolved now: {why}")
            }
            (None, Some(why)) => format!("{name} cannot be resolved: {why}"),
            (None, None) => "no check has ended in time".to_owned(),
        }
    }
}

/// Checks of one shoot's record so far, as far as they matter.
#[derive(Debug, Default)]
struct Record {
    /// By the last check.
    status: OwnerStatus,
    /// Time at which the last check was sent that resolved it.
    resolved: Moment,
    /// Checks that have failed since.
    failures: u32,
    /// Time of the first failure, or at which a check that is overdue should have ended.
    silent_since: Moment,
    tolerated_until: Moment,
}

impl Record {
    fn new(check: &OwnerCheck, now: Moment) -> Self {
        Self {
            silent_since: now,
            tolerated_until: now + span(check.tolerance),
            ..Self::default()
        }
    }

    /// Applies the answer to a question (the name, and the value that says that the shoot is ours)
    /// that was sent at `sent`; returns the wait for the next check. Another question begins a new
    /// record. `chance` is a random number from 0 to 1.
    fn answered(
        &mut self,
        question: (String, String),
        answer: Answer,
        check: &OwnerCheck,
        [sent, now]: [Moment; 2],
        chance: f64,
    ) -> Duration {
        if self.question() != question {
            *self = Self::new(check, sent);
            (self.status.name, self.status.ours) = question;
        }
        let is_tolerated = now < self.tolerated_until;
        let status = &mut self.status;
        status.standing = status
            .standing
            .after(&answer, self.failures == 0, is_tolerated);
        let wait = if let Answer::Unresolved(why) = answer {
            (status.category, self.failures) = (Some(why), self.failures.saturating_add(1));
            doubling(AGAIN_AFTER, self.failures, check.interval)
        } else {
            (status.category, self.failures, self.resolved) = (None, 0, sent);
            status.elsewhere = match answer {
                Answer::Elsewhere(value) => Some(value.chars().take(SHOWN_OF_VALUE).collect()),
                _ => None,
            };
            match status.standing {
                Standing::Ours | Standing::Elsewhere => check.interval,
                _ => AGAIN_AFTER,
            }
        };
        let wait = wait.mul_f64(1.0 - JITTER * chance);
        self.silent_since = match self.failures {
            0 => now + span(wait + check.timeout),
            _ => self.silent_since.min(sent),
        };
        self.tolerated_until = self.silent_since + span(check.tolerance);
        wait
    }

    fn question(&self) -> (String, String) {
        (self.status.name.clone(), self.status.ours.clone())
    }

    /// Standing by the last check and the time since.
    fn standing(&self, now: Moment) -> Standing {
        if now < self.tolerated_until {
            self.status.standing
        } else {
            Standing::Unresolved
        }
    }
}

/// The records of all shoots that are checked; every replica has its own. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Owners(Arc<Mutex<BTreeMap<String, Record>>>);

impl Owners {
    /// Adds a shoot, unless it is known. Returns the standing by its last check.
    pub(crate) fn add(&self, namespace: &str, check: &OwnerCheck, now: Moment) -> Standing {
        let mut records = self.0.lock();
        let record = records.entry(namespace.to_owned());
        record
            .or_insert_with(|| Record::new(check, now))
            .status
            .standing
    }

    pub(crate) fn remove(&self, namespace: &str) {
        self.0.lock().remove(namespace);
    }

    fn read<T>(&self, namespace: &str, read: impl FnOnce(&mut Record) -> T) -> Option<T> {
        self.0.lock().get_mut(namespace).map(read)
    }

    /// Returns `None` if it is not checked.
    pub(crate) fn status(&self, namespace: &str, now: Moment) -> Option<OwnerStatus> {
        self.read(namespace, |record| OwnerStatus {
            standing: record.standing(now),
            ..record.status.clone()
        })
    }

    pub(crate) fn standings(&self, now: Moment) -> Vec<Standing> {
        self.0
            .lock()
            .values()
            .map(|record| record.standing(now))
            .collect()
    }

    /// Returns what a shoot's task may do. What was checked before this process was suspended, until
    /// `resumed`, is out of date: the shoot may have moved meanwhile.
    pub(crate) fn owner(
        &self,
        namespace: &str,
        on_loss: OnLoss,
        resumed: Moment,
        now: Moment,
    ) -> Owner {
        let owner = self.read(namespace, |record| {
            let is_recent = record.resolved >= resumed;
            match record.standing(now) {
                Standing::Ours if is_recent => Owner::Here,
                Standing::Ours | Standing::Unproven => Owner::LeaderOnly,
                Standing::Elsewhere
                    if on_loss == OnLoss::Passivate && is_recent && record.failures == 0 =>
                {
                    Owner::LeaderOnly
                }
                _ => Owner::Unknown,
            }
        });
        owner.unwrap_or(Owner::Unknown)
    }
}

/// Checks a shoot's record for as long as there is one, at first at once. Changes of its standing are
/// reported, and sent on.
pub(crate) async fn check(
    shared: Shared,
    resolver: Arc<Resolver>,
    namespace: String,
    changed: Sender<Key>,
) {
    let (owners, clock) = (shared.owners(), shared.clock);
    while let Some(last) = owners.read(&namespace, |record| record.question()) {
        let cluster = shared.seed.clusters.get("", &namespace);
        let asked =
            cluster.and_then(|cluster| question(&resolver.check, &cluster.facts(&namespace)));
        // A Cluster that cannot be read any more keeps its last question.
        let question = asked.unwrap_or(last);
        let sent = clock.now();
        let answer = resolver.ask(&question).await;
        let (result, now) = (<&str>::from(&answer), clock.now());
        count(&shared.metrics.owner_checks, [("result", result)]);
        tracing::debug!(namespace, result, "owner record checked");
        let applied = owners.read(&namespace, |record| {
            let before = record.status.standing;
            let wait = record.answered(
                question,
                answer,
                &resolver.check,
                [sent, now],
                fastrand::f64(),
            );
            (wait, before, record.status.clone())
        });
        let Some((wait, before, owner)) = applied else {
            return;
        };
        if before == owner.standing {
            shared.seed.wakers.wake(&namespace);
        } else {
            report(&shared.events, &namespace, before, &owner);
            let (name, namespace) = (namespace.clone(), String::new());
            changed.send(Key { namespace, name }).await.ok();
        }
        sleep(wait).await;
    }
}

/// Returns `None` if the Cluster lacks what it takes, or makes no DNS name of it.
fn question(check: &OwnerCheck, facts: &Facts) -> Option<(String, String)> {
    let name = check.name.fill(facts).filter(|name| is_dns_name(name));
    name.zip(check.value.fill(facts))
}

/// Reports a change of standing. A shoot that is ours from the beginning is no event.
fn report(events: &Events, namespace: &str, before: Standing, owner: &OwnerStatus) {
    let (standing, why) = (owner.standing.into_str(), owner.sentence());
    let is_ours = owner.standing == Standing::Ours;
    if is_ours {
        tracing::info!(namespace, standing, why, "shoot is ours");
    } else {
        let category = owner.category.map(<&str>::from);
        tracing::warn!(
            namespace,
            standing,
            category,
            why,
            "shoot is not known to be ours"
        );
    }
    let (reason, what) = match owner.standing {
        Standing::Ours if before.is_lost() => {
            ("OwnedAgain", "The shoot belongs to this seed again")
        }
        Standing::Elsewhere => ("OwnedElsewhere", "The shoot belongs to another seed"),
        Standing::Unresolved => ("OwnerUnresolved", "Nothing is written for the shoot"),
        _ => return,
    };
    let publish = if is_ours {
        Events::normal
    } else {
        Events::warning
    };
    publish(events, namespace, reason, &format!("{what}: {why}"));
}

/// Answers `/ownership/<namespace>`: is this seed known to own the shoot? A replica that has only
/// just begun says yes until it can know, so that its restart restarts nobody else.
pub(crate) fn ownership(shared: &Shared, namespace: &str) -> (StatusCode, String) {
    let (clusters, now) = (&shared.seed.clusters, shared.clock.now());
    let answer = |code, text: &str| (code, format!("{text}\n"));
    let missing = |text| answer(StatusCode::NOT_FOUND, text);
    let owned = |is_ours, text: &str| match is_ours {
        true => answer(StatusCode::OK, text),
        false => answer(StatusCode::SERVICE_UNAVAILABLE, text),
    };
    let Some(check) = &shared.config.borrow().owner_check else {
        return missing("owner records are not checked: the config has no ownerCheck");
    };
    match shared.owners().status(namespace, now) {
        Some(owner) => {
            let standing = owner.standing.into_str();
            owned(
                !owner.standing.is_lost(),
                &format!("{standing}: {}", owner.sentence()),
            )
        }
        None if clusters.get("", namespace).is_some() => owned(true, "no check has ended yet"),
        None if clusters.is_known() => missing("there is no Cluster of this name"),
        None => {
            let is_tolerated = now.elapsed_since_start() < span(check.tolerance);
            owned(is_tolerated, "the seed's Clusters are not known")
        }
    }
}

#[cfg(test)]
mod tests;
