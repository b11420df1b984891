//! The fields of an event or a span, as JSON values.

use std::error::Error;
use std::fmt;

use kube::core::Status;
use serde::Serializer as _;
use serde_json::Value;
use tracing::field::{Field, Visit};

use crate::status_message::StatusMessage;
use crate::transport::causes;

/// Keys and values in the order of a line. A key that is set again keeps its place and takes the new
/// value.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub(super) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key, value)),
        }
    }

    pub(super) fn extend(&mut self, span: &Self) {
        for (key, value) in &span.0 {
            self.set(key, value.clone());
        }
    }

    /// A line with its newline. Newlines within values are escaped, so a line stays one.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        let pairs = self.0.iter().map(|(key, value)| (key, value));
        // Writing into memory cannot fail. A map of serde_json would sort the keys.
        let _ = serde_json::Serializer::new(&mut line).collect_map(pairs);
        line.push(b'\n');
        line
    }

    fn record(&mut self, field: &Field, value: impl Into<Value>) {
        match field.name() {
            "message" => self.set("msg", value),
            key => self.set(key, value),
        }
    }
}

impl Visit for Fields {
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
        self.record(field, value);
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
    for cause in causes(error).skip(1) {
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
