//! What a prober tells of an outage that is over, against what was so.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use testbed::objects::items;
use testbed::wall;
use tokio::time::Instant;

use super::ShootRecord;
use super::history::Span;
use crate::pace::{BEAT, PROBE_AGE};

/// How late a change may be seen, and how early its moment is told: a watch, and an answer.
const SEEN: Duration = Duration::from_millis(500);
/// How long a process that was suspended may need to see the seed again: watches wait up to 2 s.
const RESUMED: Duration = Duration::from_secs(5);

/// What was told, by whom.
pub struct ToldOutage<'a> {
    pub record: &'a Value,
    pub replica: &'a str,
    /// Since when the process of this replica has run.
    pub runs_since: Instant,
    /// Since when nothing kept it from seeing the seed; none while something does.
    pub seed_since: Option<Instant>,
}

/// When something was so on the wall clock; none if it does not say when.
fn moment(value: &Value) -> Option<Instant> {
    let at: DateTime<Utc> = value.as_str()?.parse().ok()?;
    let ago = (wall::now() - at).to_std().unwrap_or_default();
    Instant::now().checked_sub(ago)
}

/// Whether both may be the same moment.
fn about(seen: Instant, at: Instant) -> bool {
    at <= seen + SEEN && seen <= at + SEEN
}

impl ToldOutage<'_> {
    fn began(&self) -> Instant {
        moment(&self.record["began"]).unwrap_or_else(Instant::now)
    }

    fn ended(&self) -> Instant {
        moment(&self.record["ended"]).unwrap_or_else(Instant::now)
    }

    /// Whether this replica could see at once what changed from then on.
    fn sees_from(&self, at: Instant) -> bool {
        let since = self
            .seed_since
            .map(|since| since.max(self.runs_since + RESUMED));
        since.is_some_and(|since| since + SEEN <= at)
    }
}

impl ShootRecord {
    /// What of it was not so.
    pub fn untruths(&self, told: &ToldOutage<'_>) -> Vec<String> {
        let held = items(&told.record["heldDown"]);
        let untrue = [
            self.untrue_verdict(told),
            self.untrue_writes(told),
            self.untrue_end(told),
        ];
        let held = held.filter_map(|held| self.untrue_held_down(told, held));
        untrue.into_iter().flatten().chain(held).collect()
    }

    /// The numbers of the verdict.
    fn untrue_verdict(&self, told: &ToldOutage<'_>) -> Option<String> {
        let verdict = &told.record["verdict"];
        let from = told.began().checked_sub(PROBE_AGE)?;
        let (candidates, expired) = (
            verdict["candidates"].as_u64()?,
            verdict["expired"].as_u64()?,
        );
        let samples = self.samples.iter();
        let mut in_it = samples
            .filter(|sample| sample.at >= from && sample.at <= told.ended())
            .peekable();
        // It was settled all the time, and is known from its beginning on.
        if from < self.unsettled_until || in_it.peek().is_none_or(|first| first.at > from + BEAT) {
            return None;
        }
        let is_so = in_it.any(|sample| {
            let now = &sample.judgement;
            candidates == now.counted as u64 && expired <= now.silent as u64
        });
        (!is_so).then(|| format!("{expired} of {candidates} leases were not expired"))
    }

    /// How often it wrote.
    fn untrue_writes(&self, told: &ToldOutage<'_>) -> Option<String> {
        let count = |from: Instant, until: Instant, scales: bool| {
            let changes = self.changes.iter();
            let ours = changes.filter(|change| {
                let is_ours = change.writer.as_deref() == Some(told.replica);
                is_ours && change.at >= from && change.at <= until && (!scales || change.scales())
            });
            ours.count() as u64
        };
        let (began, ended) = (told.began(), told.ended());
        let most = count(began, Instant::now(), false);
        // Of a write without an answer it may not know that it was made.
        let least = match told.sees_from(began) {
            true => count(began, ended, true),
            false => 0,
        };
        let writes = told.record["writes"].as_u64()?;
        let is_so = (least..=most).contains(&writes);
        (!is_so).then(|| format!("it wrote {least} to {most} times, and not {writes}"))
    }

    /// What was held down, from when to when.
    fn untrue_held_down(&self, told: &ToldOutage<'_>, held: &Value) -> Option<String> {
        let name = held["name"].as_str()?;
        let (from, until) = (moment(&held["from"])?, moment(&held["until"]));
        if !told.sees_from(from) {
            return None;
        }
        let truth = self.held_down(name);
        let is_found = from <= told.began();
        let begins = |span: &Span| is_found && span.from <= from || about(from, span.from);
        let ends = |span: &Span| match (until, span.until) {
            (Some(seen), Some(at)) => about(seen, at),
            (None, Some(at)) => Instant::now() <= at + SEEN,
            (until, None) => until.is_none(),
        };
        let is_so = truth.iter().any(begins) && truth.iter().any(ends);
        (!is_so).then(|| format!("it was not held down just then: {held}"))
    }

    /// How it ended.
    fn untrue_end(&self, told: &ToldOutage<'_>) -> Option<String> {
        let (record, now, ended) = (told.record, Instant::now(), told.ended());
        if !told.sees_from(ended) {
            return None;
        }
        let names = items(&record["heldDown"]).filter_map(|held| held["name"].as_str());
        let is_held = |name: &str, from: Instant| {
            let spans = self.held_down(name).into_iter();
            spans
                .last()
                .is_some_and(|last| last.from <= from && last.until.is_none())
        };
        let held: Vec<_> = names.filter(|name| is_held(name, ended)).collect();
        let is_so = match record["end"].as_str() {
            Some("restored") => held.is_empty() && ended <= now + SEEN,
            Some("nothing_held_down") => {
                let names = self.dependents.keys();
                let spans = names.flat_map(|name| self.held_down(name));
                let mut in_it = spans.filter(|span| span.from >= told.began() + SEEN);
                !in_it.any(|span| span.from + SEEN < span.until.unwrap_or(now).min(ended))
            }
            Some("paused") => self.was_paused(ended - BEAT - PROBE_AGE, now),
            Some("still_held_down") => items(&record["heldDown"]).next().is_some(),
            _ => held.is_empty(),
        };
        (!is_so).then(|| format!("it did not end so, held down: {held:?}"))
    }
}
