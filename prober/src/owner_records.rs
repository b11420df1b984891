//! Owner records of all shoots, as the last checks have shown them. In memory; every replica has its
//! own.

pub(crate) mod record;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prober_core::config::OwnerCheck;
use prober_core::moment::Moment;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use self::record::{OwnerAnswer, OwnerRecord, Ownership, Question, Standing, Unresolved};

/// Most characters of a record's value that are repeated.
const SHOWN_OF_VALUE: usize = 100;

/// Clones share the records.
#[derive(Clone, Debug, Default)]
pub struct OwnerRecords {
    /// `None` while the config has no ownerCheck.
    checks: Arc<Mutex<Option<Checks>>>,
    /// Notified when a shoot is added, whose first check is due at once.
    pub added: Arc<Notify>,
}

#[derive(Debug)]
struct Checks {
    check: OwnerCheck,
    shoots: BTreeMap<String, CheckedShoot>,
}

#[derive(Debug)]
struct CheckedShoot {
    record: OwnerRecord,
    /// Last question.
    question: Option<Question>,
    is_under_way: bool,
    /// The standing that was reported last.
    reported: Ownership,
}

/// Checks that begin now, and the time of the next call.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Standings that have changed since the round before.
    pub changes: Vec<StandingChange>,
    /// Shoots to be checked, the most overdue first; their checks count as under way.
    pub due: Vec<String>,
    /// Time at which a check falls due, or a standing changes without an answer.
    pub next: Option<Moment>,
}

#[derive(Debug)]
pub(crate) struct StandingChange {
    pub namespace: String,
    pub before: Ownership,
    pub owner: OwnerStatus,
}

/// The owner record of a shoot, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerStatus {
    pub standing: Standing,
    /// Last question; `None` before the first check, or if the Cluster lacks what it takes.
    #[serde(flatten)]
    pub question: Option<Question>,
    /// Value that names another owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Reason why it could not be resolved.
    #[serde(rename = "category", skip_serializing_if = "Option::is_none")]
    pub why: Option<Unresolved>,
}

impl OwnerStatus {
    pub fn new(standing: Ownership, question: Option<&Question>, elsewhere: Option<&str>) -> Self {
        let elsewhere = elsewhere
            .filter(|_| matches!(standing, Ownership::Doubted | Ownership::Elsewhere { .. }));
        Self {
            standing: standing.into(),
            question: question.cloned(),
            elsewhere: elsewhere.map(|value| value.chars().take(SHOWN_OF_VALUE).collect()),
            why: standing.unresolved(),
        }
    }

    /// As in `owner.a.b says "there", not "here"`.
    pub fn sentence(&self) -> String {
        let question = self.question.as_ref();
        let (name, ours) = question.map_or(("its name", ""), |question| {
            (question.name.as_str(), question.ours.as_str())
        });
        match (&self.elsewhere, self.why) {
            (Some(elsewhere), _) => format!("{name} says {elsewhere:?}, not {ours:?}"),
            (_, Some(why)) => format!("{name} cannot be resolved: {why}"),
            _ if self.standing == Standing::Ours => format!("{name} says {ours:?}"),
            _ => "the first check is not over".to_owned(),
        }
    }
}

impl OwnerRecords {
    /// Applies the check of the config to these shoots. Earlier results stay if the question is the
    /// same, and count for nothing otherwise.
    pub fn apply(
        &self,
        check: Option<&OwnerCheck>,
        namespaces: impl Iterator<Item = String>,
        now: Moment,
    ) {
        let mut checks = self.checks.lock();
        if let (Some(checks), Some(check)) = (&mut *checks, check)
            && asks_alike(&checks.check, check)
        {
            checks.check = check.clone();
            for shoot in checks.shoots.values_mut() {
                shoot.is_under_way = false;
                shoot.record.ask_again(now);
            }
            return;
        }
        *checks = check.map(|check| Checks {
            check: check.clone(),
            shoots: namespaces
                .map(|namespace| (namespace, CheckedShoot::new(now)))
                .collect(),
        });
    }

    /// Adds or removes a shoot; `exists` says whether there is a Cluster of this name that can have
    /// an owner.
    pub fn update(&self, namespace: &str, exists: bool, now: Moment) {
        let mut checks = self.checks.lock();
        let Some(Checks { shoots, .. }) = &mut *checks else {
            return;
        };
        if !exists {
            shoots.remove(namespace);
        } else if !shoots.contains_key(namespace) {
            shoots.insert(namespace.to_owned(), CheckedShoot::new(now));
            self.added.notify_one();
        }
    }

    fn read<T>(
        &self,
        namespace: &str,
        read: impl FnOnce(&OwnerCheck, &CheckedShoot) -> Option<T>,
    ) -> Option<T> {
        let checks = self.checks.lock();
        let Checks { check, shoots } = checks.as_ref()?;
        read(check, shoots.get(namespace)?)
    }

    /// Standing of a shoot by this check.
    pub fn standing(&self, namespace: &str, check: &OwnerCheck, now: Moment) -> Ownership {
        self.standing_since(Moment::START, namespace, check, now)
    }

    /// The same for a process that was suspended until `resumed`: a shoot that was ours is unproven
    /// until the next check, since it may have moved meanwhile.
    pub(crate) fn standing_since(
        &self,
        resumed: Moment,
        namespace: &str,
        check: &OwnerCheck,
        now: Moment,
    ) -> Ownership {
        let standing = self.read(namespace, |applied, CheckedShoot { record, .. }| {
            let is_older = record.resolved_at().is_some_and(|at| at < resumed);
            match record.standing(check, now) {
                _ if !asks_alike(applied, check) => None,
                Ownership::Ours if is_older => Some(Ownership::Unproven(Unresolved::Suspended)),
                standing => Some(standing),
            }
        });
        standing.unwrap_or(Ownership::NotChecked)
    }

    /// Last question.
    pub fn question(&self, namespace: &str) -> Option<Question> {
        self.read(namespace, |_, shoot| shoot.question.clone())
    }

    pub fn status(&self, namespace: &str, now: Moment) -> Option<OwnerStatus> {
        self.read(namespace, |check, shoot| {
            Some(shoot.status(shoot.record.standing(check, now)))
        })
    }

    /// Standings of the shoots that are checked.
    pub(crate) fn standings(&self, now: Moment) -> Vec<Ownership> {
        let checks = self.checks.lock();
        let all = checks.iter().flat_map(|Checks { check, shoots }| {
            shoots
                .values()
                .map(move |shoot| shoot.record.standing(check, now))
        });
        all.collect()
    }

    /// Goes through all shoots, and begins at most `room` of the checks that are due.
    pub(crate) fn next_round(&self, now: Moment, room: usize) -> Round {
        let mut checks = self.checks.lock();
        let Some(Checks { check, shoots }) = &mut *checks else {
            return Round::default();
        };
        let changes = shoots
            .iter_mut()
            .filter_map(|(namespace, shoot)| shoot.take_change(namespace, check, now))
            .collect();
        let mut due: Vec<_> = shoots
            .iter_mut()
            .filter(|(_, shoot)| !shoot.is_under_way && shoot.record.next() <= now)
            .collect();
        due.sort_by_key(|(_, shoot)| shoot.record.next());
        let begin = |(namespace, shoot): (&String, &mut CheckedShoot)| {
            shoot.is_under_way = true;
            shoot.record.ask(now);
            namespace.clone()
        };
        Round {
            changes,
            due: due.into_iter().take(room).map(begin).collect(),
            next: shoots
                .values()
                .filter_map(|shoot| shoot.next(check, now))
                .min(),
        }
    }

    pub fn answered(
        &self,
        namespace: &str,
        question: Option<Question>,
        answer: OwnerAnswer,
        sent: Moment,
        now: Moment,
        chance: f64,
    ) {
        let mut checks = self.checks.lock();
        // An answer to a check that was sent for an earlier shoot of this name is not about this
        // one.
        if let Some(Checks { check, shoots }) = &mut *checks
            && let Some(shoot) = shoots.get_mut(namespace)
            && shoot.record.began <= sent
        {
            if shoot.question != question {
                shoot.record.ask_again(now);
            }
            (shoot.is_under_way, shoot.question) = (false, question);
            shoot.record.answered(answer, sent, check, now, chance);
        }
    }
}

/// True if two checks have the same question, however often and of whom they ask it.
fn asks_alike(one: &OwnerCheck, other: &OwnerCheck) -> bool {
    (&one.name, &one.value) == (&other.name, &other.value)
}

impl CheckedShoot {
    fn new(now: Moment) -> Self {
        Self {
            record: OwnerRecord::new(now),
            question: None,
            is_under_way: false,
            reported: Ownership::NotChecked,
        }
    }

    fn take_change(
        &mut self,
        namespace: &str,
        check: &OwnerCheck,
        now: Moment,
    ) -> Option<StandingChange> {
        let standing = self.record.standing(check, now);
        let before = std::mem::replace(&mut self.reported, standing);
        (before.into_str() != standing.into_str()).then(|| StandingChange {
            namespace: namespace.to_owned(),
            before,
            owner: self.status(standing),
        })
    }

    /// Time of its next turn. A check that is due and waits for room waits for an answer.
    fn next(&self, check: &OwnerCheck, now: Moment) -> Option<Moment> {
        let due = Some(self.record.next()).filter(|&at| !self.is_under_way && at > now);
        due.into_iter()
            .chain(self.record.turns_at(check, now))
            .min()
    }

    fn status(&self, standing: Ownership) -> OwnerStatus {
        OwnerStatus::new(standing, self.question.as_ref(), self.record.elsewhere())
    }
}

#[cfg(test)]
mod tests;
