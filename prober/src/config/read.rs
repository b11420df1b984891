//! From the fields of a document to a [`Config`]: defaults and ranges.

use std::collections::HashSet;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use common::document::{Key, Object, Value};

use super::keys;
use super::{Config, Dependent, ResourceRef, ScaleInfo};

/// The shortest probe interval accepted: shorter ones would hammer every API server of the seed (D-9).
const SHORTEST_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The smallest duration above 0.
const POSITIVE: Duration = Duration::from_nanos(1);

/// Reads the whole config; every error is noted in the document, `None` says that there was one.
pub(super) fn config(root: &Object<'_>) -> Option<Config> {
    root.warn_of_unknown(keys::ROOT);
    // Everything is read before the first `?`, so that all errors are found.
    let kubeconfig_secret_name = name(root, keys::KUBECONFIG_SECRET_NAME, "the name of a Secret");
    let probe_interval = duration(root, keys::PROBE_INTERVAL, SHORTEST_PROBE_INTERVAL);
    let initial_delay = duration(root, keys::INITIAL_DELAY, Duration::ZERO);
    let probe_timeout = duration(root, keys::PROBE_TIMEOUT, POSITIVE);
    let backoff_jitter_factor = number(root, keys::BACKOFF_JITTER_FACTOR, |factor| factor.is_finite() && factor >= 0.0);
    let node_monitor_grace = duration(root, keys::NODE_MONITOR_GRACE, POSITIVE);
    let node_lease_failure_fraction =
        number(root, keys::NODE_LEASE_FAILURE_FRACTION, |fraction| fraction > 0.0 && fraction <= 1.0);
    let scale_up_stabilization = duration(root, keys::SCALE_UP_STABILIZATION, Duration::ZERO);
    let restore_only_held_down = or_default(root, keys::RESTORE_ONLY_HELD_DOWN, Value::boolean);
    let standby_protects = or_default(root, keys::STANDBY_PROTECTS, Value::boolean);
    let dependents = dependents(root.field(keys::DEPENDENTS.name));
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
    let resource = resource(entry.field(keys::RESOURCE.name));
    let optional = or_default(&entry, keys::OPTIONAL, Value::boolean);
    let scale_up = scale(entry.field(keys::SCALE_UP.name));
    let scale_down = scale(entry.field(keys::SCALE_DOWN.name));
    Some(Dependent { resource: resource?, optional: optional?, scale_up: scale_up?, scale_down: scale_down? })
}

fn resource(field: Value<'_>) -> Option<ResourceRef> {
    let object = field.required("an object with kind, name and apiVersion").object()?;
    object.warn_of_unknown(keys::REF);
    let kind = name(&object, keys::KIND, "a kind, as Deployment");
    let name = name(&object, keys::NAME, "the name of a resource");
    let api_version = api_version(object.field(keys::API_VERSION.name));
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
    let level = or_default(&object, keys::LEVEL, Value::integer);
    let initial_delay = duration(&object, keys::SCALE_INITIAL_DELAY, Duration::ZERO);
    let timeout = duration(&object, keys::SCALE_TIMEOUT, POSITIVE);
    Some(ScaleInfo { level: level?, initial_delay: initial_delay?, timeout: timeout? })
}

/// The default when nothing stands there; `None`, with the error noted, when something wrong does.
fn or_default<'d, T>(object: &Object<'d>, key: Key, read: impl FnOnce(&Value<'d>) -> Option<T>) -> Option<T>
where
    T: FromStr<Err: Debug>,
{
    let field = object.field(key.name);
    if field.is_absent() { Some(key.default.parse().expect("a default that its key takes")) } else { read(&field) }
}

fn number(object: &Object<'_>, key: Key, fits: impl FnOnce(f64) -> bool) -> Option<f64> {
    or_default(object, key, |field| {
        let number = field.number()?;
        let fits = fits(number);
        if !fits {
            field.refuse(key.takes);
        }
        fits.then_some(number)
    })
}

fn duration(object: &Object<'_>, key: Key, least: Duration) -> Option<Duration> {
    let fits = |duration: &Duration| *duration >= least;
    let duration = or_default(object, key, |field| {
        let duration = field.duration()?;
        if duration.to_std().filter(fits).is_none() {
            field.refuse(if least.is_zero() { "a duration that is not negative" } else { key.takes });
        }
        Some(duration)
    })?;
    duration.to_std().filter(fits)
}

/// A text that is not blank.
fn name(object: &Object<'_>, key: Key, expected: &str) -> Option<String> {
    let field = object.field(key.name);
    let text = field.required(expected).text()?;
    if text.trim().is_empty() {
        field.refuse(expected);
        return None;
    }
    Some(text)
}
