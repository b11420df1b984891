//! YAML documents of every style, some of them only nearly YAML.

use proptest::prelude::*;
use proptest::sample::select;

use super::durations::durations;

/// A value and the style it is written in.
#[derive(Clone, Debug)]
pub enum Yaml {
    /// Its text as it stands in the file.
    Scalar(String),
    List(Vec<Yaml>, Style),
    Map(Vec<(String, Yaml)>, Style),
}

#[derive(Clone, Copy, Debug)]
pub enum Style {
    Flow,
    Block,
    /// As `Block`, with a list's dashes below the first letter of its key.
    Flush,
}

impl Yaml {
    /// The text of a document.
    pub fn text(&self) -> String {
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

pub fn style() -> impl Strategy<Value = Style> {
    prop_oneof![1 => Just(Style::Flow), 2 => Just(Style::Block), 1 => Just(Style::Flush)]
}

/// A scalar in any spelling that somebody may think of.
pub fn scalar() -> BoxedStrategy<String> {
    prop_oneof![
        3 => word(),
        3 => integer(),
        3 => number(),
        3 => boolean(),
        2 => null(),
        2 => quoted(),
        2 => duration(),
        1 => select(vec!["1:30", "190:20:30", "2001-12-14", "2001-12-14t21:59:43.10-05:00", "<<", "=", "12e03", "0.",  ".", "0o",
            "0x", "0b", "08", "09", "-08", "0o8", "+.inf", ".Inf", ".NAN", ".nan", "1e400", "-0", "+0", "0x8000000000000000",
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775808",
            "-9223372036854775809", "123456789012345678901234567890"]).prop_map(str::to_owned),
    ]
    .boxed()
}

pub fn word() -> BoxedStrategy<String> {
    prop_oneof!["[a-zA-Z][a-zA-Z0-9_./-]{0,8}", "[a-z]{1,4} [a-z]{1,4}", "é[a-z]{0,3}"].boxed()
}

pub fn quoted() -> BoxedStrategy<String> {
    prop_oneof![
        "'[a-zA-Z0-9 ~:,._-]{0,6}'",
        "\"[a-zA-Z0-9 ~:,._-]{0,6}\"",
        "\"(\\\\x41|\\\\u00e9|\\\\n|\\\\t|\\\\\"|\\\\/|a){0,3}\"",
        "'(''|a){0,3}'",
        "'(yes|null|5|0\\.5|30s|)'",
    ]
    .boxed()
}

pub fn integer() -> BoxedStrategy<String> {
    prop_oneof![
        "[-+]?[0-9]{1,3}",
        "[-+]?[0-9]{1,3}",
        "[-+]?[1-9][0-9]{0,2}(_[0-9]{1,3}){1,2}",
        "[-+]?0[0-7]{0,3}",
        "[-+]?0x[0-9a-fA-F]{1,4}(_[0-9a-f]{1,2})?",
        "[-+]?0b[01]{1,4}(_[01])?",
        "[-+]?0o[0-7]{1,3}"
    ]
    .boxed()
}

pub fn number() -> BoxedStrategy<String> {
    prop_oneof![
        3 => "(0\\.[0-9]{1,3}|1|1\\.0|0\\.60)",
        2 => "[-+]?[0-9]{0,3}\\.[0-9]{0,3}([eE][-+]?[0-9]{1,2})?",
        1 => "[-+]?[0-9]{1,3}[eE][-+]?[0-9]{1,2}",
    ]
    .boxed()
}

pub fn boolean() -> BoxedStrategy<String> {
    "(y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)".boxed()
}

pub fn null() -> BoxedStrategy<String> {
    "(~|null|Null|NULL|)".boxed()
}

pub fn duration() -> BoxedStrategy<String> {
    // Plain text only, and nothing that has a meaning in YAML.
    let plain = |text: &String| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "+-._".contains(c));
    let bare = durations().prop_filter_map("plain", move |text| plain(&text).then_some(text));
    let quoted = durations().prop_filter_map("quotable", |text| {
        text.chars().all(|c| !c.is_control() && !"'\\\u{feff}\u{2028}\u{2029}".contains(c)).then(|| format!("'{text}'"))
    });
    prop_oneof![4 => "[1-9][0-9]?(ms|s|m|h)", 1 => bare, 1 => quoted].boxed()
}

/// Anything at all, a few levels deep.
pub fn any_yaml() -> BoxedStrategy<Yaml> {
    let leaf = scalar().prop_map(Yaml::Scalar);
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..3), style()).prop_map(|(items, style)| Yaml::List(items, style)),
            (prop::collection::vec((scalar_key(), inner), 0..3), style()).prop_map(|(entries, style)| Yaml::Map(entries, style)),
        ]
    })
    .boxed()
}

fn scalar_key() -> BoxedStrategy<String> {
    prop_oneof![4 => word(), 1 => integer(), 1 => boolean(), 1 => "'[a-z ]{0,3}'"].boxed()
}

/// A value that is mostly what `usual` makes.
pub fn mostly(usual: BoxedStrategy<String>) -> BoxedStrategy<Yaml> {
    prop_oneof![
        12 => usual.prop_map(Yaml::Scalar),
        2 => scalar().prop_map(Yaml::Scalar),
        1 => any_yaml(),
    ]
    .boxed()
}

/// A field's name, at times in another case or in quotes.
pub fn key(name: &'static str) -> BoxedStrategy<String> {
    prop_oneof![
        12 => Just(name.to_owned()),
        1 => Just(name.to_uppercase()),
        1 => Just(name.to_lowercase()),
        1 => Just(format!("'{name}'")),
        1 => Just(format!("\"{name}\"")),
    ]
    .boxed()
}

/// A map of some of these fields in any order, now and then one twice or one unknown. The percentage says how often a field is there.
pub fn map(fields: Vec<(&'static str, u32, BoxedStrategy<Yaml>)>) -> BoxedStrategy<Yaml> {
    let known: Vec<BoxedStrategy<Vec<(String, Yaml)>>> = fields
        .into_iter()
        .map(|(name, percent, value)| {
            let entry = (key(name), value);
            prop_oneof![
                100 - percent => Just(Vec::new()),
                percent => prop::collection::vec(entry.clone(), 1..2),
                1 => prop::collection::vec(entry, 2..3),
            ]
            .boxed()
        })
        .collect();
    let unknown = prop::collection::vec((scalar_key(), any_yaml()), 0..2);
    let unknown = prop_oneof![4 => Just(Vec::new()), 1 => unknown];
    ((known, unknown).prop_map(|(known, unknown)| [known.concat(), unknown].concat()).prop_shuffle(), style())
        .prop_map(|(entries, style)| Yaml::Map(without_merging(entries), style))
        .boxed()
}

/// Leaves out what would be one field twice, in different case: the one that does not count is not looked at here, and Go merges
/// sections (exceptions for a file that nobody means to write).
pub fn without_merging(entries: Vec<(String, Yaml)>) -> Vec<(String, Yaml)> {
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

/// A document, what surrounds it and what may be spilt over it.
pub fn document(content: BoxedStrategy<Yaml>) -> BoxedStrategy<File> {
    let frame = prop_oneof![
        8 => Just(("", "")),
        1 => Just(("---\n", "")),
        1 => Just(("# a comment\n\n", "# another\n")),
        1 => Just(("%YAML 1.1\n---\n", "...\n")),
        1 => Just(("", "---\nsecond: document\n")),
        1 => Just(("\u{feff}", "")),
    ];
    (content, frame, prop::option::weighted(0.1, (any::<prop::sample::Index>(), "[ :#\t\n-]")))
        .prop_map(|(content, (before, after), spilt)| {
            let mut text = content.text();
            let is_spilt = spilt.is_some();
            if let Some((at, spilt)) = spilt {
                let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
                text.insert_str(*at.get(&places), &spilt);
            }
            File { text: format!("{before}{text}{after}"), is_spilt }
        })
        .boxed()
}
