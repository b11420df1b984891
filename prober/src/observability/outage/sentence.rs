//! The record of an outage as a sentence.

use chrono::{DateTime, Utc};
use common::text::{plural, time_span};

use super::authors::Author;
use super::marking::Fate;
use super::{Delay, HeldDown, Judged, Outage, Period};

/// Periods of one resource that are told one by one.
const TOLD: usize = 3;

impl Outage {
    /// Human-readable summary without start time and namespace.
    pub fn sentence(&self) -> String {
        let mut text = match &self.verdict {
            Some(Judged {
                candidates,
                expired,
                ..
            }) => {
                let unseen = if self.found_under_way {
                    "begun before this process could tell, "
                } else {
                    ""
                };
                format!("{unseen}{expired} of {candidates} leases expired")
            }
            None => "no outage seen by this process".to_owned(),
        };
        let (found, taken): (Vec<_>, Vec<_>) =
            self.held_down.iter().partition(|held| self.is_found(held));
        text += &Self::held_down_sentence("found held down", &found);
        text += &Self::held_down_sentence("held down", &taken);
        for Delay {
            at, name, cause, ..
        } in &self.not_scaled
        {
            text += &format!(
                "; {name} could not be scaled from {} on: {cause}",
                time(*at)
            );
        }
        for Delay {
            at, name, cause, ..
        } in self.never_held_down()
        {
            text += &format!("; {name} waited from {} on for {cause}", time(*at));
        }
        text += &self.nodes_sentence();
        match (self.end, self.ended) {
            (Some(end), Some(ended)) => {
                let end = end.into_str().replace('_', " ");
                let lasted = time_span((ended - self.began).num_seconds());
                let by = self.restored_by().words().map(|by| format!(" ({by})"));
                format!("{text}; {end}{} after {lasted}", by.unwrap_or_default())
            }
            _ => text + "; not over yet",
        }
    }

    fn held_down_sentence(what: &str, held: &[&HeldDown]) -> String {
        let mut authors = held.iter().flat_map(|held| held.authors());
        let Some(first) = authors.next() else {
            return String::new();
        };
        let same = authors.all(|author| author == first);
        let head = first.words().filter(|_| same);
        let head = head.map(|by| format!(" ({by})")).unwrap_or_default();
        let held = held.iter().map(|held| held.sentence(!same));
        format!(", {what}{head}: {}", held.collect::<Vec<_>>().join(", "))
    }

    /// Returns the last waits of those that were never held down.
    fn never_held_down(&self) -> impl Iterator<Item = &Delay> {
        let was_held = |delay: &Delay| {
            let mut held = self.held_down.iter();
            held.any(|held| held.kind == delay.kind && held.name == delay.name)
        };
        let is_last = |at: usize, delay: &Delay| {
            let mut later = self.waited[at + 1..].iter();
            !later.any(|other| other.kind == delay.kind && other.name == delay.name)
        };
        let waited = self.waited.iter().enumerate();
        waited
            .filter(move |(at, delay)| !was_held(delay) && is_last(*at, delay))
            .map(|(_, delay)| delay)
    }

    fn nodes_sentence(&self) -> String {
        let first = |fate: Fate| {
            let nodes = self.nodes.iter().filter(|node| node.fate == fate);
            let first = nodes.map(|node| node.unknown_at).min();
            first.map_or_else(String::new, |first| format!(" from {} on", time(first)))
        };
        let (marked, unclear) = (self.marked_nodes, self.unclear_nodes);
        let saved = self.overdue_nodes.saturating_sub(marked + unclear);
        let mut text = String::new();
        if saved > 0 {
            text += &format!(
                "; without protection {saved} node{} would have been Unknown{}",
                plural(saved),
                first(Fate::Saved)
            );
        }
        if marked > 0 {
            text += &format!(
                "; {marked} node{} not renewed while kube-controller-manager was up, and so Unknown{}",
                plural(marked),
                first(Fate::Marked)
            );
        }
        if unclear > 0 {
            text += &format!(
                "; {unclear} node{} not renewed for a whole grace, marked Unknown or not",
                plural(unclear)
            );
        }
        text
    }
}

impl HeldDown {
    fn authors(&self) -> impl Iterator<Item = Author> {
        self.periods.iter().map(|period| period.by)
    }

    fn sentence(&self, with_authors: bool) -> String {
        let mut text = self.name.clone();
        let is_only = self.periods.len() == 1;
        let lasted = |period: &Period| match period.until {
            Some(until) => {
                let seconds = (until - period.from).num_seconds();
                Some(format!("for {}", time_span(seconds)))
            }
            None => (!is_only).then(|| format!("since {}", time(period.from))),
        };
        if self.periods.len() > TOLD {
            text += &format!(" {} times", self.periods.len());
        } else {
            let told = self.periods.iter().map(|period| {
                let by = period.by.words().filter(|_| with_authors);
                let by = by.map(|by| format!("({by})"));
                [lasted(period), by]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            let told: Vec<_> = told.filter(|told| !told.is_empty()).collect();
            if !told.is_empty() {
                text += &format!(" {}", told.join(" and "));
            }
        }
        if self.returns_to.is_none() {
            text += " (its replicas annotation cannot be read)";
        }
        text
    }
}

fn time(at: DateTime<Utc>) -> impl std::fmt::Display {
    at.format("%H:%M:%S UTC")
}
