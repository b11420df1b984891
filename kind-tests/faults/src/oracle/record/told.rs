//! What a prober tells of an outage that is over, against what was so.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use testbed::objects::items;
use testbed::wall;
use tokio::time::Instant;

use super::ShootRecord;
use super::history::{Change, Span};
use crate::oracle::truth::Judgement;
use crate::pace::{BEAT, PROBE_AGE};

/// How late a change may be seen, and how early its moment is told: a watch, and an answer.
const SEEN: Duration = Duration::from_millis(500);
/// How long a process that was suspended may need to see the seed again: watches wait up to 2 s.
const RESUMED: Duration = Duration::from_secs(5);
/// The longest time from a write's being sent to its being applied: its timeout.
const UNDER_WAY: Duration = Duration::from_secs(30);

/// What was told, by whom.
pub struct ToldOutage<'a> {
    pub record: &'a Value,
    pub replica: &'a str,
    /// Since when the process of this replica has run.
    pub runs_since: Instant,
    /// Since when nothing kept it from seeing the seed; none while something does.
    pub seed_since: Option<Instant>,
    /// Whether this replica is known not to have led at a moment.
    pub is_leaderless: &'a dyn Fn(Instant) -> bool,
}

/// When something was so on the wall clock; none if it does not say when.
fn moment(value: &Value) -> Option<Instant> {
    let at: DateTime<Utc> = value.as_str()?.parse().ok()?;
    let ago = (wall::now() - at).to_std().unwrap_or_default();
    Instant::now().checked_sub(ago)
}

impl ToldOutage<'_> {
    fn began(&self) -> Instant {
        moment(&self.record["began"]).unwrap_or_else(Instant::now)
    }

    /// Whether this replica could see at once what changed from then on.
    fn sees_from(&self, at: Instant) -> bool {
        let since = self
            .seed_since
            .map(|since| since.max(self.runs_since + RESUMED));
        since.is_some_and(|since| since + SEEN <= at)
    }

    fn is_ours(&self, writer: Option<&String>) -> bool {
        writer.is_some_and(|writer| writer == self.replica)
    }
}

impl ShootRecord {
    /// What of it was not so.
    pub fn untruths(&self, told: &ToldOutage<'_>) -> Vec<String> {
        [
            self.untrue_verdict(told),
            self.untrue_writes(told),
            self.untrue_periods(told),
            self.untrue_waits(told),
            self.untrue_end(told),
        ]
        .concat()
    }

    /// The numbers of the verdict, and that its beginning was seen.
    fn untrue_verdict(&self, told: &ToldOutage<'_>) -> Vec<String> {
        let (record, verdict, mut untrue) = (told.record, &told.record["verdict"], Vec::new());
        let Some(at) = moment(&verdict["at"]).filter(|at| *at >= self.unsettled_until) else {
            return untrue;
        };
        let grace = Duration::from_secs_f64(verdict["graceSeconds"].as_f64().unwrap_or_default());
        let since = |age: Duration| {
            let samples = self.samples.iter();
            samples.filter(move |sample| sample.at + age >= at && sample.at <= at)
        };
        let (candidates, expired) = (&verdict["candidates"], &verdict["expired"]);
        let is_so = |now: &Judgement| {
            let is_less = |expired| expired <= now.silent as u64;
            *candidates == now.counted && expired.as_u64().is_some_and(is_less)
        };
        let mut recent = since(PROBE_AGE).peekable();
        if recent.peek().is_some() && !recent.any(|sample| is_so(&sample.judgement)) {
            untrue.push(format!("{expired} of {candidates} leases were not expired"));
        }
        let seen = record["foundUnderWay"] == false;
        let mut before = since(grace / 2 + PROBE_AGE).peekable();
        if seen && before.peek().is_some() && !before.any(|sample| sample.judgement.may_up) {
            untrue.push("it had begun long before".to_owned());
        }
        untrue
    }

    /// Each write that it says was made, and each that it does not mention.
    fn untrue_writes(&self, told: &ToldOutage<'_>) -> Vec<String> {
        let writes: Vec<_> = items(&told.record["writes"]).collect();
        let is_it = |write: &Value, change: &Change| {
            let sent = moment(&write["at"]).unwrap_or_else(Instant::now);
            write["name"] == *change.name
                && write["to"].as_i64() == change.to()
                && change.at + SEEN >= sent
                && change.at <= sent + UNDER_WAY
        };
        let ours = || {
            let changes = self.changes.iter();
            changes.filter(|change| told.is_ours(change.writer.as_ref()))
        };
        let mut untrue = Vec::new();
        for write in writes.iter().filter(|write| write["unanswered"] != true) {
            match ours().find(|change| is_it(write, change)) {
                None => untrue.push(format!("it did not write {write}")),
                Some(change) if write["asLeader"] == true && (told.is_leaderless)(change.at) => {
                    untrue.push(format!("it did not lead when it wrote {write}"));
                }
                Some(_) => {}
            }
        }
        let (began, full, mut left) = (told.began(), writes.len() >= 40, writes);
        for change in ours().filter(|change| change.at > began && change.scales() && !full) {
            match left.iter().position(|write| is_it(write, change)) {
                Some(at) => {
                    left.swap_remove(at);
                }
                None => untrue.push(format!("it wrote {}, and does not say so", change.name)),
            }
        }
        untrue
    }

    /// What was held down when, and by whom.
    fn untrue_periods(&self, told: &ToldOutage<'_>) -> Vec<String> {
        let mut untrue = Vec::new();
        for held in items(&told.record["heldDown"]) {
            let name = held["name"].as_str().unwrap_or_default();
            let truth = self.held_down_at_a_glance(name, SEEN);
            for period in items(&held["periods"]) {
                let why = self.untrue_period(told, period, &truth);
                untrue.extend(why.map(|why| format!("{name}: {why} in {period}")));
            }
        }
        untrue
    }

    fn untrue_period(
        &self,
        told: &ToldOutage<'_>,
        period: &Value,
        truth: &[Span],
    ) -> Option<&'static str> {
        let from = moment(&period["from"])?;
        if !told.sees_from(from) {
            return None;
        }
        let is_found = from <= told.began();
        let about = |seen: Instant, at: Instant| at <= seen + SEEN && seen <= at + SEEN;
        let until = moment(&period["until"]);
        let is_it = |span: &&Span| {
            let begins = is_found && span.from <= from || about(from, span.from);
            let ends = match (until, span.until) {
                (Some(seen), Some(at)) => about(seen, at),
                (Some(_), None) => false,
                (None, until) => until.is_none_or(|until| Instant::now() <= until + SEEN),
            };
            begins && ends
        };
        let Some(span) = truth.iter().find(is_it) else {
            return Some("it was not held down just then");
        };
        let author = |author: &Value, writer: Option<&String>, at: Instant| {
            let ours = told.is_ours(writer) && at >= told.runs_since;
            match author.as_str() {
                Some("leader") => ours && !(told.is_leaderless)(at),
                Some("standby") => ours,
                Some("others") => !ours,
                _ => true,
            }
        };
        if !author(&period["by"], span.by.as_ref(), span.from) {
            return Some("somebody else took it down");
        }
        let ended = span
            .until
            .is_none_or(|until| author(&period["endedBy"], span.ended_by.as_ref(), until));
        (!ended).then_some("somebody else brought it back")
    }

    /// A write waits for a pause to be lifted only where there is one.
    fn untrue_waits(&self, told: &ToldOutage<'_>) -> Vec<String> {
        let waited = items(&told.record["waited"]);
        let untrue = waited.filter(|waited| {
            waited["cause"] == "the pause to be lifted"
                && moment(&waited["at"]).is_some_and(|at| !self.was_paused(at - PROBE_AGE, at))
        });
        let untrue = untrue.map(|waited| format!("the shoot was not paused: {waited}"));
        untrue.collect()
    }

    /// How it ended.
    fn untrue_end(&self, told: &ToldOutage<'_>) -> Vec<String> {
        let (record, now) = (told.record, Instant::now());
        let Some(ended) = moment(&record["ended"]).filter(|at| told.sees_from(*at)) else {
            return Vec::new();
        };
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
        let untrue = (!is_so).then(|| format!("it did not end so, held down: {held:?}"));
        untrue.into_iter().collect()
    }
}
