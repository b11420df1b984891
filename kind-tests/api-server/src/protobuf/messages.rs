//! The messages of the kinds that a probe lists, written from an object's JSON by the fields of
//! `kubernetes.proto`. What has another form in the JSON is left out.

use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::DateTime;
use serde_json::{Value, json};

use super::wire::{bytes, message, number, text, time};

static MESSAGES: LazyLock<HashMap<&str, Vec<Field>>> =
    LazyLock::new(|| messages(include_str!("kubernetes.proto")));

struct Field {
    number: u64,
    name: &'static str,
    kind: &'static str,
    is_required: bool,
}

/// The fields of each message.
fn messages(proto: &'static str) -> HashMap<&'static str, Vec<Field>> {
    let blocks = proto.split("\nmessage ").skip(1);
    let read = |block: &'static str| {
        let (name, fields) = block.split_once(" {")?;
        Some((name, fields.lines().filter_map(Field::read).collect()))
    };
    blocks.filter_map(read).collect()
}

impl Field {
    /// Reads a line; `None` for one that declares no field.
    fn read(line: &'static str) -> Option<Self> {
        let (declared, number) = line.strip_suffix(';')?.split_once(" = ")?;
        let mut words = declared.split_whitespace().rev();
        Some(Self {
            number: number.parse().ok()?,
            name: words.next()?,
            kind: words.next()?,
            is_required: words.next() == Some("required"),
        })
    }

    fn encode(&self, value: &Value) -> Option<Vec<u8>> {
        let Self { number: field, .. } = *self;
        Some(match self.kind {
            "string" if self.is_required => text(field, value.as_str().unwrap_or_default()),
            "string" => text(field, value.as_str()?),
            // All are an int32 or, as far as they are used here, small enough for one.
            "int32" | "int64" => number(field, i32::try_from(value.as_i64()?).ok()?.into()),
            "bool" => number(field, value.as_bool()?.into()),
            "Time" | "MicroTime" => {
                time(field, DateTime::parse_from_rfc3339(value.as_str()?).ok()?)
            }
            "map<string,string>" => {
                let entries = value.as_object()?.iter();
                let entry = |(key, value): (&String, &Value)| {
                    let value = value.as_str().unwrap_or_default();
                    message(field, &[text(1, key), text(2, value)])
                };
                entries.flat_map(entry).collect()
            }
            // Any JSON, as its text.
            "FieldsV1" => message(field, &[text(1, &json!(value.as_object()?).to_string())]),
            kind => bytes(field, &encode(kind, value.is_object().then_some(value)?)),
        })
    }
}

/// An object as a message of this kind.
pub fn encode(kind: &str, object: &Value) -> Vec<u8> {
    let mut message = Vec::new();
    for field in &MESSAGES[kind] {
        let value = &object[field.name];
        let values = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        message.extend(
            values
                .iter()
                .filter_map(|value| field.encode(value))
                .flatten(),
        );
    }
    message
}
