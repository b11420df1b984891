//! What happened last, the newest first: in memory, and no more of it than so many entries per shoot and in all. Of a shoot that is well
//! from the beginning there is none.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound, Utc};
use common::status::span;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Enough for the last few outages of a shoot.
const PER_SHOOT: usize = 20;
/// An outage of all shoots of a large seed leaves two entries each: of 250 shoots all are kept.
const IN_ALL: usize = 500;

/// Clones share it.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<VecDeque<Entry>>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When it happened, or began; of several times in a row the last one.
    pub at: DateTime<Utc>,
    /// The shoot's namespace; none for what concerns all shoots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub what: What,
    pub text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ongoing: bool,
    /// Of what began, when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// How often the same happened in a row.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The verdict changed.
    Verdict,
    Scaling,
    /// Probes were not complete.
    Failure,
    /// A zone was lost while the shoot was not.
    Zone,
    Leader,
    /// The owner record says that the shoot is not ours, or cannot be resolved.
    Owner,
    /// What only a later version knows.
    #[serde(other)]
    Other,
}

fn once() -> u32 {
    1
}

fn is_once(times: &u32) -> bool {
    *times == 1
}

impl History {
    /// Notes what is over at once.
    pub fn happened(&self, namespace: Option<&str>, what: What, text: String) {
        self.add(namespace, what, text, false);
    }

    /// Notes what goes on until [`Self::ended`].
    pub fn began(&self, namespace: Option<&str>, what: What, text: String) {
        self.add(namespace, what, text, true);
    }

    pub fn ended(&self, namespace: Option<&str>, what: What, outcome: Option<String>) {
        let mut entries = self.0.lock();
        let found = entries.iter_mut().find(|entry| entry.ongoing && entry.what == what && entry.is_of(namespace));
        if let Some(entry) = found {
            entry.end();
            entry.outcome = outcome;
        }
    }

    /// Nobody will learn any more how what goes on in a shoot ends.
    pub fn forgo(&self, namespace: &str) {
        self.0.lock().iter_mut().filter(|entry| entry.ongoing && entry.is_of(Some(namespace))).for_each(Entry::end);
    }

    /// The newest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.0.lock().iter().cloned().collect()
    }

    fn add(&self, namespace: Option<&str>, what: What, text: String, ongoing: bool) {
        let mut entries = self.0.lock();
        let newest = entries.iter().position(|entry| entry.is_of(namespace));
        let same = newest.filter(|&at| !entries[at].ongoing && entries[at].what == what && entries[at].text == text);
        let times = same.and_then(|at| entries.remove(at)).map_or(1, |before| before.times.saturating_add(1));
        if entries.iter().filter(|entry| entry.is_of(namespace)).count() >= PER_SHOOT
            && let Some(oldest) = entries.iter().rposition(|entry| entry.is_of(namespace))
        {
            entries.remove(oldest);
        }
        entries.truncate(IN_ALL - 1);
        let namespace = namespace.map(str::to_owned);
        entries.push_front(Entry { at: now(), namespace, what, text, ongoing, ended_at: None, outcome: None, times });
    }
}

impl Entry {
    fn is_of(&self, namespace: Option<&str>) -> bool {
        self.namespace.as_deref() == namespace
    }

    fn end(&mut self) {
        (self.ongoing, self.ended_at) = (false, Some(now()));
    }

    /// All of it but when and where, for people.
    pub fn sentence(&self) -> String {
        let mut sentence = self.text.clone();
        // Writing to a String does not fail.
        if let Some(outcome) = &self.outcome {
            let _ = write!(sentence, ": {outcome}");
        }
        match self.ended_at {
            _ if self.ongoing => sentence.push_str(", not over yet"),
            Some(ended) => {
                let _ = write!(sentence, ", for {}", span((ended - self.at).num_seconds()));
            }
            None => {}
        }
        if self.times > 1 {
            let _ = write!(sentence, ", the last of {} in a row", self.times);
        }
        sentence
    }
}

/// Milliseconds are enough to tell what came first.
fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

#[cfg(test)]
mod tests;
