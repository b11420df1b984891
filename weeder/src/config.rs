//! The weeder's config file: what may stand in it, what holds when it does not, and what is
//! refused.

pub mod keys;
mod read;

pub use common::document::ConfigError;
use common::document::{self, Contents, Object, Problems};
use common::go_compat::duration::GoDuration;
use weeder_core::config::{Config, Service};
use weeder_core::selector::Selector;

/// A config and what its author should hear about it.
pub type Loaded = document::Loaded<Config>;

/// Reads a config from what a file holds.
///
/// # Errors
/// When it is wrong; then every wrong field is named.
pub fn read(contents: &Contents) -> Result<Loaded, ConfigError> {
    document::load(contents, from_document)
}

/// Reads a config from text; errors call it `config`.
///
/// # Errors
/// When it is wrong; then every wrong field is named.
pub fn parse(text: &str) -> Result<Loaded, ConfigError> {
    document::parse("config", text, from_document)
}

/// The config with every default written out, for those who ask what is in force. Selectors are in
/// the API server's words.
pub fn to_json(config: &Config) -> serde_json::Value {
    let selectors = |service: &Service| -> Vec<String> {
        service.selectors.iter().map(Selector::to_string).collect()
    };
    let services: serde_json::Map<_, _> = config
        .services
        .iter()
        .map(|service| (service.name.clone(), selectors(service).into()))
        .collect();
    serde_json::json!({
        "watchDuration": GoDuration::from_std(config.watch_duration).to_string(),
        "servicesAndDependantSelectors": services,
        "maxDeletionsPerOwner": config.max_deletions_per_owner,
    })
}

fn from_document(root: &Object<'_>, problems: &Problems) -> Option<Config> {
    let config = read::config(root)?;
    for service in &config.services {
        if service.selectors.iter().all(Selector::is_nothing) {
            let name = &service.name;
            problems.warn(format!(
                "servicesAndDependantSelectors.{name}.podSelectors: they select no pod at all"
            ));
        }
    }
    Some(config)
}

#[cfg(test)]
mod tests;
