//! Which Services are watched, and which pods wait for them.

use std::time::Duration;

use crate::selector::Selector;

/// Which pods are deleted when which Services are back.
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

/// A Service that pods wait for, in each namespace that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    pub name: String,
    /// The pods that wait for it are those that any of these selects; at least one.
    pub selectors: Vec<Selector>,
}

impl Config {
    /// What all pods that any Service's selectors match have in common.
    pub fn common_selector(&self) -> Selector {
        Selector::common(self.services.iter().flat_map(|service| &service.selectors))
    }
}
