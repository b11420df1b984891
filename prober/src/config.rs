//! The prober's config file.
//!
//! Ranges are checked at load (rule 23 and D-7, D-9), because a wrong number would otherwise show
//! only in an outage, when protection is needed.

mod warnings;

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use common::document::{ConfigError, Contents, Findings, FormerKeys, Loaded};
use go_compat::duration::GoDuration;
use prober_core::config::{Config, Dependent, OwnerCheck, ResourceRef};

/// The least wait between two probes, and between two checks of an owner record: less would hammer
/// every API server of the seed (D-9), or a DNS server that all shoots share.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

const FORMER: &FormerKeys = &[
    (
        "probes",
        "a key of versions before 1.0, which kubeConfigSecretName and dependentResourceInfos replaced",
    ),
    (
        "internalKubeConfigSecretName",
        "a key of versions before 1.2, which kubeConfigSecretName replaced",
    ),
    (
        "externalKubeConfigSecretName",
        "a key of versions before 1.2, which kubeConfigSecretName replaced",
    ),
];

pub fn load(path: &Path) -> Result<Loaded<Config>, ConfigError> {
    read(&Contents::of(path)?)
}

pub fn parse(text: &str) -> Result<Loaded<Config>, ConfigError> {
    read(&text.into())
}

pub fn read(contents: &Contents) -> Result<Loaded<Config>, ConfigError> {
    let mut loaded = contents.load(&every_key(), FORMER, check)?;
    loaded.warnings.extend(warnings::of(&loaded.config));
    Ok(loaded)
}

/// As a file would say it, with every default written out: for those who ask what is in force.
pub fn to_json(config: &Config) -> serde_json::Value {
    serde_json::to_value(config).expect("texts, numbers and lists of them")
}

/// Returns a config with every key there is, each with its default.
pub fn every_key() -> Config {
    Config {
        owner_check: Some(OwnerCheck::default()),
        dependents: vec![Dependent::default()],
        ..Config::default()
    }
}

fn check(config: Config, found: &mut Findings) -> Config {
    let interval = config.probe_interval;
    let fraction = config.node_lease_failure_fraction;
    let jitter = config.backoff_jitter_factor;
    for (key, is_met, expected) in [
        (
            "kubeConfigSecretName",
            is_name(&config.kubeconfig_secret_name),
            "the name of a Secret",
        ),
        (
            "probeInterval",
            interval >= SHORTEST_INTERVAL,
            "a duration of at least 1s",
        ),
        (
            "probeTimeout",
            !config.probe_timeout.is_zero(),
            "a duration above 0",
        ),
        (
            "backoffJitterFactor",
            jitter >= 0.0,
            "a number of at least 0",
        ),
        (
            "kcmNodeMonitorGraceDuration",
            !config.node_monitor_grace.is_zero(),
            "a duration above 0",
        ),
        (
            "nodeLeaseFailureFraction",
            fraction > 0.0 && fraction <= 1.0,
            "a number above 0 and at most 1",
        ),
        (
            "dependentResourceInfos",
            !config.dependents.is_empty(),
            "a list of at least one resource to scale",
        ),
    ] {
        found.require(key, is_met, expected);
    }
    if let Some(owner_check) = &config.owner_check {
        check_owner(owner_check, found);
    }
    let mut seen = HashSet::new();
    for (index, dependent) in config.dependents.iter().enumerate() {
        let path = format!("dependentResourceInfos[{index}]");
        check_dependent(&path, dependent, found);
        let resource = &dependent.resource;
        let is_new = seen.insert(resource) || resource.kind.is_empty();
        found.require(
            &path,
            is_new,
            format!("each resource once, but {resource} is listed again"),
        );
    }
    config
}

fn check_dependent(path: &str, dependent: &Dependent, found: &mut Findings) {
    let ResourceRef {
        api_version,
        kind,
        name,
    } = &dependent.resource;
    let is_version = api_version.split('/').count() <= 2 && api_version.split('/').all(is_name);
    found.require_value(
        &format!("{path}.ref"),
        "an object with kind, name and apiVersion",
    );
    for (part, is_met, expected) in [
        ("apiVersion", is_version, "an apiVersion, as apps/v1"),
        (
            "kind",
            is_name(kind),
            "a kind with spec.replicas, as Deployment",
        ),
        ("name", is_name(name), "the name of a resource"),
    ] {
        found.require(&format!("{path}.ref.{part}"), is_met, expected);
    }
    for (key, scale) in [
        ("scaleUp", &dependent.scale_up),
        ("scaleDown", &dependent.scale_down),
    ] {
        found.require_value(&format!("{path}.{key}"), "an object, as {level: 0}");
        let timeout = format!("{path}.{key}.timeout");
        found.require(&timeout, !scale.timeout.is_zero(), "a duration above 0");
    }
}

fn check_owner(check: &OwnerCheck, found: &mut Findings) {
    let (timeout, interval) = (check.timeout, check.interval);
    let shown = GoDuration(interval);
    found.require_value("ownerCheck.name", "a DNS name with placeholders");
    found.require_value("ownerCheck.value", "a text with placeholders");
    found.require(
        "ownerCheck.interval",
        interval >= SHORTEST_INTERVAL,
        "a duration of at least 1s",
    );
    found.require(
        "ownerCheck.timeout",
        !timeout.is_zero(),
        "a duration above 0",
    );
    found.require(
        "ownerCheck.timeout",
        timeout < interval,
        format!(
            "less than the interval of {shown}, not {}",
            GoDuration(timeout)
        ),
    );
    found.require(
        "ownerCheck.tolerance",
        check.tolerance >= interval,
        format!(
            "at least the interval of {shown}, not {}",
            GoDuration(check.tolerance)
        ),
    );
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
}

#[cfg(test)]
mod tests;
