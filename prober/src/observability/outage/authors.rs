//! Who took a resource to 0, and who brought it back, by the writes that this process has sent.

use serde::{Deserialize, Serialize};

use super::{HeldDown, LISTED, Outage, OutageEnd, OutageWrite};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// This process as the leader.
    Leader,
    /// This process, not leading.
    Standby,
    /// Somebody else: nothing that this process has sent may have done it.
    Others,
    /// Nobody here knows; also where a later version says something else.
    #[default]
    #[serde(other)]
    Unclear,
}

impl Author {
    pub(super) const fn words(self) -> Option<&'static str> {
        match self {
            Self::Leader => Some("written as the leader"),
            Self::Standby => Some("written without the lead"),
            Self::Others => Some("written by others"),
            Self::Unclear => None,
        }
    }
}

impl Outage {
    /// Names the author of each beginning and end of a period, as far as is known now.
    pub(super) fn name_authors(&mut self) {
        let authors = |held: &HeldDown| {
            let periods = 0..held.periods.len();
            let authors = periods.map(|at| (self.held_down_by(held, at), self.ended_by(held, at)));
            authors.collect::<Vec<_>>()
        };
        let authors: Vec<_> = self.held_down.iter().map(authors).collect();
        for (held, authors) in self.held_down.iter_mut().zip(authors) {
            for (period, (by, ended_by)) in held.periods.iter_mut().zip(authors) {
                (period.by, period.ended_by) = (by, ended_by);
            }
        }
    }

    /// True if the first period of a resource had begun before this record did.
    pub(super) fn is_found(&self, held: &HeldDown) -> bool {
        let Some(first) = held.periods.first() else {
            return false;
        };
        let mut writes = self.writes_of(held);
        first.from <= self.began
            && (self.found_under_way || !writes.any(|write| write.at <= first.from))
    }

    fn held_down_by(&self, held: &HeldDown, at: usize) -> Author {
        if at == 0 && self.is_found(held) {
            return Author::Unclear;
        }
        let before = at.checked_sub(1).and_then(|at| held.periods[at].until);
        let until = held.periods[at].until;
        self.author(held, |write| {
            write.to == 0
                && before.is_none_or(|before| write.at >= before)
                && until.is_none_or(|until| write.at <= until)
        })
    }

    fn ended_by(&self, held: &HeldDown, at: usize) -> Author {
        let period = &held.periods[at];
        if period.until.is_none() {
            return Author::Unclear;
        }
        let next = held.periods.get(at + 1).map(|next| next.from);
        self.author(held, |write| {
            write.from <= 0
                && write.to > 0
                && write.at >= period.from
                && next.is_none_or(|next| write.at <= next)
        })
    }

    /// Returns who restored everything; unclear if that were several.
    pub(super) fn restored_by(&self) -> Author {
        let last = |held: &HeldDown| held.periods.last().map(|period| period.ended_by);
        let mut authors = self.held_down.iter().filter_map(last);
        let first = authors.next().unwrap_or_default();
        if self.end == Some(OutageEnd::Restored) && authors.all(|author| author == first) {
            first
        } else {
            Author::Unclear
        }
    }

    fn writes_of(&self, held: &HeldDown) -> impl DoubleEndedIterator<Item = &OutageWrite> {
        let is_of_it = |write: &&OutageWrite| write.kind == held.kind && write.name == held.name;
        self.writes.iter().filter(is_of_it)
    }

    fn author(&self, held: &HeldDown, is_it: impl Fn(&OutageWrite) -> bool) -> Author {
        // One that changes no replicas only gives the marker back.
        let last = |scales: bool| {
            self.writes_of(held)
                .rfind(|write| (write.from != write.to) == scales && is_it(write))
        };
        match last(true).or_else(|| last(false)) {
            Some(write) if write.unanswered || write.from == write.to => Author::Unclear,
            Some(write) if write.as_leader => Author::Leader,
            Some(_) => Author::Standby,
            None if self.writes.len() < LISTED => Author::Others,
            None => Author::Unclear,
        }
    }
}
