//! A result as it is kept: the JSON line that its benchmark printed.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Which benchmark it is.
    pub benchmark: String,
    /// What was measured on what.
    pub what: String,
    /// When: a day, or that and a time.
    pub at: String,
    pub machine: String,
    /// What each figure is, its value, its goal, and whether that was met.
    pub rows: Vec<[String; 4]>,
    pub figures: Map<String, Value>,
}

impl Kept {
    /// Of what a benchmark printed, which ends with the JSON line.
    pub fn of_run(text: &str) -> Result<Self> {
        let line = text.lines().rfind(|line| line.starts_with('{')).context("no JSON line")?;
        Ok(serde_json::from_str(line)?)
    }

    /// The file that keeps it: one figure, row or trial a line, so that changes can be read.
    pub fn text(&self) -> Result<String> {
        Ok(lines(&serde_json::to_value(self)?, 0) + "\n")
    }

    pub fn day(&self) -> &str {
        self.at.split('T').next().unwrap_or_default()
    }

    pub fn figure(&self, key: &str) -> Option<f64> {
        self.figures.get(key)?.as_f64()
    }
}

fn lines(value: &Value, depth: usize) -> String {
    let (entries, [open, close]) = match value {
        Value::Object(map) if depth < 2 && !map.is_empty() => {
            (map.iter().map(|(key, value)| format!("{key:?}: {}", lines(value, depth + 1))).collect(), ['{', '}'])
        }
        Value::Array(items) if !items.is_empty() => (items.iter().map(Value::to_string).collect::<Vec<_>>(), ['[', ']']),
        other => return other.to_string(),
    };
    let indent = "  ".repeat(depth);
    format!("{open}\n{indent}  {}\n{indent}{close}", entries.join(&format!(",\n{indent}  ")))
}

#[cfg(test)]
mod tests {
    use super::super::{Goal, Report};
    use super::*;

    #[test]
    fn what_a_benchmark_printed_is_kept_line_by_line() {
        let mut report = Report::new("it", "on that");
        report.rows([("late", "late, in a way", 1.5, "s", Some(Goal::AtMost(1.0))), ("size", "size", 12.0, "", None)]);
        report.detail("raced", vec![serde_json::json!({"left": [1, 2]})]);
        let text = Kept::of_run(&format!("progress\n{}\n{}\n", report.table(), report.json()))
            .and_then(|kept| kept.text())
            .expect("text");
        let kept: Kept = serde_json::from_str(&text).expect("JSON");
        assert_eq!((kept.benchmark.as_str(), kept.what.as_str(), kept.figure("size")), ("it", "on that", Some(12.0)));
        assert_eq!(kept.rows, [["late, in a way", "1.50 s", "<= 1 s", "MISSED"], ["size", "12", "", ""]]);
        for line in ["    \"late\": 1.5,", "      {\"left\":[1,2]}", "    [\"size\",\"12\",\"\",\"\"]"] {
            assert!(text.lines().any(|written| written == line), "{text}");
        }
        assert!(Kept::of_run(&report.table()).is_err());
    }
}
