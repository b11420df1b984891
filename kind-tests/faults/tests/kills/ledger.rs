//! Judges every change of a dependent at the moment it is made.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use api_server::{ObservedWrite, Record, Store};
use faults::fences::Fences;
use faults::writes::{ScaledDependent, WriteKind, write_kind, write_kind_in_two};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::world::{KINDS, ScaledKind};

/// The replicas' renewDeadline.
const RENEW_DEADLINE: Duration = Duration::from_secs(5);

/// What became of the dependents, and which rule was broken.
#[derive(Default)]
pub struct WriteLedger {
    /// Name of the dependent to the changes that the prober made.
    changes: BTreeMap<&'static str, usize>,
    fences: Fences,
    /// All changes so far.
    pub story: String,
    broken: Vec<String>,
    /// What was done by a replica that did not lead, and had to.
    leaderless: Vec<String>,
}

impl WriteLedger {
    /// Keeps the books of a store in which nobody but the prober scales these dependents.
    pub fn open(store: &Store) -> Arc<Mutex<Self>> {
        let ledger = Arc::<Mutex<Self>>::default();
        let written = ledger.clone();
        store.observe(move |seen| {
            let mut kinds = KINDS.iter();
            let kind = kinds.find(|kind| seen.after["metadata"]["name"] == kind.name);
            let Some(request) = seen.request else { return };
            if seen.resource.plural == "leases" {
                written
                    .lock()
                    .fences
                    .lease(seen.after, request, Instant::now());
            } else if let Some(kind) = kind {
                written.lock().enter(kind, seen, request);
            }
        });
        ledger
    }

    fn enter(&mut self, kind: &ScaledKind, seen: &ObservedWrite<'_>, request: &Record) {
        *self.changes.entry(kind.name).or_default() += 1;
        let judge = if kind.changes == 4 {
            write_kind_in_two
        } else {
            write_kind
        };
        let way = match seen.before {
            Some(before) if !seen.deleted => judge(before, seen.after),
            _ => Err("it is created or deleted".to_owned()),
        };
        let was = seen.before.map(ScaledDependent::of).unwrap_or_default();
        let change = format!(
            "{}: {was} -> {}",
            kind.name,
            ScaledDependent::of(seen.after)
        );
        // Writing to a String cannot fail.
        let _ = writeln!(self.story, "  {change}");
        match way {
            // Whoever does not lead may protect, and restores nothing within the minute that a
            // story takes (D-50).
            Ok(WriteKind::Down | WriteKind::HandsOff) => {}
            Ok(WriteKind::Up | WriteKind::Marked) => {
                let leaderless = self.fences.leaderless(
                    &request.user,
                    RENEW_DEADLINE,
                    request.at.unwrap_or_else(Instant::now),
                );
                self.leaderless
                    .extend(leaderless.map(|why| format!("{why}: {change}")));
            }
            Err(why) => self.broken.push(format!("{why}: {change}")),
        }
    }

    /// What the lead is needed for was sent by whoever led, no later than renewDeadline after its
    /// last renewal.
    pub fn fenced(&self) -> Result<()> {
        ensure!(
            self.leaderless.is_empty(),
            "without the lead: {:#?}\n{}",
            self.leaderless,
            self.story
        );
        Ok(())
    }

    /// No rule was broken, and each dependent was changed exactly as often as was intended.
    pub fn balance(&self, intended: impl Fn(&ScaledKind) -> usize) -> Result<()> {
        ensure!(
            self.broken.is_empty(),
            "broken: {:#?}\n{}",
            self.broken,
            self.story
        );
        for kind in &KINDS {
            let (made, count) = (
                self.changes.get(kind.name).copied().unwrap_or_default(),
                intended(kind),
            );
            ensure!(
                made == count,
                "{}: {made} changes instead of {count}\n{}",
                kind.name,
                self.story
            );
        }
        Ok(())
    }
}
