//! From the fields of a document to a [`Config`]: defaults and ranges.

use std::collections::HashSet;
use std::time::Duration;

use common::document::{Object, Value};

use super::keys;
use super::{Config, Dependent, ResourceRef, ScaleInfo};

/// The reference's defaults (rule 22).
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const INITIAL_DELAY: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
const BACKOFF_JITTER_FACTOR: f64 = 0.2;
const NODE_MONITOR_GRACE: Duration = Duration::from_secs(40);
const NODE_LEASE_FAILURE_FRACTION: f64 = 0.60;
const SCALE_TIMEOUT: Duration = Duration::from_secs(30);

/// The shortest probe interval accepted: shorter ones would hammer every API server of the seed (D-9).
const SHORTEST_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The smallest duration above 0.
const POSITIVE: Duration = Duration::from_nanos(1);

/// Reads the whole config; every error is noted in the document, `None` says that there was one.
pub(super) fn config(root: &Object<'_>) -> Option<Config> {
    root.warn_of_unknown(keys::ROOT);
    // Everything is read before the first `?`, so that all errors are found.
    let kubeconfig_secret_name = name(root.field("kubeConfigSecretName"), "the name of a Secret");
    let probe_interval =
        duration(root.field("probeInterval"), PROBE_INTERVAL, SHORTEST_PROBE_INTERVAL, "a duration of at least 1s");
    let initial_delay = delay(root.field("initialDelay"), INITIAL_DELAY);
    let probe_timeout = positive(root.field("probeTimeout"), PROBE_TIMEOUT);
    let backoff_jitter_factor = number(
        root.field("backoffJitterFactor"),
        BACKOFF_JITTER_FACTOR,
        |factor| factor.is_finite() && factor >= 0.0,
        "a number of at least 0",
    );
    let node_monitor_grace = positive(root.field("kcmNodeMonitorGraceDuration"), NODE_MONITOR_GRACE);
    let node_lease_failure_fraction = number(
        root.field("nodeLeaseFailureFraction"),
        NODE_LEASE_FAILURE_FRACTION,
        |fraction| fraction > 0.0 && fraction <= 1.0,
        "a number above 0 and at most 1",
    );
    let scale_up_stabilization = delay(root.field("scaleUpStabilization"), Duration::ZERO);
    let restore_only_held_down = boolean(root.field("restoreOnlyHeldDown"), false);
    let standby_protects = boolean(root.field("standbyProtects"), true);
    let dependents = dependents(root.field("dependentResourceInfos"));
    Some(Config {
        kubeconfig_secret_name: kubeconfig_secret_name?,
        probe_interval: probe_interval?,
        initial_delay: initial_delay?,
        probe_timeout: probe_timeout?,
        backoff_jitter_factor: backoff_jitter_factor?,
        node_monitor_grace: node_monitor_grace?,
        node_lease_failure_fraction: node_lease_failure_fraction?,
        scale_up_stabilization: scale_up_stabilization?,
        restore_only_held_down: restore_only_held_down?,
        standby_protects: standby_protects?,
        dependents: dependents?,
    })
}

fn dependents(field: Value<'_>) -> Option<Vec<Dependent>> {
    let items = field.required("a list of at least one resource to scale").items()?;
    if items.is_empty() {
        field.refuse("a list of at least one resource to scale");
        return None;
    }
    let mut seen = HashSet::new();
    let read = items.iter().map(|item| {
        let dependent = dependent(item)?;
        if !seen.insert(dependent.resource.clone()) {
            item.refuse(format!("each resource once, but {} is listed again", dependent.resource));
            return None;
        }
        Some(dependent)
    });
    // Collected in two steps: one bad entry must not hide the errors of the next.
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}

fn dependent(item: &Value<'_>) -> Option<Dependent> {
    let entry = item.object_or_empty()?;
    entry.warn_of_unknown(keys::DEPENDENT);
    let resource = resource(entry.field("ref"));
    let optional = boolean(entry.field("optional"), false);
    let scale_up = scale(entry.field("scaleUp"));
    let scale_down = scale(entry.field("scaleDown"));
    Some(Dependent { resource: resource?, optional: optional?, scale_up: scale_up?, scale_down: scale_down? })
}

fn resource(field: Value<'_>) -> Option<ResourceRef> {
    let object = field.required("an object with kind, name and apiVersion").object()?;
    object.warn_of_unknown(keys::REF);
    let kind = name(object.field("kind"), "a kind, as Deployment");
    let name = name(object.field("name"), "the name of a resource");
    let api_version = api_version(object.field("apiVersion"));
    Some(ResourceRef { api_version: api_version?, kind: kind?, name: name? })
}

/// `version` or `group/version`, neither part blank.
fn api_version(field: Value<'_>) -> Option<String> {
    let expected = "an apiVersion, as apps/v1";
    let text = field.required(expected).text()?;
    let parts = text.split('/').count();
    if parts > 2 || text.split('/').any(|part| part.trim().is_empty()) {
        field.refuse(expected);
        return None;
    }
    Some(text)
}

fn scale(field: Value<'_>) -> Option<ScaleInfo> {
    let object = field.required("an object, as {level: 0}").object()?;
    object.warn_of_unknown(keys::SCALE);
    let level = or_default(object.field("level"), 0, Value::integer);
    let initial_delay = delay(object.field("initialDelay"), Duration::ZERO);
    let timeout = positive(object.field("timeout"), SCALE_TIMEOUT);
    Some(ScaleInfo { level: level?, initial_delay: initial_delay?, timeout: timeout? })
}

/// The default when nothing stands there; `None`, with the error noted, when something wrong does.
fn or_default<'d, T>(field: Value<'d>, default: T, read: impl FnOnce(&Value<'d>) -> Option<T>) -> Option<T> {
    if field.is_absent() { Some(default) } else { read(&field) }
}

fn boolean(field: Value<'_>, default: bool) -> Option<bool> {
    or_default(field, default, Value::boolean)
}

fn number(field: Value<'_>, default: f64, fits: impl FnOnce(f64) -> bool, expected: &str) -> Option<f64> {
    or_default(field, default, |field| {
        let number = field.number()?;
        let fits = fits(number);
        if !fits {
            field.refuse(expected);
        }
        fits.then_some(number)
    })
}

fn delay(field: Value<'_>, default: Duration) -> Option<Duration> {
    duration(field, default, Duration::ZERO, "a duration that is not negative")
}

fn positive(field: Value<'_>, default: Duration) -> Option<Duration> {
    duration(field, default, POSITIVE, "a duration above 0")
}

fn duration(field: Value<'_>, default: Duration, least: Duration, expected: &str) -> Option<Duration> {
    or_default(field, default, |field| {
        let duration = field.duration()?.to_std().filter(|duration| *duration >= least);
        if duration.is_none() {
            field.refuse(expected);
        }
        duration
    })
}

/// A text that is not blank.
fn name(field: Value<'_>, expected: &str) -> Option<String> {
    let text = field.required(expected).text()?;
    if text.trim().is_empty() {
        field.refuse(expected);
        return None;
    }
    Some(text)
}
