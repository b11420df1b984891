//! The order in which dependents are scaled (rule 59, D-35).

use std::collections::BTreeMap;
use std::ops::Index;

use chrono::TimeDelta;
use strum::{IntoStaticStr, VariantNames};

use super::lease::{Grace, GraceShare, LeaseClock};
use super::moment::Moment;
use crate::config::{Dependent, DependentId, ScaleInfo};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Direction {
    Up,
    Down,
}

/// One of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

/// How much earlier than kube-controller-manager the last write is sent: its pod needs time to end
/// (D-35).
const HEAD_START: GraceShare = GraceShare {
    basis_points: 750,
    at_most: TimeDelta::seconds(3),
};

/// The ordering deadline: until when a later level of a scale-down may wait for an earlier one. It
/// is shortly before the oldest candidate that has not yet reached its full grace does. None when
/// all have reached it: then nothing waits any more.
pub(crate) fn ordering_deadline<'a>(
    candidates: impl IntoIterator<Item = &'a LeaseClock>,
    now: Moment,
    grace: Grace,
) -> Option<Moment> {
    let end = candidates
        .into_iter()
        .map(|clock| clock.renewed(grace) + grace.period())
        .filter(|&end| end > now)
        .min()?;
    Some(end - grace.share(HEAD_START))
}

#[cfg(test)]
mod tests;
