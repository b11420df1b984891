//! Which Services are watched, and which pods depend on them.

use std::sync::Arc;
use std::time::Duration;

use crate::selector::Selector;

/// Which pods are deleted when which Services are ready again.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long pods are deleted after their Service became ready; positive. Default 5 m.
    pub watch_duration: Duration,
    /// The Services, each once; at least one.
    pub services: Vec<Service>,
    /// How many pods of one owner are deleted at most after one recovery, at least 1 (D-46).
    /// Default: no limit.
    pub max_deletions_per_owner: Option<u32>,
}

/// A Service that pods depend on, in each namespace that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    pub name: ServiceName,
    /// A pod depends on the Service if any of these selects it; at least one.
    pub selectors: Vec<Selector>,
}

/// Shared: thousands of EndpointSlices carry the same few names.
pub type ServiceName = Arc<str>;

impl Config {
    /// What all pods that any Service's selectors match have in common.
    pub fn common_selector(&self) -> Selector {
        Selector::common(self.services.iter().flat_map(|service| &service.selectors))
    }

    /// Whether it has a Service of this name.
    pub fn names(&self, service: &str) -> bool {
        self.services.iter().any(|known| *known.name == *service)
    }
}
