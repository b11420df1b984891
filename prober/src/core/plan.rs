//! The order in which dependents are scaled (rule 59, D-35).

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::lease::{Grace, LeaseClock};
use super::moment::Moment;
use crate::config::{Dependent, ScaleInfo};

/// Which way to scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Bring back.
    Up,
    /// Take to 0.
    Down,
}

impl Direction {
    /// The direction's settings of a dependent.
    pub fn info(self, dependent: &Dependent) -> &ScaleInfo {
        match self {
            Self::Up => &dependent.scale_up,
            Self::Down => &dependent.scale_down,
        }
    }

    /// The direction in one word, for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// The dependents by ascending level: those of one level go side by side, and each level comes after all earlier ones.
pub fn levels(dependents: &[Dependent], direction: Direction) -> Vec<Vec<&Dependent>> {
    let mut levels: BTreeMap<i32, Vec<&Dependent>> = BTreeMap::new();
    for dependent in dependents {
        levels.entry(direction.info(dependent).level).or_default().push(dependent);
    }
    levels.into_values().collect()
}

/// How much earlier than kube-controller-manager the last write is sent: its pod needs time to end (D-35).
const HEAD_START: TimeDelta = TimeDelta::seconds(3);

/// Until when a later level of a scale-down may wait for an earlier one: shortly before the oldest candidate that has
/// not yet reached its full grace does. None when all have reached it: then nothing waits any more.
pub fn neat_until<'a>(candidates: impl IntoIterator<Item = &'a LeaseClock>, now: Moment, grace: Grace) -> Option<Moment> {
    let end = candidates.into_iter().map(|clock| clock.renewed(grace) + grace.period()).filter(|&end| end > now).min()?;
    let head_start = HEAD_START.min(TimeDelta::nanoseconds(grace.period().num_nanoseconds().unwrap_or(i64::MAX) / 1000 * 75));
    Some(end - head_start)
}

#[cfg(test)]
mod tests;
