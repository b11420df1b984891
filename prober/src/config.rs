//! The prober's config file.
//!
//! Field names and defaults are the Go original's (rule 22); ranges are checked at load (rule 23
//! and D-7, D-9), because a wrong number would otherwise show only in an outage, when protection is
//! needed.

pub mod keys;
mod warnings;

use std::path::Path;

use common::document::{ConfigError, Contents, Loaded};
use prober_core::config::Config;

pub fn load(path: &Path) -> Result<Loaded<Config>, ConfigError> {
    read(&Contents::of(path)?)
}

pub fn parse(text: &str) -> Result<Loaded<Config>, ConfigError> {
    read(&text.into())
}

pub fn read(contents: &Contents) -> Result<Loaded<Config>, ConfigError> {
    contents.load(|root| {
        let config = keys::root(root)?;
        warnings::warn(&config, root);
        Some(config)
    })
}

/// As a file would say it, with every default written out: for those who ask what is in force.
pub fn to_json(config: &Config) -> serde_json::Value {
    serde_json::to_value(config).expect("texts, numbers and lists of them")
}

#[cfg(test)]
mod tests;
