//! YAML documents of every style, some of them only nearly YAML.

use std::collections::HashMap;
use std::{iter, slice};

use serde_json::Value;

use crate::{Choices, durations};

/// A value as it may stand in a file.
#[derive(Clone, Debug, Default)]
struct YamlValue {
    /// On one line.
    flow: String,
    /// On lines of its own, if that is how it is written.
    block: Vec<String>,
    /// Whether these begin below the first letter of their key, as the dashes of a list may.
    is_flush: bool,
}

/// The styles of lists and maps: flow, and block, which the last is too, with the dashes of a list
/// below the first letter of its key.
const STYLES: usize = 4;

impl YamlValue {
    fn scalar(text: String) -> Self {
        Self {
            flow: text,
            ..Self::default()
        }
    }

    fn list(items: &[Self], style: usize) -> Self {
        let flow: Vec<_> = items.iter().map(|item| item.flow.as_str()).collect();
        let lines = items.iter().flat_map(|item| {
            let lines = if item.block.is_empty() {
                slice::from_ref(&item.flow)
            } else {
                &item.block
            };
            lines.iter().enumerate().map(|(index, line)| {
                if index == 0 {
                    format!("- {line}")
                } else {
                    format!("  {line}")
                }
            })
        });
        Self::styled(style, format!("[{}]", flow.join(", ")), lines.collect())
    }

    fn map(entries: &[(String, Self)], style: usize) -> Self {
        let flow: Vec<_> = entries
            .iter()
            .map(|(key, value)| format!("{key}: {}", value.flow))
            .collect();
        let lines = entries.iter().zip(&flow).flat_map(|((key, value), line)| {
            let indent = if value.is_flush { "" } else { "  " };
            let first = if value.block.is_empty() {
                line.clone()
            } else {
                format!("{key}:")
            };
            iter::once(first).chain(
                value
                    .block
                    .iter()
                    .map(move |line| format!("{indent}{line}")),
            )
        });
        Self {
            is_flush: false,
            ..Self::styled(style, format!("{{{}}}", flow.join(", ")), lines.collect())
        }
    }

    fn styled(style: usize, flow: String, block: Vec<String>) -> Self {
        match style {
            0 => Self::scalar(flow),
            style => Self {
                flow,
                block,
                is_flush: style == 3,
            },
        }
    }

    /// The text of a document.
    fn text(self) -> String {
        if self.block.is_empty() {
            self.flow + "\n"
        } else {
            self.block.join("\n") + "\n"
        }
    }
}

/// Patterns of scalars, as texts in a file.
const WORD: &str = "([a-zA-Z][a-zA-Z0-9_./-]{0,8}|[a-z]{1,4} [a-z]{1,4}|é[a-z]{0,3})";
const BOOLEAN: &str =
    "(y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)";
const INTEGER: &str = "[-+]?([0-9]{1,3}|[0-9]{1,3}|[1-9][0-9]{0,2}(_[0-9]{1,3}){1,2}|0[0-7]{0,3}|0b[01]{1,4}(|_[01])|\
    0x[0-9a-fA-F]{1,4}(|_[0-9a-f]{1,2})|0o[0-7]{1,3})";
const NUMBER: &str = "(0\\.[0-9]{1,3}|0\\.[0-9]{1,2}|1|1\\.0|0\\.60|\
    [-+]?[0-9]{0,3}\\.[0-9]{0,3}(|[eE][-+]?[0-9]{1,2})|[-+]?[0-9]{1,3}[eE][-+]?[0-9]{1,2})";
const DURATION: &str = "[1-9][0-9]?(ms|s|m|h)";
/// In the name and the value of an owner record.
const PLACEHOLDER: &str = "\\{\\{(domain|namespace|seed|seedUID|shoot)\\}\\}";
const NULL: &str = "(~|null|Null|NULL|)";
const QUOTED: &str = "('[a-zA-Z0-9 ~:,._-]{0,6}'|\"[a-zA-Z0-9 ~:,._-]{0,6}\"|\"(\\\\x41|\\\\u00e9|\\\\n|\\\\t|\\\\\"|\\\\/|a){0,3}\"|\
    '(''|a){0,3}'|'(yes|null|5|0\\.5|30s|)')";
const ODD: &str = "(1:30|190:20:30|2001-12-14|2001-12-14t21:59:43\\.10-05:00|<<|=|12e03|0\\.|\\.|0o|0x|0b|08|09|-08|0o8\
    |\\+\\.inf|\\.Inf|\\.NAN|\\.nan|1e300|-0|\\+0|0x8000000000000000|9223372036854775807|9223372036854775808\
    |18446744073709551615|18446744073709551616|-9223372036854775808|-9223372036854775809\
    |123456789012345678901234567890)";

/// A scalar in any spelling that somebody may think of.
fn scalar(source: &mut Choices<'_>) -> String {
    if source.below(19) == 18 {
        return duration(source);
    }
    let spellings = [
        (3, WORD),
        (3, INTEGER),
        (3, NUMBER),
        (3, BOOLEAN),
        (2, NULL),
        (2, QUOTED),
        (1, DURATION),
        (1, ODD),
    ];
    plain(source.weighted(&spellings))
}

/// Leaves out boolean words in mixed case, which are booleans here and texts to Go (an exception
/// that nobody means to write).
fn plain(text: String) -> String {
    let lower = text.to_lowercase();
    let is_boolean = ["yes", "no", "on", "off", "true", "false"].contains(&lower.as_str());
    let is_mixed = text.chars().skip(1).any(char::is_uppercase) && text != lower.to_uppercase();
    if is_boolean && is_mixed { lower } else { text }
}

/// Any duration that has no meaning of its own in YAML.
fn duration(source: &mut Choices<'_>) -> String {
    let text = durations::text(source);
    let is_plain = !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "+-._".contains(c));
    let can_be_quoted = text
        .chars()
        .all(|c| !c.is_control() && !"'\\\u{feff}\u{2028}\u{2029}".contains(c));
    match source.below(2) {
        0 if is_plain => text,
        1 if can_be_quoted => format!("'{text}'"),
        _ => source.text(DURATION),
    }
}

/// Anything at all, a few levels deep.
fn any_yaml(source: &mut Choices<'_>, depth: usize) -> YamlValue {
    let deeper = depth.saturating_sub(1);
    match if depth == 0 { 0 } else { source.below(4) } {
        0..2 => YamlValue::scalar(scalar(source)),
        2 => YamlValue::list(
            &source.list(3, |source| any_yaml(source, deeper)),
            source.below(STYLES),
        ),
        _ => YamlValue::map(
            &source.list(3, |source| (any_key(source), any_yaml(source, deeper))),
            source.below(STYLES),
        ),
    }
}

fn any_key(source: &mut Choices<'_>) -> String {
    source.weighted(&[(4, WORD), (1, INTEGER), (1, BOOLEAN), (1, "'[a-z ]{0,3}'")])
}

/// A value in any style, whose texts are scalars as they stand in the file: its fields in any
/// order, now and then one twice, one unknown, or something else in its place.
fn dressed(source: &mut Choices<'_>, value: &Value) -> YamlValue {
    if source.below(24) == 23 {
        return any_yaml(source, 2);
    }
    match value {
        Value::Object(fields) => {
            let mut entries = Vec::new();
            for (name, value) in fields {
                for _ in 0..=usize::from(source.percent(1)) {
                    let place = source.below(entries.len() + 1);
                    entries.insert(place, (key(source, name), dressed(source, value)));
                }
            }
            if source.below(10) == 9 {
                let place = source.below(entries.len() + 1);
                entries.insert(place, (any_key(source), any_yaml(source, 2)));
            }
            YamlValue::map(&without_merging(entries), source.below(STYLES))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| dressed(source, item)).collect();
            YamlValue::list(&items, source.below(STYLES))
        }
        value if source.below(10) < 9 => {
            YamlValue::scalar(plain(value.as_str().unwrap_or_default().to_owned()))
        }
        _ => YamlValue::scalar(scalar(source)),
    }
}

/// A field's name, at times in another case or in quotes.
fn key(source: &mut Choices<'_>, name: &str) -> String {
    match source.below(16) {
        0..12 => name.to_owned(),
        12 => name.to_uppercase(),
        13 => name.to_lowercase(),
        14 => format!("'{name}'"),
        _ => format!("\"{name}\""),
    }
}

/// Leaves out what would be one field twice, in different case: the one that does not count is not
/// looked at here, and Go merges sections (exceptions for a file that nobody means to write).
fn without_merging(mut entries: Vec<(String, YamlValue)>) -> Vec<(String, YamlValue)> {
    let mut spellings = HashMap::new();
    entries.retain(|(key, _)| {
        let name = key.trim_matches(['\'', '"']).to_owned();
        *spellings
            .entry(name.to_ascii_lowercase())
            .or_insert(name.clone())
            == name
    });
    entries
}

/// A template for [`Choices::filled`] out of a file, in which these names stand for patterns.
pub fn template(file: &str) -> Value {
    let names = [
        ("WORD", WORD),
        ("BOOLEAN", BOOLEAN),
        ("INTEGER", INTEGER),
        ("NUMBER", NUMBER),
        ("DURATION", DURATION),
        ("PLACEHOLDER", PLACEHOLDER),
    ];
    let named = |file: String, (name, pattern)| file.replace(name, pattern);
    let filled = names.into_iter().fold(file.to_owned(), named);
    serde_saphyr::from_str(&filled).expect("the templates are ours")
}

/// A file.
#[derive(Debug)]
pub struct File {
    pub text: String,
    /// Whether a character was spilt over it. What is no longer YAML, the two parsers may tell in
    /// different ways.
    pub is_spilt: bool,
}

impl File {
    /// A document like a template, what surrounds it and what may be spilt over it; or a text as it
    /// stands.
    pub fn make(source: &mut Choices<'_>, template: &Value) -> Self {
        if let Some(text) = source.raw_text() {
            return Self {
                text,
                is_spilt: true,
            };
        }
        let before = source.weighted(&[
            (8, ""),
            (1, "---\n"),
            (1, "# a comment\n\n"),
            (1, "%YAML 1\\.1\n---\n"),
            (1, "\u{feff}"),
        ]);
        let after = source.weighted(&[
            (8, ""),
            (1, "# another\n"),
            (1, "\\.\\.\\.\n"),
            (1, "---\nsecond: document\n"),
        ]);
        let content = source.filled(template);
        let mut text = dressed(source, &content).text();
        let is_spilt = source.percent(10);
        if is_spilt {
            source.spill(&mut text, "[ :#\t\n-]");
        }
        Self {
            text: format!("{before}{text}{after}"),
            is_spilt,
        }
    }
}
