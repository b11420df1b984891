//! The prober's config file.
//!
//! Ranges are checked at load (rule 23 and D-7, D-9), because a wrong number would otherwise show
//! only in an outage, when protection is needed.

mod ranges;
mod warnings;

use common::document::{self, Loaded, Problems};
use prober_core::config::Config;

pub fn parse(text: &str) -> Result<Loaded<Config>, Problems> {
    document::parse(text, |config: Config, found| {
        ranges::check(&config, found);
        found.warnings.extend(warnings::of(&config));
        config
    })
}

/// As a file would say it, with every default written out: for those who ask what is in force.
pub fn to_json(config: &Config) -> serde_json::Value {
    serde_json::to_value(config).expect("texts, numbers and lists of them")
}

#[cfg(test)]
mod tests;
