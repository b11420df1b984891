//! A config as a file would say it, with every default written out: for those who ask what is in force.

use std::time::Duration;

use common::go_compat::duration::GoDuration;
use serde_json::{Value, json};

use super::{Config, Dependent, ScaleInfo, keys};

impl Config {
    pub fn to_json(&self) -> Value {
        json!({
            (keys::KUBECONFIG_SECRET_NAME.name): self.kubeconfig_secret_name,
            (keys::PROBE_INTERVAL.name): shown(self.probe_interval),
            (keys::INITIAL_DELAY.name): shown(self.initial_delay),
            (keys::PROBE_TIMEOUT.name): shown(self.probe_timeout),
            (keys::BACKOFF_JITTER_FACTOR.name): self.backoff_jitter_factor,
            (keys::NODE_MONITOR_GRACE.name): shown(self.node_monitor_grace),
            (keys::NODE_LEASE_FAILURE_FRACTION.name): self.node_lease_failure_fraction,
            (keys::SCALE_UP_STABILIZATION.name): shown(self.scale_up_stabilization),
            (keys::RESTORE_ONLY_HELD_DOWN.name): self.restore_only_held_down,
            (keys::STANDBY_PROTECTS.name): self.standby_protects,
            (keys::DEPENDENTS.name): self.dependents.iter().map(dependent).collect::<Vec<_>>(),
        })
    }
}

fn dependent(dependent: &Dependent) -> Value {
    let Dependent { resource, optional, scale_up, scale_down } = dependent;
    json!({
        (keys::RESOURCE.name): {
            (keys::API_VERSION.name): resource.api_version,
            (keys::KIND.name): resource.kind,
            (keys::NAME.name): resource.name,
        },
        (keys::OPTIONAL.name): optional,
        (keys::SCALE_UP.name): scale(scale_up),
        (keys::SCALE_DOWN.name): scale(scale_down),
    })
}

fn scale(info: &ScaleInfo) -> Value {
    json!({
        (keys::LEVEL.name): info.level,
        (keys::SCALE_INITIAL_DELAY.name): shown(info.initial_delay),
        (keys::SCALE_TIMEOUT.name): shown(info.timeout),
    })
}

fn shown(duration: Duration) -> String {
    GoDuration::from_std(duration).to_string()
}
