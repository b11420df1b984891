//! Typed access to a tree of values, by field name, with every mismatch noted under its path.

use std::borrow::Cow;

use go_compat::duration::GoDuration;
use go_compat::yaml::{Location, Node, Spanned, same_field};

use super::{FieldError, Key, Problems, error};

/// What stands at a field: a value, or nothing (absent and `null` are the same, rule 20).
#[derive(Clone, Debug)]
pub struct Value<'d> {
    /// As errors name it.
    pub(super) path: String,
    node: Option<&'d Node>,
    place: Option<Location>,
    problems: &'d Problems,
}

impl<'d> Value<'d> {
    pub(super) fn root(node: &'d Node, problems: &'d Problems) -> Self {
        let node = Some(node).filter(|node| **node != Node::Null);
        Self {
            path: String::new(),
            node,
            place: None,
            problems,
        }
    }

    fn new(path: String, spanned: Option<&'d Spanned<Node>>, problems: &'d Problems) -> Self {
        let spanned = spanned.filter(|spanned| spanned.value != Node::Null);
        let (node, place) = spanned
            .map(|spanned| (&spanned.value, spanned.referenced))
            .unzip();
        Self {
            path,
            node,
            place,
            problems,
        }
    }

    pub fn is_absent(&self) -> bool {
        self.node.is_none()
    }

    /// Notes an error about what stands here (or does not).
    pub fn refuse(&self, expected: impl Into<String>) {
        self.problems.errors.borrow_mut().push(FieldError {
            field: self.path.clone(),
            value: self.node.map(Node::to_string),
            expected: expected.into(),
            place: self.place,
        });
    }

    /// Notes an error when nothing stands here.
    pub fn required(&self, expected: &str) -> &Self {
        if self.is_absent() {
            self.refuse(expected);
        }
        self
    }

    /// The text here. A bare number or boolean counts as its spelling (rule 18).
    pub fn text(&self) -> Option<String> {
        self.read(Node::as_text, "a string")
    }

    pub fn boolean(&self) -> Option<bool> {
        self.read(
            |node| {
                if let Node::Bool(value) = node {
                    Some(*value)
                } else {
                    None
                }
            },
            "true or false",
        )
    }

    /// The whole number here, when it fits an `i32`; `1.0` is one, `"1"` is not (rules 18, 19).
    pub fn integer(&self) -> Option<i32> {
        self.read(
            |node| match node {
                Node::Integer(value) => i32::try_from(*value).ok(),
                // A float with no fraction in the range of i32 is exact in f64.
                Node::Float(value)
                    if value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX) =>
                {
                    Some(*value as i32)
                }
                _ => None,
            },
            "a whole number that fits in 32 bits, without quotes",
        )
    }

    /// The number here; a quoted one is none (rule 18).
    pub fn number(&self) -> Option<f64> {
        self.read(
            |node| match node {
                Node::Integer(value) => Some(*value as f64),
                Node::Float(value) => Some(*value),
                _ => None,
            },
            "a number, without quotes",
        )
    }

    /// The duration here: a Go duration as a string; a bare number is none, whatever it is (rule
    /// 21).
    pub fn duration(&self) -> Option<GoDuration> {
        let expected = "a duration like \"30s\" or \"1h15m\"";
        let duration = match self.node? {
            Node::Text(text) => text
                .parse::<GoDuration>()
                .map_err(|error| format!("{expected} ({error})")),
            _ => Err(expected.to_owned()),
        };
        duration.map_err(|expected| self.refuse(expected)).ok()
    }

    pub fn object(&self) -> Option<Object<'d>> {
        let entries = self.read(
            |node| {
                if let Node::Map(entries) = node {
                    Some(entries)
                } else {
                    None
                }
            },
            "an object",
        )?;
        Some(Object {
            path: self.path.clone(),
            entries,
            problems: self.problems,
        })
    }

    /// The object here, an empty one when nothing stands here (as in Go a missing struct is one
    /// with nothing set).
    pub fn object_or_empty(&self) -> Option<Object<'d>> {
        if self.is_absent() {
            return Some(Object {
                path: self.path.clone(),
                entries: &[],
                problems: self.problems,
            });
        }
        self.object()
    }

    pub fn items(&self) -> Option<Vec<Value<'d>>> {
        let list = self.read(
            |node| {
                if let Node::List(items) = node {
                    Some(items)
                } else {
                    None
                }
            },
            "a list",
        )?;
        let item = |(index, item)| {
            Value::new(format!("{}[{index}]", self.path), Some(item), self.problems)
        };
        Some(list.iter().enumerate().map(item).collect())
    }

    /// What was read of this; notes an error when it is none.
    pub fn accept<T>(&self, read: Option<T>, expected: &str) -> Option<T> {
        if read.is_none() {
            self.refuse(expected);
        }
        read
    }

    fn read<T>(&self, convert: impl FnOnce(&'d Node) -> Option<T>, expected: &str) -> Option<T> {
        self.accept(convert(self.node?), expected)
    }
}

/// A map whose keys are field names.
#[derive(Clone, Debug)]
pub struct Object<'d> {
    path: String,
    entries: &'d [(String, Spanned<Node>)],
    problems: &'d Problems,
}

impl<'d> Object<'d> {
    /// What stands at the field `name`, in any case (rule 16). Where several keys differ only in
    /// case, the last of them in the order of their bytes counts, wherever it stands: the Go
    /// original sorts the keys on the way through JSON, and what comes later replaces what came
    /// before, the exact name too.
    pub fn field(&self, name: &str) -> Value<'d> {
        let found = self
            .entries
            .iter()
            .filter(|(key, _)| same_field(key, name))
            .max_by_key(|(key, _)| key);
        Value::new(
            self.path_of(name),
            found.map(|(_, value)| value),
            self.problems,
        )
    }

    /// All entries, for maps whose keys are data: key and value in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = (&'d str, Value<'d>)> {
        self.entries.iter().map(|(key, value)| {
            (
                key.as_str(),
                Value::new(self.path_of(key), Some(value), self.problems),
            )
        })
    }

    /// Warns of each key that is none of `known`: it is ignored (rule 15), which is a surprise when
    /// it was misspelt.
    pub fn warn_of_unknown(&self, known: &[Key]) {
        let unknown = self
            .entries
            .iter()
            .filter(|(key, _)| !known.iter().any(|known| same_field(key, known.name)));
        for (key, value) in unknown {
            let place = error::position(value.referenced);
            self.problems.warn(format!(
                "{}: unknown key, ignored ({place})",
                self.path_of(key)
            ));
        }
    }

    fn path_of(&self, name: &str) -> String {
        let name = shown(name);
        if self.path.is_empty() {
            name.into_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }
}

/// A key as it is named in a message: on one line, and not at any length.
fn shown(key: &str) -> Cow<'_, str> {
    /// Longer than any name of ours, and enough to recognise others by.
    const SHOWN: usize = 80;
    if key.len() <= SHOWN && !key.contains(char::is_control) {
        return Cow::Borrowed(key);
    }
    let mut shown: String = key
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if key.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    Cow::Owned(shown)
}
