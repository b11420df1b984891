//! The fields of an event or a span, as JSON values.

use std::error::Error;
use std::fmt;

use kube::core::Status;
use serde_json::Value;
use tracing::field::{Field, Visit};

use crate::status_message::StatusMessage;

/// Keys that zap's encoder writes itself; a field of that name gets a prefix, so that no line has a
/// key twice.
const RESERVED: [&str; 5] = ["level", "ts", "logger", "caller", "stacktrace"];

/// Key and value, in the order of a line: zap writes the error first, the others as they were
/// recorded. A key recorded again keeps its place and takes the new value.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFields {
    pub(crate) message: String,
    values: Vec<(String, Value)>,
}

impl EventFields {
    pub(crate) fn extend(&mut self, span: &Self) {
        for (key, value) in &span.values {
            self.set(key, value.clone());
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    fn set(&mut self, key: &str, value: Value) {
        match self.values.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None if key == "error" => self.values.insert(0, (key.to_owned(), value)),
            None => self.values.push((key.to_owned(), value)),
        }
    }

    fn record(&mut self, field: &Field, value: impl Into<Value>) {
        match (field.name(), value.into()) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) if RESERVED.contains(&name) => self.set(&format!("fields.{name}"), value),
            (name, value) => self.set(name.strip_prefix("r#").unwrap_or(name), value),
        }
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.record(field, value);
        } else {
            // JSON cannot express it; zap writes a string, too.
            self.record(field, value.to_string());
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.record(field, with_causes(value));
    }
}

/// An error with its causes, in one line; a cause that the text has already, as many errors end
/// with that of theirs, is not repeated. Of an API server's refusal its message is shown: kube's
/// text goes on with the whole Status, as Rust prints it.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()) {
        match cause.downcast_ref::<Box<Status>>() {
            Some(status) => {
                let message = StatusMessage::of(status).to_string();
                text = text.replace(&kube::Error::Api(status.clone()).to_string(), &message);
            }
            None if !text.contains(&cause.to_string()) => text = format!("{text}: {cause}"),
            None => {}
        }
    }
    text
}
