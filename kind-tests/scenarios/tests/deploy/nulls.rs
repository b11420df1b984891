//! A null among the values of the chart is as if it were not there, wherever it stands, and however
//! the chart is installed.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::objects::items;

use crate::repository;
use crate::tools::{CHART, chart, everything};
use crate::umbrella::{COPY, Umbrella};

/// The fields to follow from the values, the last one's name included.
type Place = Vec<String>;

/// The places that a schema names, outside of lists, where a value may be left out.
fn optional(schema: &Value, above: &[String], found: &mut Vec<Place>) {
    for (name, schema_below) in schema["properties"].as_object().into_iter().flatten() {
        let place = [above, std::slice::from_ref(name)].concat();
        optional(schema_below, &place, found);
        if !items(&schema["required"]).any(|required| required == name) {
            found.push(place);
        }
    }
}

/// Puts a null at a place, or takes away what is there.
fn put(values: &mut Value, place: &[String], null: bool) {
    match place {
        [name, below @ ..] if !below.is_empty() => {
            if values[name].is_null() {
                values[name] = json!({});
            }
            put(&mut values[name], below, null);
        }
        [name, ..] if null => values[name] = Value::Null,
        [name, ..] => drop(
            values
                .as_object_mut()
                .and_then(|fields| fields.remove(name)),
        ),
        [] => {}
    }
}

#[test]
fn null_is_the_default() -> Result<()> {
    let schema = repository::text(&format!("{CHART}/values.schema.json"))?;
    let mut places = Vec::new();
    optional(&serde_json::from_str(&schema)?, &[], &mut places);
    ensure!(places.len() > 60, "only {} values", places.len());
    // All that can be is switched on.
    let owner = json!({"name": "owner.{{domain}}", "value": "{{seed}}"});
    let mut base = everything();
    base["prober"] = json!({"config": {"ownerCheck": owner}});
    let (defaults, mut every) = (chart(&base)?, base.clone());
    for place in &places {
        let (mut given, mut nothing) = (base.clone(), base.clone());
        put(&mut given, place, true);
        put(&mut nothing, place, false);
        // Of the requests and limits a null takes one out.
        let is_free = place.len() > 2 && place[1] == "resources";
        let expected = if nothing == base {
            &defaults
        } else {
            &chart(&nothing)?
        };
        ensure!(
            is_free || chart(&given)? == *expected,
            "{place:?}: a null is not the default"
        );
        let holds_others = places
            .iter()
            .any(|other| other != place && other.starts_with(place));
        if !holds_others && !place.ends_with(&["enabled".to_owned()]) {
            put(&mut every, place, true);
        }
    }
    let within =
        Umbrella::new(&json!({}), COPY)?.render(&json!({ "dependency-watchdog": every }))?;
    ensure!(
        within == chart(&every)?,
        "they are another thing in an umbrella"
    );
    Ok(())
}
