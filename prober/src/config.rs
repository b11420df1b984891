//! The prober's config file: what may stand in it, what holds when it does not, and what is
//! refused.
//!
//! Field names and defaults are the Go original's (rule 22); ranges are checked here at load (rule
//! 23 and D-7, D-9), because a wrong number would otherwise show only in an outage, when protection
//! is needed.

pub mod keys;
mod read;
mod warnings;

use std::path::Path;

pub use common::document::ConfigError;
use common::document::{self, Contents, Object, Problems};
use prober_core::config::Config;

use self::keys::FromObject;

pub type Loaded = document::Loaded<Config>;

pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    read(&Contents::of(path)?)
}

pub fn read(contents: &Contents) -> Result<Loaded, ConfigError> {
    document::load(contents, from_document)
}

/// Reads a config from text; errors call it `config`.
pub fn parse(text: &str) -> Result<Loaded, ConfigError> {
    document::parse("config", text, from_document)
}

/// As a file would say it, with every default written out: for those who ask what is in force.
pub fn to_json(config: &Config) -> serde_json::Value {
    serde_json::to_value(config).expect("texts, numbers and lists of them")
}

fn from_document(root: &Object<'_>, problems: &Problems) -> Option<Config> {
    let config = Config::from_object(root)?;
    warnings::warn(&config, problems);
    Some(config)
}

#[cfg(test)]
mod tests;
