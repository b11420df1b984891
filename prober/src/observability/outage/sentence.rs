//! The record of an outage as a sentence.

use chrono::{DateTime, Utc};
use common::text::{plural, time_span};

use super::{Delay, HeldDown, Judged, LISTED, Outage, OutageEnd, OutageWrite, Period};

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
            }) => format!("{expired} of {candidates} leases expired"),
            None => "begun before this process could tell".to_owned(),
        };
        if !self.held_down.is_empty() {
            text += &self.held_down_sentence();
        }
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
                let by = self.restored_by().map(|by| format!(" ({by})"));
                format!("{text}; {end}{} after {lasted}", by.unwrap_or_default())
            }
            _ => text + "; not over yet",
        }
    }

    fn held_down_sentence(&self) -> String {
        let authors = |held: &HeldDown| {
            let periods = 0..held.periods.len();
            periods
                .map(|at| self.held_down_by(held, at))
                .collect::<Vec<_>>()
        };
        let all: Vec<_> = self.held_down.iter().flat_map(authors).collect();
        let same = all.iter().all(|author| author == &all[0]);
        let head = all.first().copied().flatten().filter(|_| same);
        let held = self.held_down.iter().map(|held| {
            let authors = if same { Vec::new() } else { authors(held) };
            held.sentence(&authors)
        });
        let found = if self.found_held_down {
            ", found held down"
        } else {
            ", held down"
        };
        let head = head.map(|by| format!(" ({by})")).unwrap_or_default();
        format!("{found}{head}: {}", held.collect::<Vec<_>>().join(", "))
    }

    /// Returns who took a resource to 0 for a period of it; `None` if that cannot be told.
    fn held_down_by(&self, held: &HeldDown, at: usize) -> Option<&'static str> {
        if self.found_held_down && held.periods[at].from <= self.began {
            return None;
        }
        let before = at.checked_sub(1).and_then(|at| held.periods[at].until);
        let until = held.periods[at].until;
        self.author(held, |write| {
            write.to == 0
                && before.is_none_or(|before| write.at > before)
                && until.is_none_or(|until| write.at <= until)
        })
    }

    /// Returns who restored everything; `None` if that were several, or it cannot be told.
    fn restored_by(&self) -> Option<&'static str> {
        if self.end != Some(OutageEnd::Restored) {
            return None;
        }
        let author = |held: &HeldDown| {
            let from = held.periods.last()?.from;
            self.author(held, |write| write.to > 0 && write.at >= from)
        };
        let mut authors = self.held_down.iter().map(author);
        let first = authors.next()??;
        authors.all(|author| author == Some(first)).then_some(first)
    }

    fn author(
        &self,
        held: &HeldDown,
        is_it: impl Fn(&OutageWrite) -> bool,
    ) -> Option<&'static str> {
        let mut writes = self.writes.iter();
        let ours = writes
            .rfind(|write| write.kind == held.kind && write.name == held.name && is_it(write));
        match ours {
            Some(write) if write.as_leader => Some("written as the leader"),
            Some(_) => Some("written without the lead"),
            None if self.writes.len() < LISTED => Some("written by others"),
            None => None,
        }
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
        let first = |marked: bool| {
            let nodes = self.nodes.iter().filter(|node| node.marked == marked);
            let first = nodes.map(|node| node.unknown_at).min();
            first.map_or_else(String::new, |first| format!(" from {} on", time(first)))
        };
        let mut text = String::new();
        let saved = self.overdue_nodes.saturating_sub(self.marked_nodes);
        if saved > 0 {
            text += &format!(
                "; without protection {saved} node{} would have been Unknown{}",
                plural(saved),
                first(false)
            );
        }
        let marked = self.marked_nodes;
        if marked > 0 {
            let plural = plural(marked);
            text += &format!(
                "; {marked} node{plural} not renewed while kube-controller-manager was up, and so Unknown{}",
                first(true)
            );
        }
        text
    }
}

impl HeldDown {
    fn sentence(&self, authors: &[Option<&'static str>]) -> String {
        let mut text = self.name.clone();
        let lasted = |period: &Period| {
            let seconds = (period.until? - period.from).num_seconds();
            Some(format!("for {}", time_span(seconds)))
        };
        if self.periods.len() > TOLD {
            text += &format!(" {} times", self.periods.len());
        } else {
            let told = self.periods.iter().enumerate().map(|(at, period)| {
                let by = authors.get(at).copied().flatten();
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
