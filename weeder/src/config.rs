//! The weeder's config file: what may stand in it, what holds when it does not, and what is refused.

pub mod keys;
mod read;

use std::time::Duration;

pub use common::document::ConfigError;
use common::document::{self, Contents, Object, Problems};
use common::go_compat::duration::GoDuration;

use crate::core::selector::Selector;

/// Which pods are deleted when which Services are back.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long pods are deleted after their Service became ready; positive. Default 5 m.
    pub watch_duration: Duration,
    /// The Services, each once; at least one.
    pub services: Vec<Service>,
    /// How many pods of one owner are deleted at most after one recovery, at least 1 (D-46). Default: no limit.
    pub max_deletions_per_owner: Option<u32>,
}

/// A Service that pods wait for, in each namespace that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    pub name: String,
    /// The pods that wait for it are those that any of these selects; at least one.
    pub selectors: Vec<Selector>,
}

/// A config and what its author should hear about it.
pub type Loaded = document::Loaded<Config>;

impl Config {
    /// Reads a config from what a file holds.
    ///
    /// # Errors
    /// When it is wrong; then every wrong field is named.
    pub fn read(contents: &Contents) -> Result<Loaded, ConfigError> {
        document::load(contents, Self::from_document)
    }

    /// Reads a config from text; errors call it `config`.
    ///
    /// # Errors
    /// When it is wrong; then every wrong field is named.
    pub fn parse(text: &str) -> Result<Loaded, ConfigError> {
        document::parse("config", text, Self::from_document)
    }

    /// What all pods that any Service's selectors match have in common.
    pub fn common_selector(&self) -> Selector {
        Selector::common(self.services.iter().flat_map(|service| &service.selectors))
    }

    /// The config with every default written out, for those who ask what is in force. Selectors are in the API server's words.
    pub fn to_json(&self) -> serde_json::Value {
        let selectors = |service: &Service| -> Vec<String> { service.selectors.iter().map(Selector::to_string).collect() };
        let services: serde_json::Map<_, _> =
            self.services.iter().map(|service| (service.name.clone(), selectors(service).into())).collect();
        serde_json::json!({
            "watchDuration": GoDuration::from_std(self.watch_duration).to_string(),
            "servicesAndDependantSelectors": services,
            "maxDeletionsPerOwner": self.max_deletions_per_owner,
        })
    }

    fn from_document(root: &Object<'_>, problems: &Problems) -> Option<Self> {
        let config = read::config(root)?;
        for service in &config.services {
            if service.selectors.iter().all(Selector::is_nothing) {
                let name = &service.name;
                problems.warn(format!("servicesAndDependantSelectors.{name}.podSelectors: they select no pod at all"));
            }
        }
        Some(config)
    }
}

#[cfg(test)]
mod tests;
