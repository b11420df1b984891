//! What the complete probes of a shoot have said.

use std::sync::Arc;

use crate::judgement::Finding;
use crate::moment::Moment;
use crate::plan::Direction;

#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    pub last: Option<Arc<Finding>>,
    /// Since when every complete probe said "up".
    pub up: Option<UpSince>,
    /// Which verdict was the last that was no hold.
    pub direction: Option<Direction>,
    /// When the verdict last turned to "down".
    pub down: Option<Moment>,
}

#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct UpSince {
    pub at: Moment,
    pub probes: u32,
}

impl Verdicts {
    /// Takes in what a probe has said. True if the direction is another one than before.
    pub(super) fn adopt(&mut self, finding: Finding, now: Moment) -> bool {
        let direction = finding.verdict.aim().map(|(direction, _)| direction);
        self.up = (direction == Some(Direction::Up)).then(|| {
            let UpSince { at, probes } = self.up.unwrap_or(UpSince {
                at: finding.judged_at,
                probes: 0,
            });
            UpSince {
                at,
                probes: probes.saturating_add(1),
            }
        });
        let turns = direction.is_some() && direction != self.direction;
        if turns {
            self.direction = direction;
            self.down = (direction == Some(Direction::Down)).then_some(now);
        }
        self.last = Some(Arc::new(finding));
        turns
    }

    pub(super) fn is_down(&self) -> bool {
        self.direction == Some(Direction::Down)
    }
}
