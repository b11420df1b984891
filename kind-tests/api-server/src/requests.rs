//! The log of requests.

use std::collections::VecDeque;

use tokio::{sync::watch, time::Instant};

/// One request. It is logged on arrival; the status is filled in when the answer begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Counts from 0, over the server's life.
    pub number: u64,
    /// When it arrived; `None` only in records made by hand.
    pub at: Option<Instant>,
    /// Which connection it came on, counted from 1; 0 without one.
    pub connection: u64,
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Query, undecoded.
    pub query: String,
    /// Name behind the token; empty for a token nobody has.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`; for paths outside of
    /// resources the method in lower case.
    pub verb: String,
    /// Full name with a subresource behind a slash; empty outside of resources.
    pub resource: String,
    /// Empty at cluster scope.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// HTTP status; `None` while there is no answer.
    pub status: Option<u16>,
}

impl Record {
    /// Whether it would change something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete") && !self.is_dry_run()
    }

    /// Whether it is answered as if it were made, and changes nothing.
    pub fn is_dry_run(&self) -> bool {
        self.query.split('&').any(|one| one == "dryRun=All")
    }
}

/// All requests to one server: their number over its life, and the newest ones in full.
#[derive(Debug)]
pub struct Requests {
    log: watch::Sender<Log>,
    kept: usize,
}

#[derive(Debug, Default)]
struct Log {
    records: VecDeque<Record>,
    total: u64,
}

impl Requests {
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            log: watch::Sender::default(),
            kept: kept.max(1),
        }
    }

    /// How many requests came so far.
    pub fn total(&self) -> u64 {
        self.log.borrow().total
    }

    /// The newest requests, oldest first.
    pub fn all(&self) -> Vec<Record> {
        self.log.borrow().records.iter().cloned().collect()
    }

    /// How many of the kept requests fulfil a condition.
    pub fn count(&self, condition: impl Fn(&Record) -> bool) -> usize {
        let log = self.log.borrow();
        log.records
            .iter()
            .filter(|record| condition(record))
            .count()
    }

    /// Forgets the kept requests; the numbers go on.
    pub fn clear(&self) {
        self.log.send_modify(|log| log.records.clear());
    }

    /// Waits until `condition` finds something in the kept requests; it is checked now and after
    /// every request and answer. No deadline.
    pub async fn wait_for<T>(
        &self,
        mut condition: impl FnMut(&VecDeque<Record>) -> Option<T>,
    ) -> T {
        let mut found = None;
        let mut log = self.log.subscribe();
        let waited = log.wait_for(|log| {
            found = condition(&log.records);
            found.is_some()
        });
        let waited = waited.await.map(drop);
        waited.expect("the log lives as long as who waits for it");
        found.expect("it waited for this")
    }

    /// Logs an arrival.
    pub(crate) fn arrived(&self, record: &mut Record) {
        self.log.send_modify(|log| {
            record.number = log.total;
            log.total += 1;
            if log.records.len() == self.kept {
                log.records.pop_front();
            }
            log.records.push_back(record.clone());
        });
    }

    /// Logs an answer.
    pub(crate) fn answered(&self, number: u64, status: u16) {
        self.log.send_modify(|log| {
            let mut newest = log.records.iter_mut().rev();
            if let Some(record) = newest.find(|record| record.number == number) {
                record.status = Some(status);
            }
        });
    }
}
