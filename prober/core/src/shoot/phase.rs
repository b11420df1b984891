//! Phases of the state machine.

use crate::scaling::{Levels, Scaling};

#[derive(Clone, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Observing,
    Scaling(Scaling, Levels),
    /// The shoot belongs to another seed: it is not probed.
    StoodDown,
    /// The same, while what runs of it here is scaled down.
    Passivating(Scaling, Levels),
}

impl Phase {
    pub(super) fn has_stood_down(&self) -> bool {
        matches!(self, Self::StoodDown | Self::Passivating(..))
    }

    pub(super) fn scaling(&self) -> Option<Scaling> {
        match self {
            Self::Scaling(scaling, _) | Self::Passivating(scaling, _) => Some(*scaling),
            Self::Observing | Self::StoodDown => None,
        }
    }

    pub(super) fn scaling_mut(&mut self) -> Option<(&mut Scaling, &mut Levels)> {
        match self {
            Self::Scaling(scaling, levels) | Self::Passivating(scaling, levels) => {
                Some((scaling, levels))
            }
            Self::Observing | Self::StoodDown => None,
        }
    }

    pub(super) fn begin(&mut self, scaling: Scaling, levels: Levels) {
        *self = if self.has_stood_down() {
            Self::Passivating(scaling, levels)
        } else {
            Self::Scaling(scaling, levels)
        };
    }

    /// Ends the scaling.
    pub(super) fn end(&mut self) {
        *self = if self.has_stood_down() {
            Self::StoodDown
        } else {
            Self::Observing
        };
    }

    /// Follows the owner record. When the shoot is lost a scaling under way goes on until its goal is
    /// compared; before the shoot is regained it has ended.
    pub(super) fn set_lost(&mut self, is_lost: bool) {
        if is_lost == self.has_stood_down() {
            return;
        }
        *self = match (std::mem::take(self), is_lost) {
            (Self::Scaling(scaling, levels), true) => Self::Passivating(scaling, levels),
            (_, true) => Self::StoodDown,
            (_, false) => Self::Observing,
        };
    }
}
