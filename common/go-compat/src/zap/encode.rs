//! One line, as zap's JSON and console encoders write it.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serializer as _;
use serde_json::Value;

use super::{Encoder, TimeEncoding};

pub struct Line<'a> {
    pub level: &'a str,
    pub time: DateTime<Utc>,
    pub logger: &'a str,
    pub message: &'a str,
    /// In their order.
    pub fields: Vec<(&'a str, &'a Value)>,
}

impl Line<'_> {
    /// The line with its newline. Newlines within values are escaped, so a line stays one.
    pub fn encode(&self, encoder: Encoder, time: TimeEncoding) -> Vec<u8> {
        let time = encode_time(self.time, time);
        let mut line = match encoder {
            Encoder::Json => self.json(&time),
            Encoder::Console => self.console(&time),
        };
        line.push(b'\n');
        line
    }

    fn json(&self, time: &Value) -> Vec<u8> {
        let [level, logger, message] = [self.level, self.logger, self.message].map(Value::from);
        let head = [
            ("level", &level),
            ("ts", time),
            ("logger", &logger),
            ("msg", &message),
        ];
        write_object(head.iter().chain(&self.fields).copied())
    }

    fn console(&self, time: &Value) -> Vec<u8> {
        let time = time
            .as_str()
            .map_or_else(|| time.to_string(), str::to_owned);
        let message = self
            .message
            .escape_debug()
            .to_string()
            .replace("\\'", "'")
            .replace("\\\"", "\"");
        let mut line = format!(
            "{time}\t{}\t{}\t{message}",
            self.level.to_uppercase(),
            self.logger
        )
        .into_bytes();
        if !self.fields.is_empty() {
            line.push(b'\t');
            line.extend(write_object(self.fields.iter().copied()));
        }
        line
    }
}

/// Writes the pairs in their order; serde_json's own map would sort them.
fn write_object<'a>(pairs: impl Iterator<Item = (&'a str, &'a Value)>) -> Vec<u8> {
    let mut object = Vec::with_capacity(256);
    // Writing into memory cannot fail.
    let _ = serde_json::Serializer::new(&mut object).collect_map(pairs);
    object
}

fn encode_time(time: DateTime<Utc>, encoding: TimeEncoding) -> Value {
    let nanos = time.timestamp_nanos_opt().unwrap_or(i64::MAX);
    match encoding {
        TimeEncoding::Rfc3339 => time.to_rfc3339_opts(SecondsFormat::Secs, true).into(),
        TimeEncoding::Rfc3339Nano => {
            let text = time.to_rfc3339_opts(SecondsFormat::Nanos, true);
            // Go leaves the zeros at the end out, and the point too when nothing else follows it.
            format!(
                "{}Z",
                text.trim_end_matches('Z')
                    .trim_end_matches('0')
                    .trim_end_matches('.')
            )
            .into()
        }
        TimeEncoding::Iso8601 => time.to_rfc3339_opts(SecondsFormat::Millis, true).into(),
        TimeEncoding::Epoch => (nanos as f64 / 1e9).into(),
        TimeEncoding::Millis => (nanos as f64 / 1e6).into(),
        TimeEncoding::Nanos => nanos.into(),
    }
}
