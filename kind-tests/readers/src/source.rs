//! Choices, made by bytes: the same bytes make the same input, and once they are used up, the simplest choice is made.

use std::ops::RangeInclusive;

use arbitrary::{Arbitrary, Unstructured};
use serde_json::{Map, Value, json};

/// The bytes that decide what an input is like.
pub struct Source<'a>(Unstructured<'a>);

impl<'a> Source<'a> {
    /// What these bytes decide.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// All that follows, if it begins with `#`: so that an input can also be given as it stands. The files in fuzz/corpus are, and what
    /// libFuzzer makes of them with its dictionaries.
    pub fn raw(&mut self) -> Option<&'a [u8]> {
        (self.0.peek_bytes(1) == Some(b"#")).then(|| &self.rest()[1..])
    }

    /// The same as text.
    pub fn raw_text(&mut self) -> Option<String> {
        self.raw().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.0.bytes(self.0.len()).unwrap_or_default()
    }

    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.int_in_range(0..=end.saturating_sub(1)).unwrap_or_default()
    }

    /// A number out of a range.
    pub fn number(&mut self, range: RangeInclusive<i64>) -> i64 {
        let simplest = *range.start();
        self.0.int_in_range(range).unwrap_or(simplest)
    }

    /// Whether something is so that is so this often.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// Something that is there in half of all cases.
    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.percent(50).then(|| make(self))
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Fewer than so many.
    pub fn list<T>(&mut self, end: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(end)).map(|_| make(self)).collect()
    }

    /// Any value of a type.
    pub fn any<T: Arbitrary<'a> + Default>(&mut self) -> T {
        self.0.arbitrary().unwrap_or_default()
    }

    /// A value like a template: in its texts and the names of its fields stand patterns, for its numbers and booleans any others. A
    /// field whose name begins with `~` is there half of the time, and with `~~` seldom. An array has items like that of the template.
    pub fn filled(&mut self, template: &Value) -> Value {
        match template {
            Value::Object(fields) => {
                let mut object = Map::new();
                for (name, value) in fields {
                    let pattern = name.trim_start_matches('~');
                    if self.percent(match name.len() - pattern.len() {
                        0 => 100,
                        1 => 50,
                        _ => 10,
                    }) {
                        object.insert(self.text(pattern), self.filled(value));
                    }
                }
                Value::Object(object)
            }
            Value::Array(items) => {
                // Far more than there usually are, at times.
                let end = if self.below(60) == 59 { 100 } else { 4 };
                items.iter().flat_map(|item| self.list(end, |source| source.filled(item))).collect()
            }
            Value::String(pattern) => json!(self.text(pattern)),
            Value::Number(_) => json!(self.any::<i32>()),
            Value::Bool(_) | Value::Null => json!(self.any::<bool>()),
        }
    }

    /// Puts something like the pattern somewhere into a text.
    pub fn spill(&mut self, text: &mut String, pattern: &str) {
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        if !places.is_empty() {
            let place = self.pick(&places);
            text.insert_str(place, &self.text(pattern));
        }
    }

    /// A text that a pattern matches. Of regular expressions it may have `[a-z]`, `(a|b)`, `{m,n}`, `{n}`, `?`, `\.` and, for any
    /// character that can be shown, `\PC`.
    pub fn text(&mut self, pattern: &str) -> String {
        let (mut text, mut rest) = (String::new(), pattern);
        while !rest.is_empty() {
            let (atom, after) = rest.split_at(atom_length(rest));
            let (least, most, after) = repetition(after);
            for _ in 0..least + self.below(most - least + 1) {
                text += &self.atom(atom);
            }
            rest = after;
        }
        text
    }

    fn atom(&mut self, atom: &str) -> String {
        let inner = || &atom[1..atom.len() - 1];
        match atom.as_bytes() {
            [b'(', ..] => {
                let way = self.pick(&alternatives(inner()));
                self.text(way)
            }
            [b'[', ..] => self.one_of_class(inner()).into(),
            b"\\PC" => self.shown().into(),
            [b'\\', ..] => atom[1..].to_owned(),
            _ => atom.to_owned(),
        }
    }

    /// A character out of a class such as `a-z_-`.
    fn one_of_class(&mut self, class: &str) -> char {
        let (mut ranges, mut rest) = (Vec::new(), class.chars().peekable());
        while let Some(first) = rest.next() {
            let mut after = rest.clone();
            match (after.next(), after.next()) {
                (Some('-'), Some(last)) => {
                    ranges.push(first..=last);
                    rest = after;
                }
                _ => ranges.push(first..=first),
            }
        }
        let all: Vec<char> = ranges.into_iter().flatten().collect();
        self.pick(&all)
    }

    fn shown(&mut self) -> char {
        match self.below(8) {
            0..4 => self.number(0x20..=0x7e) as u8 as char,
            4..6 => self.pick(&['é', 'µ', '\u{3bc}', 'ß', '日', '🦀', '\u{a0}', '\u{301}', '"', '\\', '<', '&']),
            _ => char::from_u32(self.below(0x2_0000) as u32).filter(|c| c.is_alphanumeric()).unwrap_or('x'),
        }
    }
}

/// The length of what a pattern begins with, without its repetition.
fn atom_length(pattern: &str) -> usize {
    let closing = |open: char, close: char| {
        let mut depth = 0;
        pattern.char_indices().find_map(|(at, c)| {
            depth += i32::from(c == open) - i32::from(c == close);
            (depth == 0).then_some(at + 1)
        })
    };
    let found = match pattern.as_bytes() {
        [b'(', ..] => closing('(', ')'),
        [b'[', ..] => closing('[', ']'),
        [b'\\', b'P', ..] => Some(3),
        [b'\\', ..] => pattern.chars().nth(1).map(|c| 1 + c.len_utf8()),
        _ => pattern.chars().next().map(char::len_utf8),
    };
    found.unwrap_or(pattern.len())
}

/// How often at least and at most, if the rest of a pattern begins with that, and what follows.
fn repetition(rest: &str) -> (usize, usize, &str) {
    if let Some(rest) = rest.strip_prefix('?') {
        return (0, 1, rest);
    }
    let Some((times, after)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return (1, 1, rest) };
    let (least, most) = times.split_once(',').unwrap_or((times, times));
    (least.parse().unwrap_or(1), most.parse().unwrap_or(1), after)
}

/// The alternatives of a group, which `|` separates.
fn alternatives(group: &str) -> Vec<&str> {
    let (mut ways, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < group.len() {
        let length = atom_length(&group[at..]);
        if group[at..].starts_with('|') {
            ways.push(&group[begin..at]);
            begin = at + 1;
        }
        at += length;
    }
    ways.push(&group[begin..]);
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_makes_what_it_would_match() {
        let bytes: Vec<u8> = (0..=255).cycle().take(4096).collect();
        let mut source = Source::new(&bytes);
        for _ in 0..50 {
            let text = source.text("(a|(b|c)\\.|'\\|'){2}[0-9-]{1,3}é?");
            let rest = text.trim_end_matches('é').trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
            assert_eq!(rest.replace("b.", "a").replace("c.", "a").replace("'|'", "a"), "aa", "{text}");
        }
        assert_eq!(Source::new(&[]).text("(x|y){3}[b-d]{2,9}\\PC?"), "xxxbb", "the simplest, once the bytes are used up");
    }

    #[test]
    fn what_begins_with_a_hash_is_taken_as_it_stands() {
        assert_eq!(Source::new(b"#5s").raw_text().as_deref(), Some("5s"));
        assert_eq!(Source::new(b"5s").raw_text(), None);
    }
}
