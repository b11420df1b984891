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

/// Key and value, in the order they were recorded; a key recorded again keeps its place and takes
/// the new value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) message: String,
    /// With its causes.
    error: Option<Value>,
    others: Vec<(String, Value)>,
}

impl Fields {
    pub(crate) fn extend(&mut self, span: &Self) {
        if span.error.is_some() {
            self.error.clone_from(&span.error);
        }
        for (key, value) in &span.others {
            self.set(key, value.clone());
        }
    }

    /// In the order of a line.
    pub(crate) fn pairs(&self) -> Vec<(&str, &Value)> {
        let error = self.error.iter().map(|error| ("error", error));
        error
            .chain(self.others.iter().map(|(key, value)| (key.as_str(), value)))
            .collect()
    }

    fn set(&mut self, key: &str, value: Value) {
        match self.others.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.others.push((key.to_owned(), value)),
        }
    }

    fn record(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            ("error", text @ Value::String(_)) => self.error = Some(text),
            (name, value) if RESERVED.contains(&name) => self.set(&format!("fields.{name}"), value),
            (name, value) => self.set(name.strip_prefix("r#").unwrap_or(name), value),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, Value::String(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record(field, Value::Bool(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no word for an infinite number; zap writes them as strings too.
        let number = serde_json::Number::from_f64(value);
        self.record(
            field,
            number.map_or_else(|| value.to_string().into(), Value::Number),
        );
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.record(field, Value::String(with_causes(value)));
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
