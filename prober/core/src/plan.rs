//! The order in which dependents are scaled.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::config::{Dependent, DependentId, ScaleInfo};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantNames, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
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
