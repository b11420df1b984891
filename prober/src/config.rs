//! The prober's config file: what may stand in it, what holds when it does not, and what is refused.
//!
//! Field names and defaults are the reference's (rule 22); ranges are checked here at load (rule 23 and D-7, D-9), because a wrong number
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

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The Secret in the shoot's namespace on the seed whose key `kubeconfig` leads to the shoot. Never blank.
    pub kubeconfig_secret_name: String,
    /// The longest wait between two probes; at least 1 s (decisions, "Life cycle"). Default 10 s.
    pub probe_interval: Duration,
    /// From the moment a shoot may be probed to the first write. Default 30 s; may be 0.
    pub initial_delay: Duration,
    /// The longest a whole probe may take; positive. Default 30 s.
    pub probe_timeout: Duration,
    /// The wait between probes is stretched by up to this share of itself; 0 or more. Default 0.2.
    pub backoff_jitter_factor: f64,
    /// How long kube-controller-manager waits for a lease's renewal before it gives the node up (`kcmNodeMonitorGraceDuration`); positive.
    /// Default 40 s; a shoot's own `nodeMonitorGracePeriod` wins.
    pub node_monitor_grace: Duration,
    /// The share of candidate leases that must be expired for a scale-down, in (0, 1]. Default 0.6.
    pub node_lease_failure_fraction: f64,
    /// How long the lease probe must stay healthy before anything is restored (`scaleUpStabilization`, D-22). Not in the reference. Default
    /// 0: at once.
    pub scale_up_stabilization: Duration,
    /// Restore only what carries the marker of a scale-down of ours (`restoreOnlyHeldDown`). Not in the reference. Default false: whatever
    /// is configured and found at 0, as the reference (rule 63).
    pub restore_only_held_down: bool,
    /// Whether a replica that does not lead protects when the leader has not acted (`standbyProtects`, D-50). Not in the reference. Default
    /// true.
    pub standby_protects: bool,
    /// What is scaled, in the file's order; at least one, no resource twice.
    pub dependents: Vec<Dependent>,
}

/// A resource in the shoot's namespace on the seed that is scaled to 0 in an outage.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependent {
    pub resource: ResourceRef,
    /// Whether its absence is no error. Default false.
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
    /// Lower levels go first, equal ones together; may be negative (rule 19). Default 0.
    pub level: i32,
    /// The wait before it is scaled, once its level has begun. Default 0.
    pub initial_delay: Duration,
    /// The longest its requests may take; positive. Default 30 s.
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
