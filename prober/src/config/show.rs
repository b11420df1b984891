//! A config as a file would say it, with every default written out: for those who ask what is in force.

use std::time::Duration;

use common::go_duration::GoDuration;
use serde_json::{Value, json};

use super::{Config, Dependent, ScaleInfo};

impl Config {
    pub fn to_json(&self) -> Value {
        json!({
            "kubeConfigSecretName": self.kubeconfig_secret_name,
            "probeInterval": shown(self.probe_interval),
            "initialDelay": shown(self.initial_delay),
            "probeTimeout": shown(self.probe_timeout),
            "backoffJitterFactor": self.backoff_jitter_factor,
            "kcmNodeMonitorGraceDuration": shown(self.node_monitor_grace),
            "nodeLeaseFailureFraction": self.node_lease_failure_fraction,
            "scaleUpStabilization": shown(self.scale_up_stabilization),
            "restoreOnlyHeldDown": self.restore_only_held_down,
            "standbyProtects": self.standby_protects,
            "dependentResourceInfos": self.dependents.iter().map(dependent).collect::<Vec<_>>(),
        })
    }
}

fn dependent(dependent: &Dependent) -> Value {
    let Dependent { resource, optional, scale_up, scale_down } = dependent;
    json!({
        "ref": { "apiVersion": resource.api_version, "kind": resource.kind, "name": resource.name },
        "optional": optional,
        "scaleUp": scale(scale_up),
        "scaleDown": scale(scale_down),
    })
}

fn scale(info: &ScaleInfo) -> Value {
    json!({ "level": info.level, "initialDelay": shown(info.initial_delay), "timeout": shown(info.timeout) })
}

fn shown(duration: Duration) -> String {
    GoDuration::from_std(duration).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_a_config_file_of_the_same_meaning() {
        let file = include_str!("../../../config/prober.yaml");
        let config = Config::parse(file).expect("Gardener's own").config;
        let config = Config {
            scale_up_stabilization: Duration::from_secs(90),
            restore_only_held_down: true,
            standby_protects: false,
            ..config
        };
        let again = Config::parse(&config.to_json().to_string()).expect("JSON is YAML").config;
        assert_eq!(again, config);
    }
}
