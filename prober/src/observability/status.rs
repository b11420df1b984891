//! What the prober says of itself and of each shoot. `/statusz.json` is it, the page shows it, and the
//! command line reads it with the same types.
//!
//! ```text
//! views of the shoots, seed's objects --> ProberStatus --facts--> page
//!                                              '-> JSON --> ProberStatus --facts--> `status`, `explain`
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;

use prober_core::config::Config;
use prober_core::options::Source;
use prober_core::span;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outage::Outage;
use super::shoot_statuses::{SharedView, ShootStatuses};
use super::view::{ShootView, ShownDependent, ShownOption};
use crate::config;
use crate::seed::Seed;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProberStatus {
    /// Kind of the seed's objects that are not known at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Cow<'static, str>>,
    /// Every shoot; those that need attention first, then by name.
    pub shoots: Vec<ShootView>,
    /// The last ones that have ended, the newest first.
    pub outages: VecDeque<Outage>,
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
        let now = statuses.clock.now();
        let clone = |view: &SharedView| view.lock().clone();
        let mut shoots: Vec<_> = statuses.shoots.lock().values().map(clone).collect();
        for shoot in &mut shoots {
            seed.show(shoot, config);
            shoot.stamp(span(config.probe_timeout), now);
        }
        // They are in the order of their names.
        shoots.sort_by_cached_key(|shoot| Reverse(shoot.concern()));
        let settings = seed.options(config, None);
        let settings = settings.iter().flat_map(ShownOption::all);
        Self {
            unknown: seed.unknown().map(Into::into),
            shoots,
            outages: statuses.outages.lock().clone(),
            settings: settings.filter(|one| one.from == Source::Garden).collect(),
            config: config::to_json(config),
            config_refused,
        }
    }
}

impl Seed {
    /// Adds what the seed shows of a shoot.
    fn show(&self, shoot: &mut ShootView, config: &Config) {
        let machines = self.machines(&shoot.namespace);
        shoot.machines = machines.map(|nodes| nodes.values().filter(|node| node.is_some()).count());
        let options = self.options(config, Some(&shoot.namespace));
        shoot.settings = options.iter().flat_map(ShownOption::all).collect();
        let configured = &config.dependents;
        if shoot.dependents.is_empty() {
            shoot.dependents = configured.iter().map(ShownDependent::new).collect();
        }
        for shown in &mut shoot.dependents {
            let mut configured = configured.iter();
            // While the config changes its task may still have others.
            if let Some(dependent) = configured.find(|one| one.resource == shown.resource) {
                shown.show(dependent, &self.state(&shown.resource, &shoot.namespace));
            }
        }
    }
}

#[cfg(test)]
mod tests;
