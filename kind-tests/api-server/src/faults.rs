//! Scripted faults: which requests meet them, and what happens to those.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::requests::Record;

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// An error with this HTTP status in the API's form; nothing is applied.
    Status(u16),
    /// Any answer; nothing is applied.
    Answer {
        /// HTTP status.
        code: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The body as it goes over the wire.
        body: Bytes,
    },
    /// The request is served after this time.
    Delay(Duration),
    /// The request is served when the token is cancelled: it was on its way for so long.
    Hold(CancellationToken),
    /// No answer ever; nothing is applied.
    Stall,
    /// The request is applied and its answer never sent.
    StallAfter,
    /// The connection ends without an answer; nothing is applied.
    CloseBefore,
    /// The request is applied, then the connection ends without an answer.
    CloseAfter,
    /// 200 and bytes that are neither JSON nor protobuf, under the content type of the real answer.
    Garbage,
    /// The real answer, cut in the middle by the end of the connection.
    Truncate,
    /// The real answer in chunks of `bytes`, as a kube-apiserver sends lists, each after a `pause`.
    Slow {
        /// Bytes in one piece.
        bytes: usize,
        /// Time before each piece.
        pause: Duration,
    },
    /// 200 and a message that never ends, one piece of `bytes` after each `pause`: most of it is a
    /// field that nobody reads.
    Endless {
        /// Bytes in one piece.
        bytes: usize,
        /// Time before each piece.
        pause: Duration,
    },
}

impl Fault {
    /// An API error.
    pub fn status(code: u16) -> Self {
        Self::Status(code)
    }

    /// 429 with Retry-After in seconds, as API priority and fairness answers.
    pub fn throttle(seconds: u32) -> Self {
        let header = |name: &str, value: String| (name.to_owned(), value);
        Self::Answer {
            code: 429,
            headers: vec![
                header("content-type", "text/plain; charset=utf-8".to_owned()),
                header("retry-after", seconds.to_string()),
            ],
            body: Bytes::from_static(b"Too many requests, please try again later.\n"),
        }
    }
}

/// Which requests meet a fault. Of several that match a request, the one added first has it.
pub struct When {
    matches: Box<dyn Fn(&Record) -> bool + Send + Sync>,
    skip: u64,
    times: u64,
}

impl When {
    /// Every request that fulfils a condition.
    pub fn matches(condition: impl Fn(&Record) -> bool + Send + Sync + 'static) -> Self {
        Self {
            matches: Box::new(condition),
            skip: 0,
            times: u64::MAX,
        }
    }

    /// Every request.
    pub fn any() -> Self {
        Self::matches(|_| true)
    }

    /// Every request with this method and path.
    pub fn request(method: &str, path: &str) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        Self::matches(move |record| record.method == method && record.path == path)
    }

    /// Every request with this verb on this resource (`list`, `nodes`; `patch`,
    /// `deployments.apps`).
    pub fn verb(verb: &str, resource: &str) -> Self {
        let (verb, resource) = (verb.to_owned(), resource.to_owned());
        Self::matches(move |record| record.verb == verb && record.resource == resource)
    }

    /// Without the first `count` of them.
    #[must_use]
    pub fn after(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// At most `count` times.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// One time.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }
}

/// Names a scripted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(u64);

/// The script of one server; can be changed while it runs.
#[derive(Default)]
pub struct Faults {
    script: watch::Sender<Vec<ScriptedFault>>,
    added: AtomicU64,
}

struct ScriptedFault {
    id: FaultId,
    when: When,
    fault: Fault,
    /// How many requests its condition was true of.
    matched: u64,
}

impl ScriptedFault {
    fn hits(&self) -> u64 {
        self.matched
            .saturating_sub(self.when.skip)
            .min(self.when.times)
    }

    /// Whether a request meets it.
    fn is_met(&mut self, record: &Record) -> bool {
        let before = self.hits();
        self.matched += u64::from((self.when.matches)(record));
        self.hits() > before
    }
}

fn hits(script: &[ScriptedFault], id: FaultId) -> u64 {
    let scripted = script.iter().find(|scripted| scripted.id == id);
    scripted.map_or(0, ScriptedFault::hits)
}

impl Faults {
    /// Adds a fault behind those already there.
    pub fn add(&self, when: When, fault: Fault) -> FaultId {
        let id = FaultId(self.added.fetch_add(1, Ordering::Relaxed));
        self.script.send_modify(|script| {
            script.push(ScriptedFault {
                id,
                when,
                fault,
                matched: 0,
            });
        });
        id
    }

    /// Takes a fault out.
    pub fn remove(&self, id: FaultId) {
        let others = |script: &mut Vec<_>| script.retain(|one: &ScriptedFault| one.id != id);
        self.script.send_modify(others);
    }

    /// Takes all faults out.
    pub fn clear(&self) {
        self.script.send_modify(Vec::clear);
    }

    /// How many requests met a fault so far; 0 if it was taken out.
    pub fn hits(&self, id: FaultId) -> u64 {
        hits(&self.script.borrow(), id)
    }

    /// Waits until `count` requests have met a fault.
    pub async fn met(&self, id: FaultId, count: u64) {
        let mut script = self.script.subscribe();
        let met = script.wait_for(|script| hits(script, id) >= count).await;
        met.expect("the script lives as long as who waits for it");
    }

    /// The fault that a request meets, counted.
    pub(crate) fn meet(&self, record: &Record) -> Option<Fault> {
        let mut met = None;
        self.script.send_if_modified(|script| {
            let scripted = script
                .iter_mut()
                .find_map(|one| one.is_met(record).then_some(one));
            met = scripted.map(|scripted| scripted.fault.clone());
            met.is_some()
        });
        met
    }
}
