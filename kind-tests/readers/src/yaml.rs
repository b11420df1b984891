//! YAML documents, some of them only nearly YAML.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{Choices, durations};

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
/// In a label selector, where a key or a value is none at times.
const KEY: &str = "app|role|example\\.org/app|app|role|example\\.org/app|app|role|example\\.org/app|[a-zA-Z0-9._/-]{0,12}|\
    [a-z]{60,66}|([a-z]{1,3}\\.){0,3}[a-z-]{1,3}/[a-zA-Z._-]{0,4}|[a-z.]{245,256}/[a-z]{1,2}|\\PC{0,3}";
const VALUE: &str = "api|etcd|main||api|etcd|main||api|etcd|main||api|etcd|main||[a-zA-Z0-9._/-]{0,12}|[a-z]{60,66}|\\PC{0,3}";
const NULL: &str = "(~|null|Null|NULL|)";
const QUOTED: &str = "('[a-zA-Z0-9 ~:,._-]{0,6}'|\"[a-zA-Z0-9 ~:,._-]{0,6}\"|\"(\\\\x41|\\\\u00e9|\\\\n|\\\\t|\\\\\"|\\\\/|a){0,3}\"|\
    '(''|a){0,3}'|'(yes|null|5|0\\.5|30s|)')";
const ODD: &str = "(1:30|190:20:30|2001-12-14|2001-12-14t21:59:43\\.10-05:00|<<|=|12e03|0\\.|\\.|0o|0x|0b|08|09|-08|0o8\
    |\\+\\.inf|\\.Inf|\\.NAN|\\.nan|1e300|-0|\\+0|0x8000000000000000|9223372036854775807|9223372036854775808\
    |18446744073709551615|18446744073709551616|-9223372036854775808|-9223372036854775809\
    |123456789012345678901234567890)";

const SCALAR: &str = "(WORD|WORD|WORD|INTEGER|INTEGER|INTEGER|NUMBER|NUMBER|NUMBER|BOOLEAN|BOOLEAN|BOOLEAN|NULL|NULL|\
    QUOTED|QUOTED|DURATION|ODD)";
const ANY_KEY: &str = "(WORD|WORD|WORD|WORD|INTEGER|BOOLEAN|'[a-z ]{0,3}')";
/// Before and after a document.
const BEFORE: &str = "(||||||||---\n|# a comment\n\n|%YAML 1\\.1\n---\n|\u{feff})";
const AFTER: &str = "(||||||||# another\n|\\.\\.\\.\n|---\nsecond: document\n)";

/// A pattern or a template in which names stand for patterns.
fn named(text: &str) -> String {
    let names = [
        ("WORD", WORD),
        ("BOOLEAN", BOOLEAN),
        ("INTEGER", INTEGER),
        ("NUMBER", NUMBER),
        ("DURATION", DURATION),
        ("PLACEHOLDER", PLACEHOLDER),
        ("KEY", KEY),
        ("VALUE", VALUE),
        ("NULL", NULL),
        ("QUOTED", QUOTED),
        ("ODD", ODD),
    ];
    let named = |text: String, (name, pattern)| text.replace(name, pattern);
    names.into_iter().fold(text.to_owned(), named)
}

/// A scalar in any spelling that somebody may think of.
fn scalar(source: &mut Choices<'_>) -> String {
    if source.below(19) == 18 {
        return duration(source);
    }
    plain(source.text(&named(SCALAR)))
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
    if is_plain {
        text
    } else {
        source.text(DURATION)
    }
}

/// Anything at all, a few levels deep.
fn any_yaml(source: &mut Choices<'_>, depth: usize) -> String {
    match if depth == 0 { 0 } else { source.below(4) } {
        0..2 => scalar(source),
        2 => in_list(source.list(3, |source| any_yaml(source, depth - 1))),
        _ => in_map(source.list(3, |source| {
            format!("{}: {}", any_key(source), any_yaml(source, depth - 1))
        })),
    }
}

fn in_list(items: Vec<String>) -> String {
    format!("[{}]", items.join(", "))
}

fn in_map(entries: Vec<String>) -> String {
    format!("{{{}}}", entries.join(", "))
}

fn any_key(source: &mut Choices<'_>) -> String {
    source.text(&named(ANY_KEY))
}

/// A value whose texts are scalars as they stand in the file, now and then something else in its
/// place.
fn dressed(source: &mut Choices<'_>, value: &Value) -> String {
    match value {
        _ if source.below(24) == 23 => any_yaml(source, 2),
        Value::Object(fields) => in_map(entries(source, fields)),
        Value::Array(items) => in_list(items.iter().map(|item| dressed(source, item)).collect()),
        Value::String(text) if source.below(10) < 9 => plain(text.clone()),
        value if !value.is_string() => value.to_string(),
        _ => scalar(source),
    }
}

/// A document like a template, with a field a line, or all on one.
pub fn nearly(source: &mut Choices<'_>, template: &Value) -> String {
    match &source.filled(template) {
        Value::Object(fields) if source.percent(75) => entries(source, fields).join("\n"),
        content => dressed(source, content),
    }
}

/// Fields in any order, now and then one twice or one unknown, but none in different case: the one
/// that does not count is not read here, and Go merges sections (exceptions for a file that nobody
/// means to write).
fn entries(source: &mut Choices<'_>, fields: &Map<String, Value>) -> Vec<String> {
    let (mut entries, mut spellings) = (Vec::new(), HashMap::new());
    let mut add = |source: &mut Choices<'_>, key: String, value: String| {
        let name = key.trim_matches(['\'', '"']).to_owned();
        let spelling = spellings.entry(name.to_ascii_lowercase());
        if *spelling.or_insert(name.clone()) == name {
            let place = source.below(entries.len() + 1);
            entries.insert(place, format!("{key}: {value}"));
        }
    };
    for (name, value) in fields {
        for _ in 0..=usize::from(source.percent(1)) {
            let (key, value) = (key(source, name), dressed(source, value));
            add(source, key, value);
        }
    }
    if source.below(10) == 9 {
        let (key, value) = (any_key(source), any_yaml(source, 2));
        add(source, key, value);
    }
    entries
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

/// A template for [`Choices::filled`] out of a file.
pub fn template(file: &str) -> Value {
    serde_saphyr::from_str(&named(file)).expect("the templates are ours")
}

/// A document like a template, what surrounds it and what may be spilt over it; or a text as it
/// stands.
pub fn file(source: &mut Choices<'_>, template: &Value) -> String {
    if let Some(text) = source.raw_text() {
        return text;
    }
    let (before, after) = (source.text(BEFORE), source.text(AFTER));
    let mut text = nearly(source, template);
    text.push('\n');
    if source.percent(10) {
        source.spill(&mut text, "[ :#\t\n-]");
    }
    format!("{before}{text}{after}")
}
