//! What a benchmark found: a table for people, and one line of JSON for scripts.

pub mod kept;
mod spread;

use std::fmt::Write;

use chrono::{SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

use kept::Kept;
pub use spread::Spread;

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// At most this.
    AtMost(f64),
    /// Less than this.
    Below(f64),
    /// At least this.
    AtLeast(f64),
    /// This, to a thousandth.
    Exactly(f64),
}

impl Goal {
    /// Whether a figure is what it should be.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::Below(bound) => value < bound,
            Self::AtLeast(bound) => value >= bound,
            Self::Exactly(wanted) => (value - wanted).abs() < 0.001,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(bound) => format!("<= {}", number(bound)),
            Self::Below(bound) => format!("< {}", number(bound)),
            Self::AtLeast(bound) => format!(">= {}", number(bound)),
            Self::Exactly(wanted) => number(wanted),
        }
    }
}

/// A figure's key, what it is, its value, its unit and its goal.
pub type Row<'a> = (&'a str, &'a str, f64, &'static str, Option<Goal>);

/// A benchmark's findings.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    result: Kept,
    /// The keys of figures that are not what they should be.
    missed: Vec<String>,
}

impl Report {
    /// `name` is the benchmark's, `what` says in a line what was measured on what.
    pub fn new(name: &str, what: impl Into<String>) -> Self {
        let at = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let (rows, figures) = (Vec::new(), Map::new());
        let result = Kept { benchmark: name.into(), what: what.into(), at, machine: machine(), rows, figures };
        Self { result, missed: Vec::new() }
    }

    /// Says that it was measured then and there, not now and here.
    pub fn measured_at(&mut self, at: &str, machine: &str) {
        (self.result.at, self.result.machine) = (at.into(), machine.into());
    }

    /// Adds a figure: `key` names it in the JSON line, `what` in the table.
    pub fn add(&mut self, key: &str, what: &str, value: f64, unit: &'static str, goal: Option<Goal>) {
        let with_unit = |number: String| format!("{number} {unit}").trim_end().to_owned();
        let met = match goal {
            None => "",
            Some(goal) if goal.is_met(value) => "met",
            Some(_) => {
                self.missed.push(key.into());
                "MISSED"
            }
        };
        let goal = goal.map(|goal| with_unit(goal.text())).unwrap_or_default();
        self.result.rows.push([what.into(), with_unit(number(value)), goal, met.into()]);
        // To a millionth.
        self.result.figures.insert(key.into(), json!((value * 1e6).round() / 1e6));
    }

    /// Adds several.
    pub fn rows<const N: usize>(&mut self, rows: [Row<'_>; N]) {
        rows.into_iter().for_each(|(key, what, value, unit, goal)| self.add(key, what, value, unit, goal));
    }

    /// Adds median, 99th percentile and maximum of many values; the goal is for the 99th percentile. Of no values nothing can be
    /// said, and a goal for them is missed.
    pub fn spread(&mut self, key: &str, what: &str, values: &Spread, unit: &'static str, goal: Option<Goal>) {
        let count = values.values().len();
        if count == 0 && goal.is_none() {
            return;
        }
        self.rows([
            (&format!("{key}_p50"), &format!("{what}, median of {count}"), values.at(0.5), unit, None),
            (&format!("{key}_p99"), &format!("{what}, 99th percentile"), values.at(0.99), unit, goal),
            (&format!("{key}_max"), &format!("{what}, worst"), values.at(1.0), unit, None),
        ]);
    }

    /// Adds what only the JSON line tells.
    pub fn detail(&mut self, key: &str, value: impl Into<Value>) {
        self.result.figures.insert(key.into(), value.into());
    }

    /// The table.
    pub fn table(&self) -> String {
        let head = ["", "measured", "goal", ""].map(str::to_owned);
        let rows: Vec<[String; 4]> = std::iter::once(head).chain(self.result.rows.iter().cloned()).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let (what, value, goal) = (width(0), width(1), width(2));
        let mut text = format!("\n{}: {}\n", self.result.benchmark, self.result.what);
        for [a, b, c, d] in &rows {
            let line = format!("  {a:what$}  {b:>value$}  {c:>goal$}  {d}");
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The JSON line, without a line's end.
    pub fn json(&self) -> String {
        json!(self).to_string()
    }

    /// Prints both.
    pub fn print(&self) {
        println!("{}\n{}", self.table(), self.json());
    }
}

/// Tells a person who waits what goes on, on standard error.
pub fn progress(text: impl AsRef<str>) {
    eprintln!("{} {}", Utc::now().format("%H:%M:%S"), text.as_ref());
}

/// A number as people read it: three digits that count, whole ones in full.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// What it was measured on.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).and_then(|line| line.split_once(':'));
        line.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = value(&read("/proc/cpuinfo"), "model name");
    let memory: f64 = value(&read("/proc/meminfo"), "MemTotal").split(' ').next().and_then(|kib| kib.parse().ok()).unwrap_or(0.0);
    let kernel = read("/proc/sys/kernel/osrelease");
    let release = kernel.trim().split('.').take(2).collect::<Vec<_>>().join(".");
    format!("{cores} cores of {processor}, {:.0} GiB, Linux {release}", memory / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_not_there_and_meets_no_goal() {
        let mut report = Report::new("it", "on that");
        report.spread("free", "free", &Spread::default(), "s", None);
        report.spread("bound", "bound", &Spread::default(), "s", Some(Goal::AtMost(1.0)));
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["missed"], json!(["bound_p99"]));
        assert_eq!(json["figures"], json!({"bound_p50": null, "bound_p99": null, "bound_max": null}));
    }

    #[test]
    fn the_table_and_the_json_line_say_which_goals_were_missed() {
        let mut report = Report::new("it", "on that");
        report.rows([
            ("good", "a good figure", 1.0, "s", Some(Goal::AtMost(1.0))),
            ("bad", "a bad figure", 1.5, "s", Some(Goal::AtMost(1.0))),
            ("free", "a figure without goal", 0.25, "MiB", None),
        ]);
        let table = report.table();
        assert!(table.contains("a good figure               1 s  <= 1 s  met\n"), "{table}");
        assert!(table.contains("1.50 s  <= 1 s  MISSED\n"), "{table}");
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["missed"], json!(["bad"]));
        assert_eq!(json["figures"], json!({"good": 1.0, "bad": 1.5, "free": 0.25}));
    }
}
