//! What a benchmark found: a table for people, and one line of JSON for scripts, which
//! `docs/results` keeps. What each figure is, and its goal, is in `report/figures.md`.

mod spread;

use std::io::{Write, stdout};

use anyhow::{Context, Result};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use spread::Spread;

const FIGURES: &str = include_str!("report/figures.md");

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
    pub rows: Vec<[String; 4]>,
    /// A table of figures without goals: the heads of its columns, then a row for each thing that
    /// it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrix: Vec<Vec<String>>,
    pub figures: Map<String, Value>,
}

impl BenchmarkReport {
    /// Of what is measured here and now.
    pub fn new(benchmark: &str, what: String) -> Self {
        Self {
            benchmark: benchmark.into(),
            what,
            at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
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
            let [what, unit, goal] = description(&self.benchmark, key);
            self.row(key, what, value, unit, goal);
        }
    }

    /// Adds a figure whose goal depends on the run; the empty one is none.
    pub fn judge(&mut self, key: &str, value: f64, goal: &str) {
        let [what, unit, _] = description(&self.benchmark, key);
        self.row(key, what, value, unit, goal);
    }

    /// Adds median, 99th percentile and maximum of many times; the goal is for the 99th percentile.
    pub fn spread(&mut self, key: &str, values: &Spread, is_judged: bool) {
        let [what, unit, goal] = description(&self.benchmark, key);
        let median = format!("median of {}", values.values().len());
        for (part, words, share, goal) in [
            ("p50", &*median, 0.5, ""),
            ("p99", "99th percentile", 0.99, goal),
            ("max", "worst", 1.0, ""),
        ] {
            let (key, what) = (format!("{key}_{part}"), format!("{what}, {words}"));
            let goal = if is_judged { goal } else { "" };
            self.row(&key, &what, values.at(share), unit, goal);
        }
    }

    /// What was not measured is no number: nothing is said of it, and a goal for it is missed.
    fn row(&mut self, key: &str, what: &str, value: f64, unit: &str, goal: &str) {
        let met = match goal {
            "" if value.is_nan() => return,
            "" => "",
            goal if meets(value, goal) => "met",
            _ => "MISSED",
        };
        let fill = |text: &str| {
            let known = self.figures.iter();
            known.fold(text.to_owned(), |text, (key, value)| {
                text.replace(&format!("{{{key}}}"), &value.to_string())
            })
        };
        let with_unit = |text: &str| match text {
            "" => String::new(),
            text => format!("{text} {unit}").trim_end().to_owned(),
        };
        let (key, what) = (fill(key), fill(what));
        let (measured, goal) = (with_unit(&number(value)), with_unit(goal));
        self.rows.push([what, measured, goal, met.into()]);
        self.note(&key, value);
    }

    /// Adds a row to the matrix: of each column what stands for `*` in the figure's key, its head,
    /// and the value, if it is a number.
    pub fn matrix_row(&mut self, what: &str, key: &str, cells: &[(&str, &str, f64)]) {
        if self.matrix.is_empty() {
            let heads = cells.iter().map(|(_, head, _)| *head);
            let heads = [""].into_iter().chain(heads).map(str::to_owned);
            self.matrix.push(heads.collect());
        }
        let mut row = vec![what.to_owned()];
        for (part, _, value) in cells {
            row.push(number(*value));
            if !value.is_nan() {
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

    /// What is not as it should be.
    #[cfg(test)]
    pub fn missed(&self) -> Vec<&str> {
        let missed = self.rows.iter().filter(|[.., met]| met == "MISSED");
        missed.map(|[what, ..]| what.as_str()).collect()
    }

    /// Matrix and rows as Markdown tables: all rows, or these and those that missed their goal.
    pub fn tables(&self, chosen: Option<&[&str]>) -> String {
        let is_shown = |what: &str, met: &str| {
            met == "MISSED" || chosen.is_none_or(|rows| rows.contains(&what))
        };
        let mut rows = vec![["", "measured", "goal"].map(str::to_owned).into()];
        for [what, measured, goal, met] in &self.rows {
            if is_shown(what, met) {
                let met = met.replace("MISSED", "**missed**");
                let comma = if met.is_empty() { "" } else { ", " };
                rows.push(vec![
                    what.clone(),
                    measured.clone(),
                    format!("{goal}{comma}{met}"),
                ]);
            }
        }
        table(&self.matrix) + &table(&rows)
    }

    /// Prints it, as Markdown and as the JSON line.
    pub fn print(&self) -> Result<()> {
        let Self {
            benchmark, what, ..
        } = self;
        let tables = self.tables(None);
        Ok(writeln!(
            stdout(),
            "\n{benchmark}: {what}{tables}\n\n{}",
            json!(self)
        )?)
    }

    /// The file that keeps it: one figure, row or trial a line, so that changes can be read.
    pub fn text(&self) -> String {
        lines(&json!(self), 0) + "\n"
    }
}

/// Whether a figure is `<= 4`, `< 15`, `>= 20`, or to a thousandth the number that stands alone.
fn meets(value: f64, goal: &str) -> bool {
    let (sign, bound) = goal.rsplit_once(' ').unwrap_or(("", goal));
    let bound: f64 = bound.parse().unwrap_or(f64::NAN);
    match sign {
        "<=" => value <= bound,
        "<" => value < bound,
        ">=" => value >= bound,
        _ => (value - bound).abs() < 0.001,
    }
}

/// What `figures.md` says of a figure: what it is, its unit and its goal. One that is not there is
/// called by its key: no long run is to fail at its end.
fn description<'a>(benchmark: &str, key: &'a str) -> [&'a str; 3] {
    let name = benchmark.split('-').next();
    let mut sections = FIGURES.split("\n## ");
    let section = sections.find(|section| section.lines().next() == name);
    let described = section.into_iter().flat_map(str::lines).find_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, name, what, unit, goal, ..] = cells[..] else {
            return None;
        };
        (name == key).then_some([what, unit, goal])
    });
    described.unwrap_or([key, "", ""])
}

/// A Markdown table with its heads in the first row, after what stands before it; nothing of none.
fn table(rows: &[Vec<String>]) -> String {
    let Some((heads, rows)) = rows.split_first() else {
        return String::new();
    };
    let line = |cells: &Vec<String>| format!("\n| {} |", cells.join(" | "));
    let rows: String = rows.iter().map(line).collect();
    format!("\n{}\n|{}{rows}", line(heads), "---|".repeat(heads.len()))
}

fn lines(value: &Value, depth: usize) -> String {
    let (entries, [open, close]): (Vec<String>, _) = match value {
        Value::Object(map) if depth < 2 && !map.is_empty() => {
            let entry = |(key, value)| format!("{key:?}: {}", lines(value, depth + 1));
            (map.iter().map(entry).collect(), ['{', '}'])
        }
        Value::Array(items) if !items.is_empty() => {
            (items.iter().map(Value::to_string).collect(), ['[', ']'])
        }
        other => return other.to_string(),
    };
    let indent = "  ".repeat(depth);
    let entries = entries.join(&format!(",\n{indent}  "));
    format!("{open}\n{indent}  {entries}\n{indent}{close}")
}

/// Tells a person who waits what goes on, on standard error.
pub fn progress(text: impl AsRef<str>) {
    eprintln!("{} {}", Utc::now().format("%H:%M:%S"), text.as_ref());
}

/// A number as people read it: three digits that count, whole ones in full.
fn number(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => String::new(),
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
        let line = text.lines().find(|line| line.starts_with(key));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = value("/proc/meminfo", "MemTotal");
    let kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let release: Vec<&str> = release.split('.').take(2).collect();
    format!(
        "{cores} cores of {}, {:.0} GiB, Linux {}",
        value("/proc/cpuinfo", "model name"),
        kib / 1_048_576.0,
        release.join(".")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_met_missed_or_not_there() {
        let mut report = BenchmarkReport::new("growth", "on that".into());
        report.detail("from", 1.into());
        report.detail("to", 2.into());
        report.add([("memory_{from}_to_{to}", 7.0), ("cpu_flat", 15.1)]);
        report.judge("memory_flat", 15.1, "");
        for (key, goal) in [("a", "<= 1"), ("b", "< 1"), ("c", ">= 1"), ("d", "1")] {
            report.judge(key, 1.0, goal);
        }
        report.spread("none", &Spread::default(), true);
        report.judge("unmeasured", f64::NAN, "0");
        let flat = "CPU of one shoot more, in ms per minute: how far off its mean";
        assert_eq!(report.missed(), [flat, "b", "unmeasured"]);
        let table = report.tables(Some(&["memory of one shoot more, 1 to 2", "d"]));
        assert_eq!(
            table,
            format!(
                "\n\n|  | measured | goal |\n|---|---|---|\n| memory of one shoot more, 1 to 2 | 7 KiB |  |\n\
                 | {flat} | 15.1 % | <= 15 %, **missed** |\n| b | 1 | < 1, **missed** |\n| d | 1 | 1, met |\n\
                 | unmeasured |  | 0, **missed** |"
            )
        );
        let kept = BenchmarkReport::of_run(&format!("{table}\n{}\n", json!(report)));
        assert_eq!(kept.expect("a result").text(), report.text());
        let text = report.text();
        for line in ["    \"d\": 1.0,", "    [\"d\",\"1\",\"1\",\"met\"],"] {
            assert!(text.lines().any(|written| written == line), "{text}");
        }
    }
}
