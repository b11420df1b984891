//! Terms by which this replica writes. When they change, a write wants a probe that was sent since.

use std::sync::Arc;

use super::{Environment, Owner, Reason};
use crate::config::Config;
use crate::lifecycle::ShootSettings;
use crate::moment::Moment;
use crate::plan::{ByDirection, Direction};

#[derive(Clone, Debug)]
pub(super) struct Terms {
    config: Arc<Config>,
    pub settings: Arc<ShootSettings>,
    /// See [`Environment::goes_first`].
    pub goes_first: bool,
    /// Reason for which nothing is written, whatever the probes say.
    pub forbidden: ByDirection<Option<Reason>>,
    /// Time of the last change.
    pub since: Moment,
    /// The pause that was read last.
    was_paused: bool,
}

impl Terms {
    /// Terms by an environment; `was_paused` is the pause that was read last.
    pub(super) fn of(env: &Environment, was_paused: bool, now: Moment) -> Self {
        Self {
            config: Arc::clone(&env.config),
            settings: Arc::clone(&env.settings),
            goes_first: env.goes_first(),
            forbidden: forbidden(env, was_paused),
            since: now,
            was_paused: env.paused.unwrap_or(was_paused),
        }
    }

    /// Takes in the environment. Returns true if the shoot's own settings have changed.
    pub(super) fn observe(&mut self, env: &Environment, now: Moment) -> bool {
        let new = Self::of(env, self.was_paused, now);
        let has_new_settings = new.settings != self.settings;
        let is_same = !has_new_settings
            && Arc::ptr_eq(&new.config, &self.config)
            && (new.goes_first, new.forbidden) == (self.goes_first, self.forbidden);
        let since = if is_same { self.since } else { now };
        *self = Self { since, ..new };
        has_new_settings
    }
}

fn forbidden(env: &Environment, was_paused: bool) -> ByDirection<Option<Reason>> {
    let reason = |direction| {
        let protects = direction == Direction::Down && env.goes_first();
        let is_owned = match env.owner {
            Owner::Here => true,
            Owner::LeaderOnly => protects,
            Owner::Unknown => false,
        };
        // While that is unknown the leader protects; but a pause that was read stays in effect until
        // it is read as lifted.
        let is_paused = env.paused.unwrap_or(!protects || was_paused);
        let may_stand_in = env.goes_first() || env.options.standby_protects.value;
        [
            (env.is_ours, Reason::NotOurs),
            (is_owned, Reason::NotOwned),
            (!is_paused, Reason::Paused),
            (may_stand_in, Reason::Leader),
        ]
        .into_iter()
        .find_map(|(is_met, reason)| (!is_met).then_some(reason))
    };
    ByDirection {
        up: reason(Direction::Up),
        down: reason(Direction::Down),
    }
}
