//! Typed access to a tree of values, by field name, with every mismatch noted under its path.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use go_compat::duration::{GoDuration, GoDurationError};
use go_compat::yaml::{self, Location, Spanned, YamlNode, same_field};

use super::{ConfigKey, FieldError, Problems, error};

/// The value of a field, or nothing: an absent field and `null` are the same (rule 20).
#[derive(Clone, Debug)]
pub struct ConfigValue<'d> {
    /// As errors name it.
    pub(super) path: String,
    yaml: &'d YamlNode,
    place: Option<Location>,
    /// What its key takes.
    takes: &'static str,
    problems: &'d Problems,
}

impl<'d> ConfigValue<'d> {
    pub(super) fn root(yaml: &'d YamlNode, problems: &'d Problems) -> Self {
        Self {
            path: String::new(),
            yaml,
            place: None,
            takes: "",
            problems,
        }
    }

    /// A value within this one.
    fn inner(&self, path: String, spanned: Option<&'d Spanned<YamlNode>>) -> Self {
        let spanned = spanned.filter(|spanned| spanned.value != YamlNode::Null);
        Self {
            path,
            yaml: spanned.map_or(&YamlNode::Null, |spanned| &spanned.value),
            place: spanned.map(|spanned| spanned.referenced),
            ..*self
        }
    }

    pub fn is_absent(&self) -> bool {
        *self.yaml == YamlNode::Null
    }

    /// Notes an error about this value, or about its absence.
    pub fn refuse(&self, expected: impl Into<String>) {
        self.problems.errors.borrow_mut().push(FieldError {
            field: self.path.clone(),
            value: (!self.is_absent()).then(|| self.yaml.to_string()),
            expected: expected.into(),
            place: self.place,
        });
    }

    /// Notes something that loads but will surprise.
    pub fn warn(&self, warning: String) {
        self.problems.warnings.borrow_mut().push(warning);
    }

    /// What was read of this value; notes an error if it is `None`.
    pub fn accept<T>(&self, read: Option<T>, expected: impl Into<String>) -> Option<T> {
        if read.is_none() {
            self.refuse(expected);
        }
        read
    }

    /// What was read of this value, if its key takes it.
    pub fn check<T>(&self, read: T, fits: impl FnOnce(&T) -> bool) -> Option<T> {
        self.accept(Some(read).filter(fits), self.takes)
    }

    /// Reads a text that its key takes.
    pub fn parse<T: FromStr>(&self) -> Option<T> {
        self.accept(self.text()?.parse().ok(), self.takes)
    }

    /// A bare number or boolean counts as its spelling (rule 18), `null` as an empty text.
    pub fn text(&self) -> Option<String> {
        if self.is_absent() {
            return Some(String::new());
        }
        self.convert("a string", YamlNode::as_text)
    }

    pub fn boolean(&self) -> Option<bool> {
        self.convert("true or false", |yaml| yaml.try_as_bool_ref().copied())
    }

    /// A whole number that fits an `i32`; `1.0` is one, `"1"` is not (rules 18, 19).
    pub fn integer(&self) -> Option<i32> {
        let is_integer = |number: &f64| {
            number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(number)
        };
        self.convert(
            "a whole number that fits in 32 bits, without quotes",
            |yaml| Some(yaml.as_number().filter(is_integer)? as i32),
        )
    }

    /// A number; a quoted one is none (rule 18).
    pub fn number(&self) -> Option<f64> {
        self.convert("a number, without quotes", YamlNode::as_number)
    }

    /// A Go duration as a string; a bare number is none, whatever it is (rule 21).
    pub fn duration(&self) -> Option<GoDuration> {
        let text = self.convert(&GoDurationError.to_string(), YamlNode::try_as_text_ref)?;
        text.parse()
            .map_err(|error: GoDurationError| self.refuse(error.to_string()))
            .ok()
    }

    /// A duration that its key takes.
    pub fn duration_of_at_least(&self, least: Duration) -> Option<Duration> {
        let duration = self.duration()?.to_std();
        self.check(duration, |duration| *duration >= least)
    }

    /// This value if it is an object. As in Go a missing one has nothing set.
    pub fn object(&self) -> Option<Self> {
        if !self.is_absent() {
            self.convert("an object", YamlNode::try_as_map_ref)?;
        }
        Some(self.clone())
    }

    pub fn list<T>(&self, mut read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        let items = self.convert("a list", YamlNode::try_as_list_ref)?.iter();
        all(items.enumerate().map(|(index, item)| {
            let path = format!("{}[{index}]", self.path);
            read(&self.inner(path, Some(item)))
        }))
    }

    /// Reads the value, if there is one.
    pub fn optional<T>(&self, read: impl FnOnce(&Self) -> Option<T>) -> Option<Option<T>> {
        if self.is_absent() {
            Some(None)
        } else {
            read(self).map(Some)
        }
    }

    /// Reads the field of a key: its default if nothing is set.
    pub fn read<T>(
        &self,
        key: &ConfigKey,
        read: impl FnOnce(&ConfigValue<'_>) -> Option<T>,
    ) -> Option<T> {
        let field = Self {
            takes: key.takes,
            ..self.field(key.name)
        };
        if !field.is_absent() {
            return read(&field);
        }
        if key.default.is_empty() {
            field.refuse(key.takes);
            return None;
        }
        let default = yaml::read(key.default).ok()?;
        read(&ConfigValue {
            yaml: &default,
            ..field
        })
    }

    /// The field `name` of an object, in any case (rule 16). Where several keys differ only in
    /// case, the last of them in the order of their bytes counts, wherever it stands: the Go
    /// original sorts the keys on the way through JSON, and what comes later replaces what came
    /// before, the exact name too.
    pub fn field(&self, name: &str) -> Self {
        let found = self
            .fields()
            .iter()
            .filter(|(key, _)| same_field(key, name))
            .max_by_key(|(key, _)| key);
        self.inner(self.path_of(name), found.map(|(_, value)| value))
    }

    /// Reads each entry of an object whose keys are data, in the order of the file.
    pub fn entries<T>(&self, read: impl Fn(&str, &Self) -> Option<T>) -> Option<Vec<T>> {
        self.object()?;
        all(self
            .fields()
            .iter()
            .map(|(key, value)| read(key, &self.inner(self.path_of(key), Some(value)))))
    }

    /// Warns of each key that is none of `known`: it is ignored (rule 15), which is a surprise when
    /// it was misspelt.
    pub fn warn_of_unknown(&self, known: &[ConfigKey]) {
        for (key, value) in self.unknown(known) {
            let place = error::position(value.referenced);
            self.warn(format!(
                "{}: unknown key, ignored ({place})",
                self.path_of(key)
            ));
        }
    }

    /// Notes an error about each key that is none of `known`: without it the object would mean
    /// something else (D-83).
    pub fn refuse_unknown(&self, known: &[ConfigKey]) {
        let names: Vec<&str> = known.iter().map(|known| known.name).collect();
        for (key, value) in self.unknown(known) {
            self.problems.errors.borrow_mut().push(FieldError {
                field: self.path_of(key),
                value: Some(value.value.to_string()),
                expected: format!("one of the keys {}", names.join(", ")),
                place: Some(value.referenced),
            });
        }
    }

    fn unknown(
        &self,
        known: &[ConfigKey],
    ) -> impl Iterator<Item = &'d (String, Spanned<YamlNode>)> {
        let is_known = |key: &str| known.iter().any(|known| same_field(key, known.name));
        self.fields().iter().filter(move |(key, _)| !is_known(key))
    }

    fn fields(&self) -> &'d [(String, Spanned<YamlNode>)] {
        self.yaml.try_as_map_ref().map_or(&[], Vec::as_slice)
    }

    fn convert<T>(
        &self,
        expected: &str,
        convert: impl FnOnce(&'d YamlNode) -> Option<T>,
    ) -> Option<T> {
        if self.is_absent() {
            return None;
        }
        self.accept(convert(self.yaml), expected)
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

/// Collects after everything was read: one bad item must not hide the errors of the next.
fn all<T>(read: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
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
