//! Judges every change of a dependent at the moment it is made.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use anyhow::{Result, ensure};
use faults::lock;
use faults::writes::{Dependent, Way, way, way_in_two};
use testbed::api::{Seen, Store};
use tokio::time::Instant;

use crate::world::Kind;

/// What became of the dependents, and which rule was broken.
#[derive(Default)]
pub struct Ledger {
    /// Name of the dependent to the changes that the prober made.
    changes: BTreeMap<&'static str, usize>,
    /// When a dependent was last changed on its way down.
    pub lowered: Option<Instant>,
    /// All changes so far.
    pub story: String,
    broken: Vec<String>,
}

impl Ledger {
    /// Keeps the books of a store in which nobody but the prober scales these dependents.
    pub fn open(store: &Store, kinds: &'static [Kind]) -> Arc<Mutex<Self>> {
        let ledger = Arc::<Mutex<Self>>::default();
        let written = ledger.clone();
        store.observe(move |seen| {
            let kind = kinds.iter().find(|kind| seen.after["metadata"]["name"] == kind.name);
            if let Some(kind) = kind.filter(|_| seen.request.is_some() && seen.resource.plural != "leases") {
                lock(&written).enter(kind, seen);
            }
        });
        ledger
    }

    fn enter(&mut self, kind: &Kind, seen: &Seen<'_>) {
        *self.changes.entry(kind.name).or_default() += 1;
        let judge = if kind.takes_two_requests() { way_in_two } else { way };
        let way = match seen.before {
            Some(before) if !seen.deleted => judge(before, seen.after),
            _ => Err("it is created or deleted".to_owned()),
        };
        let was = seen.before.map(Dependent::of).unwrap_or_default();
        let change = format!("{}: {was} -> {}", kind.name, Dependent::of(seen.after));
        // Writing to a String cannot fail.
        let _ = writeln!(self.story, "  {change}");
        match way {
            Ok(Way::Down | Way::Marked) => self.lowered = Some(Instant::now()),
            Ok(Way::Up | Way::HandsOff) => {}
            Err(why) => self.broken.push(format!("{why}: {change}")),
        }
    }

    /// No rule was broken, and each dependent was changed exactly as often as was intended.
    pub fn balance(&self, intended: &[(&str, usize)]) -> Result<()> {
        ensure!(self.broken.is_empty(), "broken: {:#?}\n{}", self.broken, self.story);
        for (name, count) in intended {
            let made = self.changes.get(name).copied().unwrap_or_default();
            ensure!(made == *count, "{name}: {made} changes instead of {count}\n{}", self.story);
        }
        Ok(())
    }
}
