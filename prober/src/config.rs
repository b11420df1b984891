//! The prober's config file: what may stand in it, what holds when it does not, and what is refused.
//!
//! Field names and defaults are the Go original's (rule 22); ranges are checked here at load (rule 23 and D-7, D-9), because a wrong number
//! would otherwise show only in an outage, when protection is needed.

pub mod keys;
mod read;
mod show;
mod warnings;

use std::fmt;
use std::path::Path;
use std::time::Duration;

pub use common::document::ConfigError;
use common::document::{self, Contents, Object, Problems};

/// What each field means and what it is by default stands in [`keys`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Never blank.
    pub kubeconfig_secret_name: String,
    /// At least 1 s (decisions, "Life cycle").
    pub probe_interval: Duration,
    pub initial_delay: Duration,
    /// Above 0.
    pub probe_timeout: Duration,
    /// 0 or more.
    pub backoff_jitter_factor: f64,
    /// Above 0.
    pub node_monitor_grace: Duration,
    /// In (0, 1].
    pub node_lease_failure_fraction: f64,
    /// D-22.
    pub scale_up_stabilization: Duration,
    /// Where this is false, whatever is configured and found at 0 is restored, as the Go original does (rule 63).
    pub restore_only_held_down: bool,
    /// D-50.
    pub standby_protects: bool,
    /// In the file's order; at least one, no resource twice.
    pub dependents: Vec<Dependent>,
}

/// A resource in the shoot's namespace on the seed that is scaled to 0 in an outage.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependent {
    pub resource: ResourceRef,
    pub optional: bool,
    pub scale_up: ScaleInfo,
    pub scale_down: ScaleInfo,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceRef {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// The kind, as `Deployment`.
    pub kind: String,
    pub name: String,
}

impl fmt::Display for ResourceRef {
    /// `Deployment/kube-controller-manager`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScaleInfo {
    /// May be negative (rule 19).
    pub level: i32,
    pub initial_delay: Duration,
    /// Above 0.
    pub timeout: Duration,
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

    fn from_document(root: &Object<'_>, problems: &Problems) -> Option<Self> {
        let config = read::config(root)?;
        warnings::warn(&config, problems);
        Some(config)
    }
}

#[cfg(test)]
mod tests;
