//! YAML documents of every style, some of them only nearly YAML.

use serde_json::Value;

use crate::{Source, durations};

/// A value and the style it is written in.
#[derive(Clone, Debug)]
enum Yaml {
    /// Its text as it stands in the file.
    Scalar(String),
    List(Vec<Yaml>, Style),
    Map(Vec<(String, Yaml)>, Style),
}

#[derive(Clone, Copy, Debug)]
enum Style {
    Flow,
    Block,
    /// As `Block`, with a list's dashes below the first letter of its key.
    Flush,
}

impl Yaml {
    /// The text of a document.
    fn text(&self) -> String {
        match self {
            Self::Map(entries, Style::Block | Style::Flush) if !entries.is_empty() => self.block(0),
            Self::List(items, Style::Block | Style::Flush) if !items.is_empty() => self.block(0),
            _ => format!("{}\n", self.flow()),
        }
    }

    fn flow(&self) -> String {
        match self {
            Self::Scalar(text) => text.clone(),
            Self::List(items, _) => format!("[{}]", items.iter().map(Self::flow).collect::<Vec<_>>().join(", ")),
            Self::Map(entries, _) => {
                let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key}: {}", value.flow())).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// Lines that are indented by `depth`.
    fn block(&self, depth: usize) -> String {
        let indent = " ".repeat(depth);
        let mut text = String::new();
        match self {
            Self::Map(entries, _) => {
                for (key, value) in entries {
                    let nested = match value {
                        Self::List(items, Style::Flush) if !items.is_empty() => value.block(depth),
                        Self::List(items, Style::Block) if !items.is_empty() => value.block(depth + 2),
                        Self::Map(entries, Style::Block | Style::Flush) if !entries.is_empty() => value.block(depth + 2),
                        _ => {
                            text += &format!("{indent}{key}: {}\n", value.flow());
                            continue;
                        }
                    };
                    text += &format!("{indent}{key}:\n{nested}");
                }
            }
            Self::List(items, _) => {
                for item in items {
                    let nested = match item {
                        Self::List(items, Style::Block | Style::Flush) if !items.is_empty() => item.block(depth + 2),
                        Self::Map(entries, Style::Block | Style::Flush) if !entries.is_empty() => item.block(depth + 2),
                        _ => format!("{indent}  {}\n", item.flow()),
                    };
                    text += &format!("{indent}- {}", nested.get(depth + 2..).unwrap_or_default());
                }
            }
            Self::Scalar(_) => text = self.flow(),
        }
        text
    }
}

/// Patterns of scalars, as texts in a file.
pub const WORD: &str = "([a-zA-Z][a-zA-Z0-9_./-]{0,8}|[a-z]{1,4} [a-z]{1,4}|é[a-z]{0,3})";
pub const BOOLEAN: &str = "(y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)";
pub const INTEGER: &str = "[-+]?([0-9]{1,3}|[0-9]{1,3}|[1-9][0-9]{0,2}(_[0-9]{1,3}){1,2}|0[0-7]{0,3}|0b[01]{1,4}(|_[01])|\
    0x[0-9a-fA-F]{1,4}(|_[0-9a-f]{1,2})|0o[0-7]{1,3})";
pub const NUMBER: &str = "(0\\.[0-9]{1,3}|0\\.[0-9]{1,2}|1|1\\.0|0\\.60|\
    [-+]?[0-9]{0,3}\\.[0-9]{0,3}(|[eE][-+]?[0-9]{1,2})|[-+]?[0-9]{1,3}[eE][-+]?[0-9]{1,2})";
pub const DURATION: &str = "[1-9][0-9]?(ms|s|m|h)";
const NULL: &str = "(~|null|Null|NULL|)";
const QUOTED: &str = "('[a-zA-Z0-9 ~:,._-]{0,6}'|\"[a-zA-Z0-9 ~:,._-]{0,6}\"|\"(\\\\x41|\\\\u00e9|\\\\n|\\\\t|\\\\\"|\\\\/|a){0,3}\"|\
    '(''|a){0,3}'|'(yes|null|5|0\\.5|30s|)')";
const ODD: &str = "(1:30|190:20:30|2001-12-14|2001-12-14t21:59:43\\.10-05:00|<<|=|12e03|0\\.|\\.|0o|0x|0b|08|09|-08|0o8\
    |+\\.inf|\\.Inf|\\.NAN|\\.nan|1e300|-0|+0|0x8000000000000000|9223372036854775807|9223372036854775808\
    |18446744073709551615|18446744073709551616|-9223372036854775808|-9223372036854775809\
    |123456789012345678901234567890)";

fn style(source: &mut Source<'_>) -> Style {
    source.pick(&[Style::Flow, Style::Block, Style::Block, Style::Flush])
}

/// A scalar in any spelling that somebody may think of.
fn scalar(source: &mut Source<'_>) -> String {
    let pattern = match source.below(19) {
        0..3 => WORD,
        3..6 => INTEGER,
        6..9 => NUMBER,
        9..12 => BOOLEAN,
        12..14 => NULL,
        14..16 => QUOTED,
        16 => DURATION,
        17 => return duration(source),
        _ => ODD,
    };
    plain(source.text(pattern))
}

/// Leaves out boolean words in mixed case, which are booleans here and texts to Go (an exception that nobody means to write).
fn plain(text: String) -> String {
    let lower = text.to_lowercase();
    let is_boolean = ["yes", "no", "on", "off", "true", "false"].contains(&lower.as_str());
    let is_mixed = text.chars().skip(1).any(char::is_uppercase) && text != lower.to_uppercase();
    if is_boolean && is_mixed { lower } else { text }
}

/// Any duration that has no meaning of its own in YAML.
fn duration(source: &mut Source<'_>) -> String {
    let text = durations::text(source);
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "+-._".contains(c));
    let can_be_quoted = text.chars().all(|c| !c.is_control() && !"'\\\u{feff}\u{2028}\u{2029}".contains(c));
    match source.below(2) {
        0 if is_plain => text,
        1 if can_be_quoted => format!("'{text}'"),
        _ => source.text(DURATION),
    }
}

/// Anything at all, a few levels deep.
fn any_yaml(source: &mut Source<'_>, depth: usize) -> Yaml {
    let deeper = depth.saturating_sub(1);
    match if depth == 0 { 0 } else { source.below(4) } {
        0..2 => Yaml::Scalar(scalar(source)),
        2 => Yaml::List(source.list(3, |source| any_yaml(source, deeper)), style(source)),
        _ => Yaml::Map(source.list(3, |source| (any_key(source), any_yaml(source, deeper))), style(source)),
    }
}

fn any_key(source: &mut Source<'_>) -> String {
    let pattern = source.pick(&[WORD, WORD, WORD, WORD, INTEGER, BOOLEAN, "'[a-z ]{0,3}'"]);
    source.text(pattern)
}

/// A value in any style, whose texts are scalars as they stand in the file: its fields in any order, now and then one twice, one
/// unknown, or something else in its place.
fn dressed(source: &mut Source<'_>, value: &Value) -> Yaml {
    if source.below(24) == 23 {
        return any_yaml(source, 2);
    }
    match value {
        Value::Object(fields) => {
            let mut entries = Vec::new();
            for (name, value) in fields {
                let times = if source.below(100) == 99 { 2 } else { 1 };
                for _ in 0..times {
                    let place = source.below(entries.len() + 1);
                    entries.insert(place, (key(source, name), dressed(source, value)));
                }
            }
            if source.below(10) == 9 {
                let place = source.below(entries.len() + 1);
                entries.insert(place, (any_key(source), any_yaml(source, 2)));
            }
            Yaml::Map(without_merging(entries), style(source))
        }
        Value::Array(items) => Yaml::List(items.iter().map(|item| dressed(source, item)).collect(), style(source)),
        value if source.below(10) < 9 => Yaml::Scalar(plain(value.as_str().unwrap_or_default().to_owned())),
        _ => Yaml::Scalar(scalar(source)),
    }
}

/// A field's name, at times in another case or in quotes.
fn key(source: &mut Source<'_>, name: &str) -> String {
    match source.below(16) {
        0..12 => name.to_owned(),
        12 => name.to_uppercase(),
        13 => name.to_lowercase(),
        14 => format!("'{name}'"),
        _ => format!("\"{name}\""),
    }
}

/// Leaves out what would be one field twice, in different case: the one that does not count is not looked at here, and Go merges
/// sections (exceptions for a file that nobody means to write).
fn without_merging(entries: Vec<(String, Yaml)>) -> Vec<(String, Yaml)> {
    let name = |key: &str| key.trim_matches(['\'', '"']).to_owned();
    let mut kept: Vec<(String, Yaml)> = Vec::new();
    for (key, value) in entries {
        let is_other_case = |known: &str| name(known) != name(&key) && name(known).eq_ignore_ascii_case(&name(&key));
        if !kept.iter().any(|(known, _)| is_other_case(known)) {
            kept.push((key, value));
        }
    }
    kept
}

/// A file.
#[derive(Debug)]
pub struct File {
    pub text: String,
    /// Whether a character was spilt over it. What is no longer YAML, the two parsers may tell in different ways.
    pub is_spilt: bool,
}

impl File {
    /// A document like a template, what surrounds it and what may be spilt over it; or a text as it stands.
    pub fn make(source: &mut Source<'_>, template: &Value) -> Self {
        if let Some(text) = source.raw_text() {
            return Self { text, is_spilt: true };
        }
        let (before, after) = match source.below(13) {
            0..8 => ("", ""),
            8 => ("---\n", ""),
            9 => ("# a comment\n\n", "# another\n"),
            10 => ("%YAML 1.1\n---\n", "...\n"),
            11 => ("", "---\nsecond: document\n"),
            _ => ("\u{feff}", ""),
        };
        let content = source.filled(template);
        let mut text = dressed(source, &content).text();
        let is_spilt = source.percent(10);
        if is_spilt {
            source.spill(&mut text, "[ :#\t\n-]");
        }
        Self { text: format!("{before}{text}{after}"), is_spilt }
    }
}
