//! Choices, made by bytes: the same bytes make the same input, and once they are used up, the
//! simplest choice is made.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use arbitrary::{Arbitrary, Unstructured};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};
use serde_json::{Map, Value, json};

/// The bytes that decide what an input is like.
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// What these bytes decide.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// All that follows, if it begins with `#`: so that an input can also be given as it stands.
    /// The files in kind-tests/fuzz/corpus are, and what libFuzzer makes of them with its
    /// dictionaries.
    pub fn raw(&mut self) -> Option<&'a [u8]> {
        (self.0.peek_bytes(1) == Some(b"#")).then(|| &self.rest()[1..])
    }

    /// The same as text.
    pub fn raw_text(&mut self) -> Option<String> {
        self.raw()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.0.bytes(self.0.len()).unwrap_or_default()
    }

    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0
            .int_in_range(0..=end.saturating_sub(1))
            .unwrap_or_default()
    }

    /// Whether something is so that is so this often.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
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

    /// A value like a template: in its texts and the names of its fields stand patterns, for its
    /// numbers and booleans any others. A field whose name begins with `~` is there half of the
    /// time, and with `~~` seldom. An array has items like that of the template.
    pub fn filled(&mut self, template: &Value) -> Value {
        match template {
            Value::Object(fields) => {
                let mut object = Map::new();
                for (name, value) in fields {
                    let pattern = name.trim_start_matches('~');
                    let tildes = name.len() - pattern.len();
                    if self.percent([100, 50, 10][tildes]) {
                        object.insert(self.text(pattern), self.filled(value));
                    }
                }
                Value::Object(object)
            }
            Value::Array(items) => {
                // Far more than there usually are, at times.
                let end = if self.below(60) == 59 { 100 } else { 4 };
                items
                    .iter()
                    .flat_map(|item| self.list(end, |source| source.filled(item)))
                    .collect()
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

    /// A text that a regular expression matches.
    pub fn text(&mut self, pattern: &str) -> String {
        let mut text = String::new();
        self.append(&mut text, &parsed(pattern));
        text
    }

    fn append(&mut self, text: &mut String, pattern: &Hir) {
        match pattern.kind() {
            HirKind::Literal(literal) => *text += &String::from_utf8_lossy(&literal.0),
            HirKind::Class(class) => text.push(self.one_of(class)),
            HirKind::Repetition(Repetition { min, max, sub, .. }) => {
                let most = max.unwrap_or(*min);
                for _ in 0..*min as usize + self.below(1 + (most - min) as usize) {
                    self.append(text, sub);
                }
            }
            HirKind::Capture(group) => self.append(text, &group.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.append(text, part)),
            HirKind::Alternation(ways) => {
                let way = self.below(ways.len());
                self.append(text, &ways[way]);
            }
            HirKind::Empty | HirKind::Look(_) => {}
        }
    }

    /// Each character of a class is as likely as any other; of one as large as `\PC` those are
    /// likelier that people write.
    fn one_of(&mut self, class: &Class) -> char {
        let Class::Unicode(class) = class else {
            return 'x';
        };
        let all = || class.iter().flat_map(|range| range.start()..=range.end());
        match all().take(256).count() {
            256 => self.shown(),
            count => all().nth(self.below(count)).unwrap_or('x'),
        }
    }

    fn shown(&mut self) -> char {
        match self.below(2) {
            0 => char::from(b' ' + self.below(95) as u8),
            _ => self.pick(&Vec::from_iter(
                "éµ\u{3bc}ß日🦀\u{a0}\u{301}\"\\<&Ωя한٣ǆ".chars(),
            )),
        }
    }
}

/// A pattern, parsed when it is first met: there are few, and each is met again and again.
fn parsed(pattern: &str) -> Rc<Hir> {
    thread_local! {
        static PARSED: RefCell<HashMap<String, Rc<Hir>>> = RefCell::default();
    }
    let parse = || Rc::new(regex_syntax::parse(pattern).expect("the patterns are ours"));
    PARSED.with_borrow_mut(|parsed| {
        parsed
            .entry(pattern.to_owned())
            .or_insert_with(parse)
            .clone()
    })
}
