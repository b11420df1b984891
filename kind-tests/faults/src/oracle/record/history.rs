//! What became of a shoot's dependents and nodes, for as long as a record of an outage may tell it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::keep;
use crate::pace::GRACE;
use crate::shoot::KCM;
use crate::writes::ScaledDependent;

/// How many changes and silences are kept: more than there are in the longest outage.
const KEPT: usize = 2000;
/// How often kube-controller-manager looks at its nodes (`--node-monitor-period`).
const MONITOR: Duration = Duration::from_secs(5);
/// How long it may take to begin: its pod, and the Lease of the one before.
const START: Duration = Duration::from_secs(20);

/// A change of a dependent.
#[derive(Clone, Debug)]
pub struct Change {
    pub name: String,
    pub at: Instant,
    /// Which replica made it; none if somebody else did.
    pub writer: Option<String>,
    /// How it was before; none if it was not there.
    pub was: Option<ScaledDependent>,
    /// How it is since then; none if it is gone.
    pub is: Option<ScaledDependent>,
}

impl Change {
    /// Its replicas then.
    pub fn to(&self) -> Option<i64> {
        self.is.as_ref().map(|is| is.replicas)
    }

    /// Whether its replicas are others than before.
    pub fn scales(&self) -> bool {
        self.to() != self.was.as_ref().map(|was| was.replicas)
    }
}

/// A time in which something was so, and who began and ended it.
#[derive(Clone, Debug)]
pub struct Span {
    pub from: Instant,
    pub by: Option<String>,
    pub until: Option<Instant>,
    pub ended_by: Option<String>,
}

/// A time in which a node renewed nothing.
#[derive(Clone, Debug)]
pub struct Silence {
    pub node: String,
    pub from: Instant,
    pub until: Instant,
}

#[derive(Debug, Default)]
pub struct History {
    changes: VecDeque<Change>,
    silences: VecDeque<Silence>,
}

impl History {
    pub fn changed(&mut self, change: Change) {
        keep(&mut self.changes, KEPT, change);
    }

    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter()
    }

    /// A node has renewed, or is gone; what was silent for no grace matters to nobody.
    pub fn renewed(&mut self, node: &str, from: Instant, until: Instant) {
        if until.saturating_duration_since(from) >= GRACE {
            let node = node.to_owned();
            keep(&mut self.silences, KEPT, Silence { node, from, until });
        }
    }

    pub fn silences(&self) -> impl Iterator<Item = &Silence> {
        self.silences.iter()
    }

    /// When a dependent was at 0 because the watchdog held it down; without its marker it still is.
    pub fn held_down(&self, name: &str) -> Vec<Span> {
        let mut kept = false;
        self.spans(name, |is| {
            kept = is.is_some_and(|is| is.marker || kept && is.replicas == 0);
            kept && is.is_some_and(|is| is.replicas == 0 && !is.ignored)
        })
    }

    /// The same, with the times that an interruption parts for so short a time taken as one, too: it
    /// may be seen or not.
    pub fn held_down_at_a_glance(&self, name: &str, glance: Duration) -> Vec<Span> {
        let mut spans = self.held_down(name);
        for at in (1..spans.len()).rev() {
            let (before, after) = (&spans[at - 1], &spans[at]);
            let is_short = before
                .until
                .is_some_and(|until| after.from - until <= glance);
            let both = Span {
                from: before.from,
                by: before.by.clone(),
                ..after.clone()
            };
            spans.extend(is_short.then_some(both));
        }
        spans
    }

    fn spans(
        &self,
        name: &str,
        mut is_so: impl FnMut(Option<&ScaledDependent>) -> bool,
    ) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for change in self.changes.iter().filter(|change| change.name == name) {
            let open = spans.last_mut().filter(|span| span.until.is_none());
            match (open, is_so(change.is.as_ref())) {
                (None, true) => spans.push(Span {
                    from: change.at,
                    by: change.writer.clone(),
                    until: None,
                    ended_by: None,
                }),
                (Some(open), false) => {
                    (open.until, open.ended_by) = (Some(change.at), change.writer.clone());
                }
                _ => {}
            }
        }
        spans
    }

    /// The nodes among these silences that a kube-controller-manager may have marked Unknown, and
    /// those that one certainly has.
    pub fn marked<'a>(
        &self,
        silences: &'a [Silence],
        grace: Duration,
        blur: Duration,
    ) -> [BTreeSet<&'a str>; 2] {
        let up = self.spans(KCM, |is| is.is_some_and(|is| is.replicas > 0));
        let marked_by = |from: fn(Instant) -> Instant, late: Duration, early: Duration| {
            let is_marked = |silence: &&Silence| {
                up.iter().any(|up| {
                    let end = up
                        .until
                        .map_or(silence.until, |until| until.min(silence.until));
                    silence.from.max(from(up.from)) + grace + late <= end + early
                })
            };
            let marked = silences.iter().filter(is_marked);
            marked.map(|silence| silence.node.as_str()).collect()
        };
        [
            marked_by(|from| from, Duration::ZERO, blur),
            marked_by(|from| from + START, MONITOR + blur, Duration::ZERO),
        ]
    }
}
