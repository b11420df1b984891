//! Both agents' config files.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use common::document::ConfigError;
use serde_json::{Value, json};

/// Far more than the largest file needs, even instrumented on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is taken is in range and says the same when it is written out; what is refused is refused with every wrong field's name.
pub fn check_prober(text: &str) {
    use prober::config::Config;
    let config = match timely(|| Config::parse(text)) {
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|warning| super::must_be_one_line(warning));
            loaded.config
        }
        Err(error) => {
            return refused(
                &error,
                &[
                    "kubeConfigSecretName",
                    "probeInterval",
                    "initialDelay",
                    "probeTimeout",
                    "backoffJitterFactor",
                    "kcmNodeMonitorGraceDuration",
                    "nodeLeaseFailureFraction",
                    "scaleUpStabilization",
                    "restoreOnlyHeldDown",
                    "standbyProtects",
                    "ownerCheck",
                    "dependentResourceInfos",
                ],
            );
        }
    };
    assert!(!config.kubeconfig_secret_name.trim().is_empty());
    assert!(config.probe_interval >= Duration::from_secs(1));
    assert!(!config.probe_timeout.is_zero() && !config.node_monitor_grace.is_zero());
    assert!(config.backoff_jitter_factor >= 0.0 && config.backoff_jitter_factor.is_finite());
    assert!(config.node_lease_failure_fraction > 0.0 && config.node_lease_failure_fraction <= 1.0);
    assert!(!config.dependents.is_empty());
    let resources: HashSet<_> = config.dependents.iter().map(|dependent| &dependent.resource).collect();
    assert_eq!(resources.len(), config.dependents.len(), "one resource twice");
    if let Some(check) = &config.owner_check {
        assert!(!check.timeout.is_zero() && check.timeout < check.interval && check.interval <= check.tolerance);
    }
    let again = Config::parse(&super::yaml(&written(&config))).expect("what was read can be written");
    assert_eq!(again.config, config, "from {text:?}");
}

/// A prober's config as JSON, which is almost YAML.
fn written(config: &prober::config::Config) -> Value {
    let span = |duration: Duration| format!("{}ns", duration.as_nanos());
    let turn = |info: &prober::config::ScaleInfo| json!({"level": info.level, "initialDelay": span(info.initial_delay), "timeout": span(info.timeout)});
    let dependents: Vec<Value> = config
        .dependents
        .iter()
        .map(|dependent| {
            let resource = &dependent.resource;
            json!({
                "ref": {"kind": resource.kind, "name": resource.name, "apiVersion": resource.api_version},
                "optional": dependent.optional, "scaleUp": turn(&dependent.scale_up), "scaleDown": turn(&dependent.scale_down),
            })
        })
        .collect();
    json!({
        "kubeConfigSecretName": config.kubeconfig_secret_name,
        "probeInterval": span(config.probe_interval),
        "initialDelay": span(config.initial_delay),
        "probeTimeout": span(config.probe_timeout),
        "backoffJitterFactor": config.backoff_jitter_factor,
        "kcmNodeMonitorGraceDuration": span(config.node_monitor_grace),
        "nodeLeaseFailureFraction": config.node_lease_failure_fraction,
        "scaleUpStabilization": span(config.scale_up_stabilization),
        "restoreOnlyHeldDown": config.restore_only_held_down,
        "standbyProtects": config.standby_protects,
        "ownerCheck": config.owner_check.as_ref().map(|check| json!({
            "name": check.name, "value": check.value, "servers": check.servers, "onLoss": check.on_loss,
            "interval": span(check.interval), "timeout": span(check.timeout), "tolerance": span(check.tolerance),
        })),
        "dependentResourceInfos": dependents,
    })
}

/// As for the prober; and what all selectors have in common misses nothing that one of them selects.
pub fn check_weeder(text: &str) {
    use weeder::config::Config;
    let config = match timely(|| Config::parse(text)) {
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|warning| super::must_be_one_line(warning));
            loaded.config
        }
        Err(error) => return refused(&error, &["watchDuration", "servicesAndDependantSelectors", "maxDeletionsPerOwner"]),
    };
    assert!(!config.watch_duration.is_zero());
    assert!(config.max_deletions_per_owner != Some(0));
    assert!(!config.services.is_empty());
    let names: HashSet<_> = config.services.iter().map(|service| &service.name).collect();
    assert_eq!(names.len(), config.services.len(), "one Service twice");
    assert!(config.services.iter().all(|service| !service.name.is_empty() && !service.selectors.is_empty()));
    let common = config.common_selector();
    for pod in [
        BTreeMap::new(),
        BTreeMap::from([
            ("gardener.cloud/role".to_owned(), "controlplane".to_owned()),
            ("role".to_owned(), "apiserver".to_owned()),
        ]),
        BTreeMap::from([("role".to_owned(), "main".to_owned()), ("app".to_owned(), String::new())]),
    ] {
        let selected = config.services.iter().flat_map(|service| &service.selectors).any(|selector| selector.matches(&pod));
        assert!(!selected || common.matches(&pod), "{common} misses {pod:?}");
    }
}

/// Every line of a refusal is one readable line, and every wrong field is named from the top.
fn refused(error: &ConfigError, fields: &[&str]) {
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1 + error.fields().len().max(1), "one line for each error and one for the file: {text:?}");
    text.lines().for_each(super::must_be_one_line);
    for wrong in error.fields() {
        let known = wrong.field.is_empty() || fields.iter().any(|field| wrong.field.starts_with(field));
        assert!(known && !wrong.expected.is_empty(), "{wrong}");
    }
}

fn timely<T>(read: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let value = read();
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    value
}
