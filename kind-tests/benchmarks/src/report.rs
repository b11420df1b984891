//! What a benchmark found: a table for people, and one line of JSON for scripts.

pub mod kept;

use std::fmt::Write;

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

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

/// One measured figure.
#[derive(Clone, Debug)]
struct Figure {
    key: String,
    what: String,
    value: f64,
    unit: &'static str,
    goal: Option<Goal>,
}

/// A benchmark's findings.
#[derive(Clone, Debug)]
pub struct Report {
    name: String,
    what: String,
    at: String,
    machine: String,
    figures: Vec<Figure>,
    details: Map<String, Value>,
}

impl Report {
    /// `name` is the benchmark's, `what` says in a line what was measured on what.
    pub fn new(name: &str, what: impl Into<String>) -> Self {
        let at = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        Self { name: name.into(), what: what.into(), at, machine: machine(), figures: Vec::new(), details: Map::new() }
    }

    /// Says that it was measured then and there, not now and here.
    pub fn measured_at(&mut self, at: &str, machine: &str) {
        (self.at, self.machine) = (at.into(), machine.into());
    }

    /// Adds a figure. `key` names it in the JSON line, `what` in the table.
    pub fn figure(&mut self, key: &str, what: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { key: key.into(), what: what.into(), value, unit, goal: None });
    }

    /// Adds a figure that has a goal.
    pub fn measured_against(&mut self, key: &str, what: impl Into<String>, value: f64, unit: &'static str, goal: Goal) {
        self.figures.push(Figure { key: key.into(), what: what.into(), value, unit, goal: Some(goal) });
    }

    /// Adds median, 99th percentile and maximum of many values; the goal is for the 99th percentile. Of no values nothing can be
    /// said, and a goal for them is missed.
    pub fn spread(&mut self, key: &str, what: &str, values: &mut [f64], unit: &'static str, goal: Option<Goal>) {
        if values.is_empty() && goal.is_none() {
            return;
        }
        values.sort_by(f64::total_cmp);
        self.figure(&format!("{key}_p50"), format!("{what}, median of {}", values.len()), percentile(values, 0.5), unit);
        let (key99, what99) = (format!("{key}_p99"), format!("{what}, 99th percentile"));
        match goal {
            Some(goal) => self.measured_against(&key99, what99, percentile(values, 0.99), unit, goal),
            None => self.figure(&key99, what99, percentile(values, 0.99), unit),
        }
        self.figure(&format!("{key}_max"), format!("{what}, worst"), percentile(values, 1.0), unit);
    }

    /// Adds what only the JSON line tells.
    pub fn detail(&mut self, key: &str, value: impl Into<Value>) {
        self.details.insert(key.into(), value.into());
    }

    /// What each figure is, its value, its goal, and whether that was met.
    fn rows(&self) -> impl Iterator<Item = [String; 4]> {
        self.figures.iter().map(|figure| {
            let with_unit = |number: String| format!("{number} {}", figure.unit).trim_end().to_owned();
            let goal = figure.goal.map(|goal| with_unit(goal.text())).unwrap_or_default();
            let met = figure.goal.map_or("", |goal| if goal.is_met(figure.value) { "met" } else { "MISSED" });
            [figure.what.clone(), with_unit(number(figure.value)), goal, met.to_owned()]
        })
    }

    /// The table.
    pub fn table(&self) -> String {
        let head = ["", "measured", "goal", ""].map(str::to_owned);
        let rows: Vec<[String; 4]> = std::iter::once(head).chain(self.rows()).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let (what, value, goal) = (width(0), width(1), width(2));
        let mut text = format!("\n{}: {}\n", self.name, self.what);
        for [a, b, c, d] in &rows {
            let line = format!("  {a:what$}  {b:>value$}  {c:>goal$}  {d}");
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The JSON line, without a line's end.
    pub fn json(&self) -> String {
        let mut figures: Map<String, Value> = self.figures.iter().map(|f| (f.key.clone(), json!(rounded(f.value)))).collect();
        figures.extend(self.details.clone());
        let missed = self.figures.iter().filter(|f| f.goal.is_some_and(|goal| !goal.is_met(f.value))).map(|f| f.key.clone());
        json!({
            "benchmark": self.name, "what": self.what, "at": self.at, "machine": self.machine, "rows": self.rows().collect::<Vec<_>>(),
            "figures": figures, "missed": missed.collect::<Vec<_>>(),
        })
        .to_string()
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

/// The value below which this share of sorted values lies; not a number when there are none.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).or(sorted.last()).copied().unwrap_or(f64::NAN)
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

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
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
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.5, 0.99, 1.0].map(|share| percentile(&values, share)), [50.0, 99.0, 100.0]);
        assert_eq!(percentile(&[7.0], 0.01), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn what_was_not_measured_is_not_there_and_meets_no_goal() {
        let mut report = Report::new("it", "on that");
        report.spread("free", "free", &mut [], "s", None);
        report.spread("bound", "bound", &mut [], "s", Some(Goal::AtMost(1.0)));
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["missed"], json!(["bound_p99"]));
        assert_eq!(json["figures"], json!({"bound_p50": null, "bound_p99": null, "bound_max": null}));
    }

    #[test]
    fn the_table_and_the_json_line_say_which_goals_were_missed() {
        let mut report = Report::new("it", "on that");
        report.measured_against("good", "a good figure", 1.0, "s", Goal::AtMost(1.0));
        report.measured_against("bad", "a bad figure", 1.5, "s", Goal::AtMost(1.0));
        report.figure("free", "a figure without goal", 0.25, "MiB");
        let table = report.table();
        assert!(table.contains("a good figure               1 s  <= 1 s  met\n"), "{table}");
        assert!(table.contains("1.50 s  <= 1 s  MISSED\n"), "{table}");
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["missed"], json!(["bad"]));
        assert_eq!(json["figures"], json!({"good": 1.0, "bad": 1.5, "free": 0.25}));
    }
}
