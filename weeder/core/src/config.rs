//! Configuration: the Services to watch, and the pods that depend on them.

use std::sync::Arc;
use std::time::Duration;

use crate::selector::Selector;

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Period of deletions after a Service became ready; positive. Default 5 m.
    pub watch_duration: Duration,
    /// Without duplicates; not empty.
    pub services: Vec<Service>,
    /// Maximum number of deleted pods of one owner per recovery, at least 1. Default: no limit.
    pub max_deletions_per_owner: Option<u32>,
}

/// A Service with dependent pods, in each namespace that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    pub name: ServiceName,
    /// Selectors of the dependent pods, of which any may match; not empty.
    pub selectors: Vec<Selector>,
}

/// Shared, since thousands of EndpointSlices carry the same few names.
pub type ServiceName = Arc<str>;

impl Config {
    /// Selector that matches every pod that any Service's selectors match.
    pub fn common_selector(&self) -> Selector {
        Selector::common(self.services.iter().flat_map(|service| &service.selectors))
    }

    /// True if there is a Service of this name.
    pub fn names(&self, service: &str) -> bool {
        self.services.iter().any(|known| *known.name == *service)
    }
}
