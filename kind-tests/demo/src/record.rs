//! What has happened in the demo: what viewers read, and the facts that steps and claims depend on,
//! each by its name.

use std::collections::BTreeMap;

#[derive(Default)]
pub struct DemoRecord {
    /// The time of what happens now. All times are seconds since the beginning.
    pub now: f64,
    /// Moments and counts.
    pub numbers: BTreeMap<String, f64>,
    pub words: BTreeMap<&'static str, String>,
}

impl DemoRecord {
    /// Says something to viewers; see [`DemoRecord::filled_in`].
    pub fn tell(&self, text: &str) {
        println!("{:>6.1}s  {}", self.now, self.filled_in(text));
    }

    /// Notes a moment and tells of it when it is so for the first time.
    pub fn tell_once(&mut self, name: &str, is_so: bool, text: &str) {
        if is_so && !self.has(name) {
            self.note(name, self.now);
            self.tell(text);
        }
    }

    /// Notes a number, unless there is one of that name already.
    pub fn note(&mut self, name: impl Into<String>, number: f64) {
        self.numbers.entry(name.into()).or_insert(number);
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }

    pub fn has(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }

    pub fn word(&self, name: &str) -> &str {
        self.words.get(name).map_or("nobody", String::as_str)
    }

    /// Whether numbers are in these orders, as in `0 < cut < healed, writes = 0`. One that is
    /// missing breaks them.
    pub fn holds(&self, orders: &str) -> bool {
        orders.split(',').all(|order| self.is_in_order(order))
    }

    fn is_in_order(&self, order: &str) -> bool {
        let number = |term: &str| {
            term.trim()
                .parse()
                .ok()
                .or_else(|| self.number(term.trim()))
        };
        let numbers: Vec<Option<f64>> = order.split(['<', '=']).map(number).collect();
        let is_so = |(pair, sign): (&[Option<f64>], &str)| match pair {
            [Some(left), Some(right)] => {
                (sign == "<" && left < right) || (sign == "=" && left == right)
            }
            _ => false,
        };
        numbers.windows(2).zip(order.matches(['<', '='])).all(is_so)
    }

    /// A text with what its names in braces stand for: `{NAME}` for a word or count, `{at NAME}`
    /// for a moment, `{FROM..TO}` for the time between two, and `{..TO}` for that since the
    /// beginning.
    pub fn filled_in(&self, text: &str) -> String {
        let part = |(place, part): (usize, &str)| {
            if place % 2 == 0 {
                part.to_owned()
            } else {
                self.fact(part)
            }
        };
        text.split(['{', '}']).enumerate().map(part).collect()
    }

    fn fact(&self, name: &str) -> String {
        if let Some((from, to)) = name.split_once("..") {
            let from = if from.is_empty() {
                Some(0.0)
            } else {
                self.number(from)
            };
            return match (from, self.number(to)) {
                (Some(from), Some(to)) => format!("{:.1}s", to - from),
                _ => "no time".to_owned(),
            };
        }
        if let Some(moment) = name.strip_prefix("at ") {
            let at = self.number(moment);
            return at.map_or("never".to_owned(), |at| format!("at {at:.1}s"));
        }
        match (self.words.get(name), self.number(name)) {
            (Some(word), _) => word.clone(),
            (None, Some(count)) => count.to_string(),
            (None, None) => "unknown".to_owned(),
        }
    }
}
