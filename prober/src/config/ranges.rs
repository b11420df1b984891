//! What a config must hold.

use std::collections::HashSet;
use std::time::Duration;

use common::document::Findings;
use prober_core::config::{Config, Dependent, OwnerCheck, ResourceRef};
use prober_core::template::Template;

/// The least wait between two probes, and between two checks of an owner record: less would hammer
/// every API server of the seed (D-9), or a DNS server that all shoots share.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

const AT_LEAST_1S: &str = "a duration of at least 1s";
const ABOVE_0: &str = "a duration above 0";

pub(super) fn check(config: &Config, found: &mut Findings) {
    let jitter = config.backoff_jitter_factor;
    let fraction = config.node_lease_failure_fraction;
    for (field, is_met, expected) in [
        (
            "kubeConfigSecretName",
            is_name(&config.kubeconfig_secret_name),
            "the name of a Secret",
        ),
        (
            "probeInterval",
            config.probe_interval >= SHORTEST_INTERVAL,
            AT_LEAST_1S,
        ),
        ("probeTimeout", !config.probe_timeout.is_zero(), ABOVE_0),
        (
            "backoffJitterFactor",
            jitter >= 0.0 && jitter.is_finite(),
            "a number of at least 0",
        ),
        (
            "kcmNodeMonitorGraceDuration",
            !config.node_monitor_grace.is_zero(),
            ABOVE_0,
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
        found.require(field, is_met, expected);
    }
    if let Some(check) = &config.owner_check {
        check_owner(check, found);
    }
    check_dependents(&config.dependents, found);
}

fn check_dependents(dependents: &[Dependent], found: &mut Findings) {
    let object = "an object, as {level: 0}, whose timeout is above 0";
    let mut seen = HashSet::new();
    for (index, dependent) in dependents.iter().enumerate() {
        let resource = &dependent.resource;
        for (key, is_met, expected) in [
            (
                "ref",
                is_reference(resource),
                "an object with kind, name and apiVersion, as apps/v1",
            ),
            ("ref", seen.insert(resource), "each resource once"),
            ("scaleUp", !dependent.scale_up.timeout.is_zero(), object),
            ("scaleDown", !dependent.scale_down.timeout.is_zero(), object),
        ] {
            let field = format!("dependentResourceInfos[{index}].{key}");
            found.require(&field, is_met, expected);
        }
    }
}

fn check_owner(check: &OwnerCheck, found: &mut Findings) {
    let is_set = |template: &Template| *template != Template::default();
    let (interval, timeout) = (check.interval, check.timeout);
    for (key, is_met, expected) in [
        ("name", is_set(&check.name), "a DNS name with placeholders"),
        ("value", is_set(&check.value), "a text with placeholders"),
        ("interval", interval >= SHORTEST_INTERVAL, AT_LEAST_1S),
        (
            "timeout",
            !timeout.is_zero() && timeout < interval,
            "a duration above 0 and below the interval",
        ),
        (
            "tolerance",
            check.tolerance >= interval,
            "a duration of at least the interval",
        ),
    ] {
        found.require(&format!("ownerCheck.{key}"), is_met, expected);
    }
}

fn is_reference(resource: &ResourceRef) -> bool {
    let version = resource.api_version.split('/');
    version.clone().count() <= 2
        && version
            .chain([&*resource.kind, &resource.name])
            .all(is_name)
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
}
