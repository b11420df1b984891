//! From the fields of a document to the values of a [`Config`](super::Config): defaults and ranges.
//! Each function reads one key.

use std::collections::HashSet;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use common::document::{Key, Object, Value};
use common::go_compat::duration::GoDuration;
use prober_core::config::{Dependent, OnLoss, OwnerCheck, ResourceRef, ScaleInfo};
use prober_core::owner::Template;

use super::keys::FromObject;

pub(super) fn dependents(object: &Object<'_>, key: Key) -> Option<Vec<Dependent>> {
    let expected = "a list of at least one resource to scale";
    let field = object.field(key.name);
    let items = accept(
        &field,
        field.required(expected).items()?,
        |items| !items.is_empty(),
        expected,
    )?;
    let mut seen = HashSet::new();
    each(&items, |item| {
        let dependent = Dependent::from_object(&item.object_or_empty()?)?;
        let expected = format!(
            "each resource once, but {} is listed again",
            dependent.resource
        );
        accept(
            item,
            dependent,
            |dependent| seen.insert(dependent.resource.clone()),
            &expected,
        )
    })
}

pub(super) fn resource(object: &Object<'_>, key: Key) -> Option<ResourceRef> {
    let field = object.field(key.name);
    ResourceRef::from_object(
        &field
            .required("an object with kind, name and apiVersion")
            .object()?,
    )
}

/// `version` or `group/version`, neither part blank.
pub(super) fn api_version(object: &Object<'_>, key: Key) -> Option<String> {
    let fits = |text: &String| {
        text.split('/').count() <= 2 && text.split('/').all(|part| !part.trim().is_empty())
    };
    text(object, key, "an apiVersion, as apps/v1", fits)
}

pub(super) fn scale(object: &Object<'_>, key: Key) -> Option<ScaleInfo> {
    let field = object.field(key.name);
    ScaleInfo::from_object(&field.required("an object, as {level: 0}").object()?)
}

/// None when nothing stands there.
pub(super) fn owner_check(object: &Object<'_>, key: Key) -> Option<Option<OwnerCheck>> {
    let field = object.field(key.name);
    if field.is_absent() {
        return Some(None);
    }
    let object = field.object()?;
    let check = OwnerCheck::from_object(&object)?;
    let [timeout, interval, tolerance] =
        [check.timeout, check.interval, check.tolerance].map(GoDuration::from_std);
    let fits = |key: &str, fits: bool, expected: String| {
        accept(&object.field(key), (), |()| fits, &expected)
    };
    let short = fits(
        "timeout",
        check.timeout < check.interval,
        format!("less than the interval of {interval}, not {timeout}"),
    );
    let long = fits(
        "tolerance",
        check.tolerance >= check.interval,
        format!("at least the interval of {interval}, not {tolerance}"),
    );
    short.and(long).map(|()| Some(check))
}

pub(super) fn template(
    object: &Object<'_>,
    key: Key,
    parse: fn(&str) -> Result<Template, String>,
) -> Option<Template> {
    let field = object.field(key.name);
    let text = field.required(key.takes).text()?;
    parse(&text).map_err(|expected| field.refuse(expected)).ok()
}

/// Without a port: DNS' own, 53.
pub(super) fn servers(object: &Object<'_>, key: Key) -> Option<Vec<SocketAddr>> {
    let field = object.field(key.name);
    if field.is_absent() {
        return Some(Vec::new());
    }
    let address = |item: &Value<'_>| {
        let text = item.required("the address of a DNS server").text()?;
        let address = text.parse().or_else(|_| {
            text.parse()
                .map(|address: IpAddr| SocketAddr::new(address, 53))
        });
        address
            .map_err(|_| item.refuse("the address of a DNS server, as 10.0.0.10:53"))
            .ok()
    };
    each(&field.items()?, address)
}

pub(super) fn on_loss(object: &Object<'_>, key: Key) -> Option<OnLoss> {
    or_default(object, key, |field| {
        field
            .text()?
            .parse()
            .map_err(|_| field.refuse("standDown or passivate"))
            .ok()
    })
}

/// The default when nothing stands there; `None`, with the error noted, when something wrong does.
pub(super) fn or_default<'d, T>(
    object: &Object<'d>,
    key: Key,
    read: impl FnOnce(&Value<'d>) -> Option<T>,
) -> Option<T>
where
    T: FromStr<Err: Debug>,
{
    let field = object.field(key.name);
    if field.is_absent() {
        Some(key.default.parse().expect("a default that its key takes"))
    } else {
        read(&field)
    }
}

pub(super) fn number(
    object: &Object<'_>,
    key: Key,
    fits: impl FnOnce(&f64) -> bool,
) -> Option<f64> {
    or_default(object, key, |field| {
        accept(field, field.number()?, fits, key.takes)
    })
}

pub(super) fn duration(object: &Object<'_>, key: Key, least: Duration) -> Option<Duration> {
    let fits = |duration: &GoDuration| duration.to_std().is_some_and(|duration| duration >= least);
    let expected = if least.is_zero() {
        "a duration that is not negative"
    } else {
        key.takes
    };
    or_default(object, key, |field| {
        accept(field, field.duration()?, fits, expected)
    })?
    .to_std()
}

/// A text that is not blank.
pub(super) fn name(object: &Object<'_>, key: Key, expected: &str) -> Option<String> {
    text(object, key, expected, |text| !text.trim().is_empty())
}

fn text(
    object: &Object<'_>,
    key: Key,
    expected: &str,
    fits: impl FnOnce(&String) -> bool,
) -> Option<String> {
    let field = object.field(key.name);
    accept(&field, field.required(expected).text()?, fits, expected)
}

/// Reads all items before it gives up: one bad entry must not hide the errors of the next.
fn each<T>(items: &[Value<'_>], read: impl FnMut(&Value<'_>) -> Option<T>) -> Option<Vec<T>> {
    let read: Vec<_> = items.iter().map(read).collect();
    read.into_iter().collect()
}

/// The value if it fits; else the field is refused.
fn accept<T>(
    field: &Value<'_>,
    value: T,
    fits: impl FnOnce(&T) -> bool,
    expected: &str,
) -> Option<T> {
    if fits(&value) {
        return Some(value);
    }
    field.refuse(expected);
    None
}
