//! Owner records: DNS TXT records that name the seeds that shoots belong to. They are for the bad
//! case of a migration, in which Gardener cannot reach the old seed to say there that the shoot is
//! gone. Every replica checks all shoots of its seed, probed or not.
//!
//! ```text
//! Cluster --> question --dns--> OwnerStatus --> which task runs (manager), what it may write
//!                                   '-------> /ownership, page, metrics, log, Events
//! ```
//!
//! Not knowing is never evidence: a failed check changes nothing for as long as is tolerated, and
//! then the shoot is left alone.

pub(crate) mod dns;

use std::sync::Arc;
use std::time::Duration;

use common::events::Events;
use http::StatusCode;
use prober_core::config::{OnLoss, OwnerCheck};
use prober_core::moment::Moment;
use prober_core::shoot::Owner;
use prober_core::span;
use prober_core::template::{Facts, is_dns_name};
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use self::dns::Resolver;
use crate::observability::metrics::count;
use crate::shared::Shared;

/// Wait after the first check that failed, and after the first that names another seed.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Largest share of the wait between two checks that is left out at random, so that shoots get out
/// of step.
const JITTER: f64 = 0.1;
/// Most characters of a record's value that are repeated.
const SHOWN_OF_VALUE: usize = 100;

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
    #[error("there is no TXT record of this name")]
    NoRecord,
    #[error("there are TXT records with different values")]
    Ambiguous,
    #[error("there was no answer in time")]
    Timeout,
    #[error("no DNS server can be reached, or it failed")]
    Server,
    #[error("the Cluster does not say what the name or the value takes")]
    Unknown,
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
    pub(crate) const fn is_lost(self) -> bool {
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
}

/// The owner record of a shoot, by the checks so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnerStatus {
    pub standing: Standing,
    /// Name that was asked for last; empty before the first check, or if the Cluster lacks what it
    /// takes.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    /// Value that says that the shoot is ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    ours: String,
    /// Value that names another seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<String>,
    /// Reason why the last check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<Why>,
    /// Time at which the last check was sent that resolved it.
    #[serde(skip)]
    resolved: Moment,
    /// Time at which the first of the checks was sent that have failed since.
    #[serde(skip)]
    failing_since: Option<Moment>,
    /// Time of the next check.
    #[serde(skip)]
    due: Moment,
}

impl OwnerStatus {
    /// Applies the answer to a question (the name, and the value that says that the shoot is ours)
    /// that was sent at `sent`; returns the wait for the next check. Another question begins a new
    /// record.
    fn answered(
        &mut self,
        (name, ours): (String, String),
        answer: Result<String, Why>,
        check: &OwnerCheck,
        [sent, now]: [Moment; 2],
    ) -> Duration {
        if (&self.name, &self.ours) != (&name, &ours) {
            *self = Self {
                name,
                ours,
                ..Self::default()
            };
        }
        match answer {
            Err(why) => {
                let since = *self.failing_since.get_or_insert(sent);
                let failing = (now - since).to_std().unwrap_or_default();
                self.category = Some(why);
                self.standing = match self.standing {
                    _ if failing >= check.tolerance => Standing::Unresolved,
                    Standing::NotChecked => Standing::Unproven,
                    before => before,
                };
                failing.clamp(AGAIN_AFTER, check.interval)
            }
            Ok(value) => {
                let is_second = self.elsewhere.is_some() && self.category.is_none();
                (self.category, self.failing_since, self.resolved) = (None, None, sent);
                let is_ours = value == self.ours;
                self.elsewhere = (!is_ours).then(|| value.chars().take(SHOWN_OF_VALUE).collect());
                self.standing = match self.standing {
                    _ if is_ours => Standing::Ours,
                    before if is_second || before == Standing::Elsewhere => Standing::Elsewhere,
                    // What is lost stays so until it is known whose it is.
                    Standing::Unresolved => Standing::Unresolved,
                    _ => Standing::Doubted,
                };
                match self.standing {
                    Standing::Ours | Standing::Elsewhere => check.interval,
                    _ => AGAIN_AFTER,
                }
            }
        }
    }

    /// Has the next check come now.
    pub(crate) fn check_at_once(&mut self) {
        self.due = Moment::START;
    }

    /// Returns what the shoot's task may do. What was checked before this process was suspended,
    /// until `resumed`, is out of date: the shoot may have moved meanwhile.
    pub(crate) fn owner(&self, on_loss: OnLoss, resumed: Moment) -> Owner {
        let is_recent = self.resolved >= resumed;
        match self.standing {
            Standing::Ours if is_recent => Owner::Here,
            Standing::Ours | Standing::Unproven => Owner::LeaderOnly,
            Standing::Elsewhere
                if on_loss == OnLoss::Passivate && is_recent && self.category.is_none() =>
            {
                Owner::LeaderOnly
            }
            _ => Owner::Unknown,
        }
    }

    /// As in `owner.a.b says "there", not "here"`.
    pub fn sentence(&self) -> String {
        let Self { name, ours, .. } = self;
        let name = if name.is_empty() { "its name" } else { name };
        match (self.category, &self.elsewhere) {
            (Some(why), _) => format!("{name} cannot be resolved: {why}"),
            (None, Some(elsewhere)) => format!("{name} says {elsewhere:?}, not {ours:?}"),
            (None, None) if self.standing == Standing::Ours => format!("{name} says {ours:?}"),
            (None, None) => "no check has ended yet".to_owned(),
        }
    }
}

/// Checks a shoot's record, at first at once, until its standing changes, which is reported.
pub(crate) async fn follow(shared: Shared, resolver: Arc<Resolver>, namespace: String) {
    let (statuses, clock) = (&shared.statuses, shared.clock);
    while let Some(mut owner) = statuses.owner(&namespace, |record| record.clone()) {
        clock.reach(Some(owner.due)).await;
        let before = owner.standing;
        let cluster = shared.seed.clusters.get("", &namespace);
        let asked =
            cluster.and_then(|cluster| question(&resolver.check, &cluster.facts(&namespace)));
        // A Cluster that cannot be read any more keeps its last question.
        let (name, ours) = asked.unwrap_or_else(|| (owner.name.clone(), owner.ours.clone()));
        let sent = clock.now();
        let answer = resolver.ask(&name).await;
        let result = match &answer {
            Ok(value) if *value == ours => "ours",
            Ok(_) => "elsewhere",
            Err(why) => why.into_str(),
        };
        count(&shared.metrics.owner_checks, [("result", result)]);
        let now = clock.now();
        let wait = owner.answered((name, ours), answer, &resolver.check, [sent, now]);
        owner.due = now + span(wait.mul_f64(1.0 - JITTER * fastrand::f64()));
        statuses.owner(&namespace, |record| {
            if record.is_some() {
                *record = Some(owner.clone());
            }
        });
        if before != owner.standing {
            return report(&shared.events, &namespace, before, &owner);
        }
        shared.seed.wakers.wake(&namespace);
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
    tracing::info!(
        namespace,
        standing,
        why,
        "owner record changes what is known of the shoot"
    );
    let warning = |reason, what| events.warning(namespace, reason, &format!("{what}: {why}"));
    match owner.standing {
        Standing::Ours if before.is_lost() => {
            let text = format!("The shoot belongs to this seed again: {why}");
            events.normal(namespace, "OwnedAgain", &text);
        }
        Standing::Elsewhere => warning("OwnedElsewhere", "The shoot belongs to another seed"),
        Standing::Unresolved => warning("OwnerUnresolved", "Nothing is written for the shoot"),
        _ => {}
    }
}

/// Answers `/ownership/<namespace>`: is this seed known to own the shoot? A replica that has only
/// just begun says yes until it can know, so that its restart restarts nobody else.
pub(crate) fn ownership(shared: &Shared, namespace: &str) -> (StatusCode, String) {
    let clusters = &shared.seed.clusters;
    let answer = |code, text: &str| (code, format!("{text}\n"));
    let owned = |is_ours, text: &str| match is_ours {
        true => answer(StatusCode::OK, text),
        false => answer(StatusCode::SERVICE_UNAVAILABLE, text),
    };
    let Some(check) = &shared.config.borrow().owner_check else {
        let text = "owner records are not checked: the config has no ownerCheck";
        return answer(StatusCode::NOT_FOUND, text);
    };
    match shared.statuses.owner(namespace, |record| record.clone()) {
        Some(owner) => {
            let (standing, why) = (owner.standing.into_str(), owner.sentence());
            owned(!owner.standing.is_lost(), &format!("{standing}: {why}"))
        }
        None if clusters.get("", namespace).is_some() => owned(true, "no check has ended yet"),
        None if clusters.is_known() => {
            answer(StatusCode::NOT_FOUND, "there is no Cluster of this name")
        }
        None => {
            let since_start = shared.clock.now().elapsed_since_start();
            let is_tolerated = since_start < span(check.tolerance);
            owned(is_tolerated, "the seed's Clusters are not known")
        }
    }
}

#[cfg(test)]
mod tests;
