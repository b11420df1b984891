//! The prober's config file: what may stand in it, what holds when it does not, and what is refused.
//!
//! Field names and defaults are the Go original's (rule 22); ranges are checked here at load (rule 23 and D-7, D-9), because a wrong number
//! would otherwise show only in an outage, when protection is needed.

pub mod keys;
mod read;
mod warnings;

use std::fmt;
use std::path::Path;

pub use common::document::ConfigError;
use common::document::{self, Contents, Object, Problems};

pub use self::keys::{Config, Dependent, OnLoss, OwnerCheck, ResourceRef, ScaleInfo};

impl fmt::Display for ResourceRef {
    /// `Deployment/kube-controller-manager`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

pub type Loaded = document::Loaded<Config>;

impl Config {
    pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
        Self::read(&Contents::of(path)?)
    }

    pub fn read(contents: &Contents) -> Result<Loaded, ConfigError> {
        document::load(contents, Self::from_document)
    }

    /// Reads a config from text; errors call it `config`.
    pub fn parse(text: &str) -> Result<Loaded, ConfigError> {
        document::parse("config", text, Self::from_document)
    }

    /// As a file would say it, with every default written out: for those who ask what is in force.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("texts, numbers and lists of them")
    }

    fn from_document(root: &Object<'_>, problems: &Problems) -> Option<Self> {
        let config = Self::from_object(root)?;
        warnings::warn(&config, problems);
        Some(config)
    }
}

#[cfg(test)]
mod tests;
