//! What a benchmark found: a table for people, and one line of JSON for scripts, which
//! `docs/results` keeps. What each figure is, and its goal, is in `report/figures.md`.

mod spread;
pub mod tables;

use std::io::{Write, stdout};

use anyhow::{Context, Result};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use spread::Spread;

const FIGURES: &str = include_str!("report/figures.md");

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
    /// This, to a thousandth.
    Exactly(f64),
}

impl Goal {
    /// As `figures.md` writes it.
    fn parse(text: &str) -> Option<Self> {
        let (sign, bound) = text.rsplit_once(' ').unwrap_or(("", text));
        let goal = match sign {
            "<=" => Self::AtMost,
            "<" => Self::Below,
            ">=" => Self::AtLeast,
            _ => Self::Exactly,
        };
        bound.parse().ok().map(goal)
    }

    /// How it is written, and whether a figure is so.
    fn judge(self, value: f64) -> (String, bool) {
        match self {
            Self::AtMost(bound) => (format!("<= {}", number(bound)), value <= bound),
            Self::Below(bound) => (format!("< {}", number(bound)), value < bound),
            Self::AtLeast(bound) => (format!(">= {}", number(bound)), value >= bound),
            Self::Exactly(wanted) => (number(wanted), (value - wanted).abs() < 0.001),
        }
    }
}

/// A benchmark's findings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchmarkReport {
    /// Which benchmark it is.
    pub benchmark: String,
    /// What was measured on what.
    pub what: String,
    /// When: a day, or that and a time.
    pub at: String,
    pub machine: String,
    /// What each figure is, its value, its goal, and whether that was met.
    rows: Vec<[String; 4]>,
    /// A table of figures without goals: the heads of its columns, then a row for each thing that
    /// it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrix: Vec<Vec<String>>,
    pub figures: Map<String, Value>,
}

impl BenchmarkReport {
    /// Of what is measured here and now.
    pub fn new(benchmark: &str, what: String) -> Self {
        let at = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        Self {
            benchmark: benchmark.into(),
            what,
            at,
            machine: machine(),
            rows: Vec::new(),
            matrix: Vec::new(),
            figures: Map::new(),
        }
    }

    /// Of what a benchmark printed, which ends with the JSON line.
    pub fn of_run(text: &str) -> Result<Self> {
        let line = text.lines().rfind(|line| line.starts_with('{'));
        Ok(serde_json::from_str(line.context("no JSON line")?)?)
    }

    /// Adds figures to table and JSON line, each with the goal that it always has.
    pub fn add<const N: usize>(&mut self, figures: [(&str, f64); N]) {
        for (key, value) in figures {
            let [.., goal] = description(&self.benchmark, key);
            self.judge(key, value, Goal::parse(goal));
        }
    }

    /// Adds a figure whose goal depends on the run.
    pub fn judge(&mut self, key: &str, value: f64, goal: Option<Goal>) {
        let [what, unit, _] = description(&self.benchmark, key);
        self.row(key, what, value, unit, goal);
    }

    /// What was not measured is no number: nothing is said of it, and a goal for it is missed.
    fn row(&mut self, key: &str, what: &str, value: f64, unit: &str, goal: Option<Goal>) {
        if value.is_nan() && goal.is_none() {
            return;
        }
        let with_unit = |number: String| format!("{number} {unit}").trim_end().to_owned();
        let (goal, met) = match goal.map(|goal| goal.judge(value)) {
            None => (String::new(), ""),
            Some((goal, is_met)) => (with_unit(goal), if is_met { "met" } else { "MISSED" }),
        };
        let fill = |text: &str| {
            let known = self.figures.iter();
            known.fold(text.to_owned(), |text, (key, value)| {
                text.replace(&format!("{{{key}}}"), &value.to_string())
            })
        };
        let (key, what) = (fill(key), fill(what));
        self.rows
            .push([what, with_unit(number(value)), goal, met.into()]);
        self.note(&key, value);
    }

    /// Adds median, 99th percentile and maximum of many times; the goal is for the 99th percentile.
    pub fn spread(&mut self, key: &str, values: &Spread, is_judged: bool) {
        let [what, unit, goal] = description(&self.benchmark, key);
        let goal = Goal::parse(goal).filter(|_| is_judged);
        let count = values.values().len();
        for (part, words, share, goal) in [
            ("p50", &*format!("median of {count}"), 0.5, None),
            ("p99", "99th percentile", 0.99, goal),
            ("max", "worst", 1.0, None),
        ] {
            let (key, what) = (format!("{key}_{part}"), format!("{what}, {words}"));
            self.row(&key, &what, values.at(share), unit, goal);
        }
    }

    /// Adds a row to the matrix: of each column what stands for `*` in the figure's key, its head,
    /// and the value, if it is a number.
    pub fn matrix_row(&mut self, what: &str, key: &str, cells: &[(&str, &str, f64)]) {
        if self.matrix.is_empty() {
            let heads = cells.iter().map(|(_, head, _)| (*head).to_owned());
            self.matrix
                .push([String::new()].into_iter().chain(heads).collect());
        }
        let mut row = vec![what.to_owned()];
        for (part, _, value) in cells {
            if value.is_nan() {
                row.push(String::new());
            } else {
                row.push(number(*value));
                self.note(&key.replace('*', part), *value);
            }
        }
        self.matrix.push(row);
    }

    /// Adds a figure to the JSON line, to a millionth.
    fn note(&mut self, key: &str, value: f64) {
        self.detail(key, json!((value * 1e6).round() / 1e6));
    }

    /// Adds what only the JSON line tells, and what descriptions name in braces.
    pub fn detail(&mut self, key: &str, value: Value) {
        self.figures.insert(key.into(), value);
    }

    pub fn figure(&self, key: &str) -> Option<f64> {
        self.figures.get(key)?.as_f64()
    }

    /// What is not as it should be.
    pub fn missed(&self) -> Vec<&str> {
        self.rows
            .iter()
            .filter(|[.., met]| met == "MISSED")
            .map(|[what, ..]| what.as_str())
            .collect()
    }

    pub fn day(&self) -> &str {
        self.at.split('T').next().unwrap_or_default()
    }

    /// Prints it, as Markdown and as the JSON line.
    pub fn print(&self) -> Result<()> {
        Ok(writeln!(
            stdout(),
            "\n{}: {}{}\n\n{}",
            self.benchmark,
            self.what,
            tables::of(self),
            json!(self)
        )?)
    }

    /// The file that keeps it: one figure, row or trial a line, so that changes can be read.
    pub fn text(&self) -> String {
        lines(&json!(self), 0) + "\n"
    }
}

/// What `figures.md` says of a figure: what it is, its unit and its goal. One that is not there is
/// called by its key: no long run is to fail at its end.
fn description<'a>(benchmark: &str, key: &'a str) -> [&'a str; 3] {
    let name = benchmark.split('-').next();
    let mut sections = FIGURES.split("\n## ");
    let section = sections.find(|section| section.lines().next() == name);
    let mut rows = section.into_iter().flat_map(rows);
    rows.find_map(|[name, rest @ ..]| (name == key).then_some(rest))
        .unwrap_or([key, "", ""])
}

fn rows(section: &'static str) -> impl Iterator<Item = [&'static str; 4]> {
    section.lines().filter_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        cells.get(1..5)?.try_into().ok()
    })
}

fn lines(value: &Value, depth: usize) -> String {
    let (entries, [open, close]) = match value {
        Value::Object(map) if depth < 2 && !map.is_empty() => (
            map.iter()
                .map(|(key, value)| format!("{key:?}: {}", lines(value, depth + 1)))
                .collect(),
            ['{', '}'],
        ),
        Value::Array(items) if !items.is_empty() => (
            items.iter().map(Value::to_string).collect::<Vec<_>>(),
            ['[', ']'],
        ),
        other => return other.to_string(),
    };
    let indent = "  ".repeat(depth);
    format!(
        "{open}\n{indent}  {}\n{indent}{close}",
        entries.join(&format!(",\n{indent}  "))
    )
}

/// Tells a person who waits what goes on, on standard error.
pub fn progress(text: impl AsRef<str>) {
    eprintln!("{} {}", Utc::now().format("%H:%M:%S"), text.as_ref());
}

/// A number as people read it: three digits that count, whole ones in full.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// What it was measured on.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let value = |path: &str, key: &str| {
        let text = read(path);
        let line = text
            .lines()
            .find(|line| line.starts_with(key))
            .and_then(|line| line.split_once(':'));
        line.map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = value("/proc/meminfo", "MemTotal")
        .trim_end_matches(" kB")
        .parse()
        .unwrap_or(0.0)
        / 1_048_576.0;
    let release = read("/proc/sys/kernel/osrelease")
        .split('.')
        .take(2)
        .collect::<Vec<_>>()
        .join(".");
    format!(
        "{cores} cores of {}, {memory:.0} GiB, Linux {release}",
        value("/proc/cpuinfo", "model name")
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_was_not_measured_is_not_there_and_meets_no_goal() {
        let mut report = BenchmarkReport::new("race-control", "on that".into());
        report.spread("kcm_exit", &Spread::default(), true);
        report.spread("first_write", &Spread::default(), true);
        report.spread("lowered", &Spread::default(), false);
        assert_eq!(report.missed(), ["verdict to first write, 99th percentile"]);
        assert_eq!(json!(report)["figures"], json!({"first_write_p99": null}));
    }

    #[test]
    fn what_a_benchmark_printed_says_which_goals_were_missed_and_is_kept_line_by_line() {
        let mut report = BenchmarkReport::new("it", "on that".into());
        let goal = Some(Goal::AtMost(1.0));
        report.row("bad", "bad, in a way", 1.5, "s", goal);
        report.row("good", "good", 1.0, "s", goal);
        report.row("size", "size", 12.0, "", None);
        report.detail("raced", json!([{"left": [1, 2]}]));
        let table = tables::of(&report);
        assert!(
            table.contains(
                "| bad, in a way | 1.50 s | <= 1 s, **missed** |\n| good | 1 s | <= 1 s, met |"
            ),
            "{table}"
        );
        let text = BenchmarkReport::of_run(&format!("progress\n{table}\n{}\n", json!(report)))
            .expect("a result")
            .text();
        let kept: BenchmarkReport = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (
                kept.benchmark.as_str(),
                kept.what.as_str(),
                kept.figure("size")
            ),
            ("it", "on that", Some(12.0))
        );
        assert_eq!(kept.missed(), ["bad, in a way"]);
        for line in [
            "    \"bad\": 1.5,",
            "      {\"left\":[1,2]}",
            "    [\"size\",\"12\",\"\",\"\"]",
        ] {
            assert!(text.lines().any(|written| written == line), "{text}");
        }
        assert!(BenchmarkReport::of_run(&table).is_err());
    }

    #[test]
    fn every_kept_figure_is_described_as_it_was_and_every_goal_can_be_read() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let described: Vec<[&str; 4]> = rows(FIGURES).collect();
        // What is told of a core's work comes from the prober's own benchmark.
        let results = crate::results::read_all(&docs).expect("results");
        for (name, result) in results.iter().filter(|(name, _)| *name != "core") {
            for [what, ..] in &result.rows {
                let is_it = |[_, words, ..]: &[&str; 4]| {
                    let (begin, rest) = words.split_once('{').unwrap_or((words, ""));
                    let end = rest.rsplit('}').next().unwrap_or_default();
                    what.starts_with(begin) && what.contains(end)
                };
                assert!(described.iter().any(is_it), "{name}: {what}");
            }
        }
        for [key, _, _, goal] in described {
            let is_head = ["key", "---"].contains(&key);
            assert!(
                is_head || goal.is_empty() || Goal::parse(goal).is_some(),
                "{key}: {goal}"
            );
        }
    }

    #[test]
    fn words_in_braces_are_filled_in() {
        let mut report = BenchmarkReport::new("growth", "on that".into());
        for (from, to) in [(1, 2), (2, 3)] {
            report.detail("from", from.into());
            report.detail("to", to.into());
            report.add([("memory_{from}_to_{to}", 7.0)]);
        }
        assert_eq!(report.figure("memory_2_to_3"), Some(7.0));
        assert_eq!(report.rows[0][0], "memory of one shoot more, 1 to 2");
    }
}
