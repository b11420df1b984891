//! The owner records of all shoots, as the last checks have shown them. In memory; every replica
//! has its own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prober_core::config::OwnerCheck;
use prober_core::moment::Moment;
use prober_core::owner::{Answer, OwnerRecord, Question, Standing, Unresolved};
use serde::Serialize;
use tokio::sync::Notify;

/// So many letters of what others say are repeated.
const SHOWN_OF_VALUE: usize = 100;

/// Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OwnerRecords {
    inner: Arc<Mutex<Inner>>,
    /// There is a record that was not there before.
    pub added: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    /// None while nothing is checked.
    check: Option<Arc<OwnerCheck>>,
    records: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    record: OwnerRecord,
    /// What was asked for last.
    question: Option<Question>,
    is_under_way: bool,
    /// The standing that was reported last.
    reported: Standing,
}

/// What is to be done now, and when to look again.
#[derive(Debug, Default)]
pub struct Turn {
    /// What has changed since the turn before.
    pub changes: Vec<Change>,
    /// The shoots to be checked, the most overdue first; their checks are under way from now on.
    pub due: Vec<String>,
    /// When something happens by itself: a check falls due, or a standing changes with no answer.
    pub next: Option<Moment>,
}

/// A change of a shoot's standing.
#[derive(Debug)]
pub struct Change {
    pub namespace: String,
    pub before: Standing,
    pub after: Standing,
    pub owner: OwnerStatus,
}

/// The owner record of a shoot, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerStatus {
    /// `ours`, `not_checked`, `unproven`, `doubted`, `elsewhere` or `unresolved`.
    pub standing: &'static str,
    /// What was asked for; none before the first check, or if the Cluster does not say.
    #[serde(flatten)]
    pub question: Option<Question>,
    /// What it says of another owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Why it could not be resolved.
    #[serde(rename = "category", skip_serializing_if = "Option::is_none")]
    pub why: Option<Unresolved>,
}

impl OwnerStatus {
    pub fn new(standing: Standing, question: Option<&Question>, elsewhere: Option<&str>) -> Self {
        let elsewhere = elsewhere
            .filter(|_| matches!(standing, Standing::Doubted | Standing::Elsewhere { .. }));
        Self {
            standing: standing.into_str(),
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
            _ if self.standing == "ours" => format!("{name} says {ours:?}"),
            _ => "the first check is not over".to_owned(),
        }
    }
}

impl OwnerRecords {
    /// Checks by this from now on, for these shoots; nothing where it is none. What was found goes
    /// on to hold where the same is asked for in another way. Else it counts for nothing.
    pub fn begin(
        &self,
        check: Option<&OwnerCheck>,
        namespaces: impl Iterator<Item = String>,
        now: Moment,
    ) {
        let mut inner = self.inner.lock();
        let goes_on = inner
            .check
            .as_deref()
            .zip(check)
            .is_some_and(|(before, check)| asks_alike(before, check));
        inner.check = check.cloned().map(Arc::new);
        if goes_on {
            for entry in inner.records.values_mut() {
                entry.is_under_way = false;
                entry.record.ask_again(now);
            }
            return;
        }
        inner.records = match check {
            Some(_) => namespaces
                .map(|namespace| (namespace, Entry::new(now)))
                .collect(),
            None => HashMap::new(),
        };
    }

    /// Takes in that there is a Cluster of this name whose owner counts, or none any more.
    pub fn follow(&self, namespace: &str, exists: bool, now: Moment) {
        let mut inner = self.inner.lock();
        if inner.check.is_none() {
        } else if !exists {
            inner.records.remove(namespace);
        } else if !inner.records.contains_key(namespace) {
            inner.records.insert(namespace.to_owned(), Entry::new(now));
            self.added.notify_one();
        }
    }

    /// The standing of a shoot by this check.
    pub fn standing(&self, namespace: &str, check: &OwnerCheck, now: Moment) -> Standing {
        let inner = self.inner.lock();
        let checked = inner
            .check
            .as_deref()
            .is_some_and(|known| asks_alike(known, check));
        let entry = inner.records.get(namespace).filter(|_| checked);
        entry.map_or(Standing::NotChecked, |entry| {
            entry.record.standing(check, now)
        })
    }

    /// The same for a process that was suspended until then. That a shoot is ours is unproven until
    /// it was checked again: it may have moved meanwhile.
    pub fn standing_since(
        &self,
        resumed: Moment,
        namespace: &str,
        check: &OwnerCheck,
        now: Moment,
    ) -> Standing {
        let standing = self.standing(namespace, check, now);
        let is_older = |entry: &Entry| entry.record.resolved_at().is_some_and(|at| at < resumed);
        if standing == Standing::Ours
            && self
                .inner
                .lock()
                .records
                .get(namespace)
                .is_some_and(is_older)
        {
            return Standing::Unproven(Unresolved::Suspended);
        }
        standing
    }

    /// What was asked for last.
    pub fn question(&self, namespace: &str) -> Option<Question> {
        self.inner.lock().records.get(namespace)?.question.clone()
    }

    pub fn status(&self, namespace: &str, now: Moment) -> Option<OwnerStatus> {
        let inner = self.inner.lock();
        let (check, entry) = (inner.check.as_ref()?, inner.records.get(namespace)?);
        Some(entry.status(entry.record.standing(check, now)))
    }

    /// When the next check of a shoot is due.
    #[cfg(test)]
    pub fn due(&self, namespace: &str) -> Option<Moment> {
        self.inner
            .lock()
            .records
            .get(namespace)
            .map(|entry| entry.record.next())
    }

    pub fn count(&self) -> usize {
        self.inner.lock().records.len()
    }

    /// The standings of the shoots that are checked.
    pub fn standings(&self, now: Moment) -> Vec<Standing> {
        let inner = self.inner.lock();
        let checked = inner.check.iter().flat_map(|check| {
            inner
                .records
                .values()
                .map(move |entry| entry.record.standing(check, now))
        });
        checked.collect()
    }

    /// One pass over all records. Of the checks that are due at most `room` begin.
    pub fn turn(&self, now: Moment, room: usize) -> Turn {
        let mut inner = self.inner.lock();
        let Inner {
            check: Some(check),
            records,
        } = &mut *inner
        else {
            return Turn::default();
        };
        let changes = records
            .iter_mut()
            .filter_map(|(namespace, entry)| entry.take_change(namespace, check, now))
            .collect();
        let is_due = |entry: &Entry| !entry.is_under_way && entry.record.next() <= now;
        let mut due: Vec<_> = records
            .iter_mut()
            .filter(|(_, entry)| is_due(entry))
            .collect();
        due.sort_by_key(|(_, entry)| entry.record.next());
        let begin = |(namespace, entry): (&String, &mut Entry)| {
            entry.is_under_way = true;
            entry.record.ask(now);
            namespace.clone()
        };
        let due = due.into_iter().take(room).map(begin).collect();
        Turn {
            changes,
            due,
            next: records
                .values()
                .filter_map(|entry| entry.next(check, now))
                .min(),
        }
    }

    pub fn answered(
        &self,
        namespace: &str,
        question: Option<Question>,
        answer: Answer,
        sent: Moment,
        now: Moment,
        chance: f64,
    ) {
        let mut inner = self.inner.lock();
        let Inner {
            check: Some(check),
            records,
        } = &mut *inner
        else {
            return;
        };
        // An answer to a check that was sent for a shoot of this name before is not of this one.
        if let Some(entry) = records
            .get_mut(namespace)
            .filter(|entry| entry.record.began <= sent)
        {
            if entry.question != question {
                entry.record.ask_again(now);
            }
            (entry.is_under_way, entry.question) = (false, question);
            entry.record.answered(answer, sent, check, now, chance);
        }
    }
}

/// Whether two checks ask for the same, however often and of whom.
fn asks_alike(one: &OwnerCheck, other: &OwnerCheck) -> bool {
    (&one.name, &one.value) == (&other.name, &other.value)
}

impl Entry {
    fn new(now: Moment) -> Self {
        Self {
            record: OwnerRecord::new(now),
            question: None,
            is_under_way: false,
            reported: Standing::NotChecked,
        }
    }

    /// How its standing has changed since this was asked last.
    fn take_change(&mut self, namespace: &str, check: &OwnerCheck, now: Moment) -> Option<Change> {
        let after = self.record.standing(check, now);
        let before = std::mem::replace(&mut self.reported, after);
        let changed = before.into_str() != after.into_str();
        changed.then(|| Change {
            namespace: namespace.to_owned(),
            before,
            after,
            owner: self.status(after),
        })
    }

    /// When something happens to it by itself. A check that is due and has to wait for room waits
    /// for an answer.
    fn next(&self, check: &OwnerCheck, now: Moment) -> Option<Moment> {
        let due = Some(self.record.next()).filter(|&at| !self.is_under_way && at > now);
        due.into_iter()
            .chain(self.record.turns_at(check, now))
            .min()
    }

    fn status(&self, standing: Standing) -> OwnerStatus {
        OwnerStatus::new(standing, self.question.as_ref(), self.record.elsewhere())
    }
}

#[cfg(test)]
mod tests;
