//! The order in which dependents are scaled.

use std::collections::BTreeMap;
use std::ops::Index;

use chrono::TimeDelta;
use strum::{IntoStaticStr, VariantNames};

use super::lease::{Grace, LeaseClock};
use super::moment::Moment;
use crate::config::{Dependent, DependentId, ScaleInfo};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Direction {
    Up,
    Down,
}

/// One of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByDirection<T> {
    pub up: T,
    pub down: T,
}

impl<T> Index<Direction> for ByDirection<T> {
    type Output = T;

    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}

impl Direction {
    pub fn info(self, dependent: &Dependent) -> &ScaleInfo {
        match self {
            Self::Up => &dependent.scale_up,
            Self::Down => &dependent.scale_down,
        }
    }
}

/// The dependents by level: those of one level go side by side, and each level comes after all
/// lower ones.
pub(crate) fn levels(
    dependents: &[Dependent],
    direction: Direction,
) -> BTreeMap<i32, Vec<DependentId>> {
    let mut levels: BTreeMap<i32, Vec<DependentId>> = BTreeMap::new();
    for (at, dependent) in dependents.iter().enumerate() {
        let level = direction.info(dependent).level;
        levels.entry(level).or_default().push(DependentId(at));
    }
    levels
}

/// Time before kube-controller-manager marks a node at which the last write is sent: its pod needs
/// time to end.
const HEAD_START: TimeDelta = TimeDelta::seconds(3);

/// Ordering deadline: a later level of a scale-down waits for an earlier one no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    Passed,
    At(Moment),
    /// Nothing is to be won by haste.
    Never,
}

impl Deadline {
    pub(crate) fn has_passed(self, now: Moment) -> bool {
        match self {
            Self::Passed => true,
            Self::At(deadline) => deadline <= now,
            Self::Never => false,
        }
    }

    pub(crate) fn moment(self) -> Option<Moment> {
        match self {
            Self::At(deadline) => Some(deadline),
            Self::Passed | Self::Never => None,
        }
    }

    /// Returns the moment, or the deadline if that is earlier; `now` if it has passed.
    pub(crate) fn limit(self, moment: Moment, now: Moment) -> Moment {
        match self {
            Self::Passed => now,
            Self::At(deadline) => moment.min(deadline).max(now),
            Self::Never => moment,
        }
    }
}

/// Returns the ordering deadline: shortly before the oldest candidate that has not yet reached its
/// full grace does. When all have reached it nothing waits any more.
pub(crate) fn ordering_deadline<'a>(
    candidates: impl IntoIterator<Item = &'a LeaseClock>,
    now: Moment,
    grace: Grace,
) -> Deadline {
    let end = candidates
        .into_iter()
        .map(|clock| clock.renewed(grace) + grace.period())
        .filter(|&end| end > now)
        .min();
    end.map_or(Deadline::Passed, |end| {
        Deadline::At(end - grace.scaled(HEAD_START))
    })
}

#[cfg(test)]
mod tests;
