//! Judges every change of a dependent at the moment it is made.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::api::{Seen, Source, Store};
use testbed::seed::Dependent;
use tokio::time::Instant;

/// What became of the dependents, and which rule was broken.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    /// Name of the dependent to the changes that the prober made.
    changes: BTreeMap<String, usize>,
    /// When a dependent was last changed on its way down.
    lowered: Option<Instant>,
    story: String,
    broken: Vec<String>,
}

impl Ledger {
    /// Keeps the books of a store; the dependents have these replicas when nothing is wrong.
    pub fn open(store: &Store, dependents: &[(&'static str, i64)]) -> Self {
        let ledger = Self::default();
        let pages = Arc::clone(&ledger.0);
        let dependents: BTreeMap<&str, i64> = dependents.iter().copied().collect();
        store.observe(move |seen| {
            let name = seen.after["metadata"]["name"].as_str().unwrap_or_default();
            let (Some(before), Some(&usual)) = (seen.before, dependents.get(name)) else { return };
            if seen.source == Source::Client && seen.resource.plural != "leases" {
                pages.lock().unwrap_or_else(PoisonError::into_inner).enter(name, usual, before, seen);
            }
        });
        ledger
    }

    /// No rule was broken, and each dependent was changed exactly as often as was intended.
    pub fn balance(&self, intended: &[(&str, usize)]) -> Result<()> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(pages.broken.is_empty(), "broken: {:#?}\n{}", pages.broken, pages.story);
        for (name, count) in intended {
            let made = pages.changes.get(*name).copied().unwrap_or_default();
            ensure!(made == *count, "{name}: {made} changes instead of {count}\n{}", pages.story);
        }
        Ok(())
    }

    /// When a dependent was last changed on its way down.
    pub fn lowered(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lowered
    }

    /// All changes so far.
    pub fn story(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).story.clone()
    }
}

impl Pages {
    fn enter(&mut self, name: &str, usual: i64, before: &Value, seen: &Seen<'_>) {
        let (before, after) = (Dependent::of(before), Dependent::of(seen.after));
        *self.changes.entry(name.into()).or_default() += 1;
        if after.replicas < before.replicas || before.marker.is_none() && after.marker.is_some() {
            self.lowered = Some(Instant::now());
        }
        // Writing to a String cannot fail.
        let _ = writeln!(self.story, "  {name}: {before} -> {after}");
        let mut check = |so: bool, rule: &str| {
            if !so {
                self.broken.push(format!("{rule}: {name}: {before} -> {after}"));
            }
        };
        let memory = |state: &Dependent| state.memory.as_ref().map(|memory| memory.parse::<i64>().unwrap_or_default());
        let (remembered, remembers) = (memory(&before), memory(&after));
        check(!seen.deleted, "a dependent is deleted");
        check(remembers.is_none_or(|replicas| replicas == usual), "something else is remembered than what ran");
        check(
            before.marker.is_none()
                || remembered.is_none()
                || remembers == remembered
                || (remembers.is_none() && after.replicas > 0),
            "a memory is lost or overwritten while held down",
        );
        check(
            after.replicas == usual || (after.replicas == 0 && remembers.is_some() && after.marker.is_some()),
            "neither up nor held down",
        );
        check(before != after, "a write changes nothing");
    }
}
