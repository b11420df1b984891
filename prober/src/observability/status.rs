//! What the prober says of itself and of each shoot. `/statusz.json` is it, the page shows it, and the
//! command line reads it with the same types.
//!
//! ```text
//! views of the shoots, seed's objects --> ProberStatus --facts--> page
//!                                              '-> JSON --> ProberStatus --facts--> `status`, `explain`
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use prober_core::config::Config;
use prober_core::span;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outage::Outage;
use super::shoot_statuses::ShootStatuses;
use super::view::{ShootView, ShownDependent, ShownOption};
use crate::config;
use crate::seed::Seed;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProberStatus {
    /// Kind of the seed's objects that are not known at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Cow<'static, str>>,
    pub shoots_by_state: BTreeMap<Cow<'static, str>, usize>,
    /// Every shoot; those that need attention first, then by name.
    pub shoots: Vec<ShootView>,
    /// The last ones that have ended, the newest first.
    pub outages: Vec<Outage>,
    /// Settings by annotations on `garden`, for all shoots.
    pub settings: Vec<ShownOption>,
    /// The config in force, defaults included, as a config file would say it.
    pub config: Value,
    pub config_refused: bool,
}

impl ProberStatus {
    pub(crate) fn new(
        statuses: &ShootStatuses,
        seed: &Seed,
        config: &Config,
        config_refused: bool,
    ) -> Self {
        let settings = seed.options(config, None);
        let mut settings: Vec<_> = settings.iter().flat_map(ShownOption::all).collect();
        settings.retain(ShownOption::is_overruled);
        let (shoots, outages) = {
            let table = statuses.table.lock();
            let shoots: Vec<_> = table.shoots.values().cloned().collect();
            (shoots, table.outages.iter().cloned().collect())
        };
        let now = statuses.clock.now();
        let complete = |mut shoot: ShootView| {
            seed.show(&mut shoot, config);
            shoot.stamp(span(config.probe_timeout), now);
            shoot
        };
        let status = Self {
            unknown: seed.unknown().map(Into::into),
            outages,
            settings,
            config: config::to_json(config),
            config_refused,
            ..Self::default()
        };
        status.with_shoots(shoots.into_iter().map(complete))
    }

    /// Adds shoots, in the order in which they are shown.
    fn with_shoots(mut self, shoots: impl Iterator<Item = ShootView>) -> Self {
        self.shoots = shoots.collect();
        for shoot in &self.shoots {
            *self.shoots_by_state.entry(shoot.state.clone()).or_default() += 1;
        }
        let order = |shoot: &ShootView| (Reverse(shoot.concern()), shoot.namespace.clone());
        self.shoots.sort_by_cached_key(order);
        self
    }
}

impl Seed {
    /// Adds what the seed shows of a shoot, and no task of the shoot.
    fn show(&self, shoot: &mut ShootView, config: &Config) {
        let machines = self.machines(&shoot.namespace);
        let backed =
            machines.map(|machines| machines.values().filter(|node| node.is_some()).count());
        shoot.machines = backed;
        if shoot.probe.is_some() || shoot.decree.is_some() {
            return;
        }
        if let Some(options) = self.options(config, Some(&shoot.namespace)) {
            shoot.set_options(options);
        }
        let dependents = config.dependents.iter().map(|dependent| {
            let mut shown = ShownDependent::new(dependent);
            let state = self.state(&dependent.resource, &shoot.namespace);
            shown.show(dependent, &state);
            shown
        });
        shoot.dependents = dependents.collect();
    }
}

#[cfg(test)]
mod tests;
