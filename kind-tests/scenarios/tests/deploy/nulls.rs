//! A null among the values of the chart is as if it were not there, wherever it stands, and however
//! the chart is installed.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::objects::items;

use crate::repository;
use crate::tools::{CHART, chart};
use crate::umbrella::umbrella;

/// All that can be is switched on.
const BASE: &str = r#"{"monitoring": {"enabled": true}, "verticalPodAutoscaler": {"enabled": true},
    "prober": {"config": {"ownerCheck": {"name": "owner.{{domain}}", "value": "{{seed}}"}}}}"#;

/// The places that a schema names, outside of lists, where a value may be left out.
fn optional(schema: &Value, above: &str, found: &mut Vec<String>) {
    for (name, schema_below) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{above}/{name}");
        optional(schema_below, &place, found);
        if !items(&schema["required"]).any(|required| required == name) {
            found.push(place);
        }
    }
}

/// Puts a null at a place, and says what was there.
fn put_null(values: &mut Value, place: &str) -> Value {
    let value = place.split('/').skip(1).fold(values, |values, name| {
        if values.is_null() {
            *values = json!({});
        }
        &mut values[name]
    });
    value.take()
}

/// The values without nulls.
fn without_nulls(values: &mut Value) {
    if let Some(fields) = values.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(without_nulls);
    }
}

#[test]
fn null_is_the_default() -> Result<()> {
    let schema = repository::text(&format!("{CHART}/values.schema.json"))?;
    let mut places = Vec::new();
    optional(&serde_json::from_str(&schema)?, "", &mut places);
    ensure!(places.len() > 60, "only {} values", places.len());
    let base: Value = serde_json::from_str(BASE)?;
    let (defaults, mut every) = (chart(BASE)?, base.clone());
    for place in &places {
        let mut given = base.clone();
        let was_given = !put_null(&mut given, place).is_null();
        let rendered = chart(&given.to_string())?;
        without_nulls(&mut given);
        let expected = if was_given {
            &chart(&given.to_string())?
        } else {
            &defaults
        };
        // Of requests, limits and security contexts a null takes one out.
        let is_free = ["/resources/", "ecurityContext/"]
            .iter()
            .any(|free| place.contains(free));
        ensure!(
            is_free || rendered == *expected,
            "{place}: a null is not the default"
        );
        let below = format!("{place}/");
        let holds_others = places.iter().any(|other| other.starts_with(&below));
        if !holds_others && !place.ends_with("/enabled") {
            put_null(&mut every, place);
        }
    }
    let within = umbrella(&json!({ "dependency-watchdog": every }).to_string())?;
    ensure!(
        within == chart(&every.to_string())?,
        "they are another thing in an umbrella"
    );
    Ok(())
}
