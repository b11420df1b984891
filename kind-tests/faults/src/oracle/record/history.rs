//! What became of a shoot's dependents, for as long as a record of an outage may tell it.

use std::time::Duration;

use tokio::time::Instant;

use super::ShootRecord;
use crate::writes::ScaledDependent;

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

/// A time in which a dependent was held down, and who began and ended it.
#[derive(Clone, Debug)]
pub struct Span {
    pub from: Instant,
    pub by: Option<String>,
    pub until: Option<Instant>,
    pub ended_by: Option<String>,
}

impl ShootRecord {
    /// When a dependent was at 0 because the watchdog held it down; without its marker it still is.
    pub fn held_down(&self, name: &str) -> Vec<Span> {
        let (mut spans, mut kept): (Vec<Span>, _) = (Vec::new(), false);
        for change in self.changes.iter().filter(|change| change.name == name) {
            let is = change.is.as_ref();
            kept = is.is_some_and(|is| is.marker || kept && is.replicas == 0);
            let is_held = kept && is.is_some_and(|is| is.replicas == 0 && !is.ignored);
            let open = spans.last_mut().filter(|span| span.until.is_none());
            match (open, is_held) {
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
}
