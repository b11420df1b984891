//! Which nodes kube-controller-manager has marked Unknown, by when it was up and when they renewed.
//!
//! A node that it watches it marks a grace after the last renewal. One that it has not seen yet it
//! gives a whole grace from when it first does, after its own start.

use chrono::TimeDelta;
use prober_core::moment::Moment;
use serde::{Deserialize, Serialize};

/// Time within which kube-controller-manager looks at each node again: its `--node-monitor-period`.
const MONITOR_PERIOD: TimeDelta = TimeDelta::seconds(5);
/// Longest time from replicas above 0 to a first look at the nodes: the start of a pod, and the
/// election's 15 s for a Lease that the one before has left, with a retry after 2 s.
const START: TimeDelta = TimeDelta::seconds(20);
/// Most changes that are kept, as where somebody scales it again and again.
const KEPT: usize = 40;

/// Fate of a node whose lease was not renewed for a whole grace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// kube-controller-manager has not marked it Unknown.
    Saved,
    Marked,
    /// Nobody here knows; also where a later version says something else.
    #[default]
    #[serde(other)]
    Unclear,
}

/// Observations of kube-controller-manager by this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marking {
    /// Moments from which on it was up, at 0, or not known to be either.
    changes: Vec<(Moment, Option<bool>)>,
}

impl Marking {
    pub(crate) fn follow(&mut self, is_up: Option<bool>, now: Moment) {
        if self.is_up() == is_up && !self.changes.is_empty() {
            return;
        }
        if self.changes.len() == KEPT {
            self.changes.remove(0);
        }
        self.changes.push((now, is_up));
    }

    /// `None` while it is not known.
    pub(super) fn is_up(&self) -> Option<bool> {
        self.changes.last()?.1
    }

    /// Fate of a node by `at`, until which it has not renewed since `renewed`; and from when on it is
    /// Unknown, or would be if it had been watched.
    pub(super) fn fate(&self, renewed: Moment, grace: TimeDelta, at: Moment) -> (Fate, Moment) {
        let marks = self.spans(|is_up| is_up == Some(true));
        for (from, until) in marks {
            let watched = renewed.max(from + START) + grace + MONITOR_PERIOD;
            if watched <= until.unwrap_or(at).min(at) {
                return (Fate::Marked, renewed.max(from) + grace);
            }
        }
        let known = self.changes.first().map_or(at, |(first, _)| *first);
        let unseen = renewed + grace < known;
        let mut may_mark = self.spans(|is_up| is_up != Some(false));
        let may_mark = may_mark.any(|(from, until)| {
            // What was so when it was first seen may have been so for long.
            let from = if from == known { renewed } else { from };
            renewed.max(from) + grace < until.unwrap_or(at).min(at)
        });
        let fate = if unseen || may_mark {
            Fate::Unclear
        } else {
            Fate::Saved
        };
        (fate, renewed + grace)
    }

    /// Returns the times in which it was so.
    fn spans(
        &self,
        is_so: impl Fn(Option<bool>) -> bool,
    ) -> impl Iterator<Item = (Moment, Option<Moment>)> {
        let mut spans = Vec::new();
        for &(at, is_up) in &self.changes {
            match spans.last_mut() {
                Some((_, until @ None)) if !is_so(is_up) => *until = Some(at),
                Some((_, None)) => {}
                _ if is_so(is_up) => spans.push((at, None)),
                _ => {}
            }
        }
        spans.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    /// When the controller was seen how, and the fates of two nodes by then, silent from 100 s and
    /// from 130 s on.
    const ROWS: &str = "
        0 up by 139.9: Saved, Saved
        0 up by 144.9: Unclear, Saved
        0 up by 145: Marked, Saved
        0 up by 175: Marked, Marked
        # At 0 in time, a moment too late, and far too late.
        0 up, 139.9 down by 300: Saved, Saved
        0 up, 140.1 down by 300: Unclear, Saved
        0 up, 150 down by 300: Marked, Saved
        # Up again for 0.2 s, for less than a grace, for no longer than it may take to start, and for longer.
        0 up, 135 down, 200 up, 200.2 down by 300: Saved, Saved
        0 up, 135 down, 200 up by 239.9: Saved, Saved
        0 up, 135 down, 200 up by 264.9: Unclear, Unclear
        0 up, 135 down, 200 up by 265: Marked, Marked
        # First seen at 150 s, so that nobody knows what was before.
        150 down by 300: Unclear, Saved
        150 up by 151: Unclear, Saved
        150 up by 171: Unclear, Unclear
        150 up by 215: Marked, Marked
        # Not known for a while, and never.
        0 up, 135 down, 150 unknown, 189.9 down by 300: Saved, Saved
        0 up, 135 down, 150 unknown, 190.1 down by 300: Unclear, Unclear
        0 unknown by 300: Unclear, Unclear
    ";

    #[test]
    fn a_node_is_marked_once_it_was_watched_for_a_grace() {
        let moment = |text: &str| at(text.parse().expect(text));
        for (seen, fates) in ROWS.lines().filter_map(|row| row.trim().split_once(": ")) {
            let (changes, by) = seen.split_once(" by ").expect(seen);
            let mut marking = Marking::default();
            for change in changes.split(", ") {
                let (since, seen) = change.split_once(' ').expect(change);
                let is_up = (seen != "unknown").then_some(seen == "up");
                marking.follow(is_up, moment(since));
            }
            let fate = |renewed| {
                marking
                    .fate(at(renewed), TimeDelta::seconds(40), moment(by))
                    .0
            };
            let found = [100.0, 130.0].map(fate);
            assert_eq!(format!("{found:?}"), format!("[{fates}]"), "{seen}");
        }
    }
}
