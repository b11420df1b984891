//! What became of a shoot's dependents, for as long as a record of an outage may tell it.

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
    /// Whether its replicas are others than before.
    pub fn scales(&self) -> bool {
        let replicas = |one: &Option<ScaledDependent>| one.as_ref().map(|one| one.replicas);
        replicas(&self.is) != replicas(&self.was)
    }
}

/// A time in which a dependent was held down.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from: Instant,
    pub until: Option<Instant>,
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
                    until: None,
                }),
                (Some(open), false) => open.until = Some(change.at),
                _ => {}
            }
        }
        spans
    }
}
