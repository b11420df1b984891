//! Errors in a file, and warnings of what will surprise its author.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_saphyr::{Location, Spanned};

use super::FormerKeys;
use super::error::{FieldError, position, shown};
use crate::yaml::Yaml;

/// Maximum number of wrong types that are reported of one file, which is read once more for each.
const MOST_WRONG_TYPES: usize = 100;

/// The errors and unknown keys found so far. Reading goes on after an error, so that all of them
/// are reported together.
#[derive(Default)]
pub struct Findings {
    /// The values of the file by path, as messages show them.
    values: HashMap<String, (String, Location)>,
    unknown: Vec<String>,
    pub(super) errors: Vec<FieldError>,
}

impl Findings {
    /// Converts a value for serde, with the keys of `known`, which has all that there are; an empty
    /// one stands for any. Keys are found in any case (rule 16), null is what is not set (rule 20),
    /// a whole number is a text where one is due (rule 18).
    pub(super) fn convert(&mut self, path: &str, yaml: &Spanned<Yaml>, known: &Value) -> Value {
        let converted = match (&yaml.value, known) {
            (Yaml::Scalar(Value::Number(number)), Value::String(_)) if !number.is_f64() => {
                number.to_string().into()
            }
            (Yaml::Scalar(scalar), _) => scalar.clone(),
            // serde would take the one for the other.
            (Yaml::List(_), Value::Object(_)) => false.into(),
            (Yaml::List(items), _) => {
                let items = items.iter().enumerate();
                items
                    .map(|(index, item)| self.convert(&format!("{path}[{index}]"), item, &known[0]))
                    .collect()
            }
            (Yaml::Map(entries), Value::Object(known)) => self.fields(path, entries, known).into(),
            (Yaml::Map(_), _) => Map::new().into(),
        };
        let value = match &yaml.value {
            Yaml::Scalar(scalar) => shown(&scalar.to_string()),
            Yaml::List(_) => "a list".to_owned(),
            Yaml::Map(_) => "a map".to_owned(),
        };
        self.values
            .insert(path.to_owned(), (value, yaml.referenced));
        converted
    }

    /// Converts the entries of an object. Of keys that differ in case alone, the last in the order of
    /// their bytes counts: the Go original sorts them on the way through JSON.
    fn fields(
        &mut self,
        path: &str,
        entries: &[(String, Spanned<Yaml>)],
        known: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_by_key(|(key, _)| key);
        for (key, value) in entries {
            let field = known
                .iter()
                .find(|(name, _)| name.is_empty() || name.eq_ignore_ascii_case(key));
            let name = field.map_or(key, |(name, _)| if name.is_empty() { key } else { name });
            let separator = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{separator}{name}");
            let known = field.map_or(&Value::Null, |(_, known)| known);
            fields.insert(name.clone(), self.convert(&path, value, known));
            if field.is_none() {
                self.unknown.push(path);
            }
        }
        fields
            .retain(|name, value| !value.is_null() || name.is_empty() || !known.contains_key(name));
        fields
    }

    /// Reads a converted file. A value of a wrong type is reported, and then read as if it was
    /// absent. Returns `None` if it must not be absent.
    pub(super) fn read<T: DeserializeOwned>(&mut self, mut file: Value) -> Option<T> {
        for _ in 0..MOST_WRONG_TYPES {
            let error = match serde_path_to_error::deserialize(&file) {
                Ok(read) => return Some(read),
                Err(error) => error,
            };
            // The path of the file itself is a dot.
            let path = error.path().to_string();
            let path = path.trim_start_matches('.');
            self.refuse(path, expected(&error.inner().to_string()));
            let pointer = format!("/{path}").replace(['.', '['], "/").replace(']', "");
            let (object, key) = pointer.rsplit_once('/')?;
            file.pointer_mut(object)?.as_object_mut()?.remove(key)?;
        }
        None
    }

    /// Reports an error about a value, or about its absence.
    fn refuse(&mut self, path: &str, expected: String) {
        let (value, place) = self.values.get(path).cloned().unzip();
        self.errors.push(FieldError {
            field: path.to_owned(),
            value,
            expected,
            place,
        });
    }

    /// Reports an error unless the condition is met. Says nothing of what is refused already, or is
    /// part of it.
    pub fn require(&mut self, path: &str, is_met: bool, expected: impl Into<String>) {
        let is_refused = |error: &FieldError| {
            let rest = path.strip_prefix(&error.field);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !is_met && !self.errors.iter().any(is_refused) {
            self.refuse(path, expected.into());
        }
    }

    /// Reports an error if there is no value.
    pub fn require_value(&mut self, path: &str, expected: &str) {
        let value = self.values.get(path);
        let is_set = value.is_some_and(|(value, _)| value != "null");
        self.require(path, is_set, expected);
    }

    /// Warnings of keys that are ignored (rule 15), which is a surprise when they were misspelt.
    pub(super) fn ignored(&self, former: &FormerKeys) -> Vec<String> {
        let warn = |path: &String| {
            let mut former = former.iter();
            let hint = former.find(|(key, _)| key.eq_ignore_ascii_case(path));
            let hint = hint.map_or("unknown key", |(_, hint)| hint);
            let at = position(self.values.get(path)?.1);
            let is_refused = self.errors.iter().any(|error| error.field == *path);
            (!is_refused).then(|| format!("{}: {hint}, ignored ({at})", shown(path)))
        };
        self.unknown.iter().filter_map(warn).collect()
    }
}

/// Rephrases what serde expects for those who write the file.
fn expected(message: &str) -> String {
    let expected = message.rsplit_once("expected ");
    let expected = expected.map_or(message, |(_, expected)| expected);
    let expected = match expected {
        "a string" | "string or map" => "a string, in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "f64" => "a number, without quotes",
        "i32" => "a whole number that fits in 32 bits, without quotes or a fraction",
        _ if expected == "a map" || expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    let as_key = if message.starts_with("unknown field ") {
        " as a key"
    } else {
        ""
    };
    format!("{expected}{as_key}").replace('`', "")
}
