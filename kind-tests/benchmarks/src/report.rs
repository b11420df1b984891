//! What a benchmark found: a table for people, and one line of JSON for scripts.

use chrono::Utc;
use serde_json::{Map, Value, json};

/// A benchmark's findings. The name of a figure ends with its unit.
pub struct BenchmarkReport {
    benchmark: &'static str,
    /// What was measured on what.
    what: String,
    table: String,
    figures: Map<String, Value>,
    /// The figures that missed their goals.
    missed: Vec<String>,
}

impl BenchmarkReport {
    pub fn new(benchmark: &'static str, what: String) -> Self {
        Self {
            benchmark,
            what,
            table: String::new(),
            figures: Map::new(),
            missed: Vec::new(),
        }
    }

    /// Adds a figure without a goal.
    pub fn add(&mut self, name: &str, value: f64) {
        self.row(name, &number(value), value.into(), None);
    }

    pub fn at_most(&mut self, name: &str, value: f64, goal: f64) {
        let goal = (format!("<= {goal}"), value <= goal);
        self.row(name, &number(value), value.into(), Some(goal));
    }

    pub fn at_least(&mut self, name: &str, value: f64, goal: f64) {
        let goal = (format!(">= {goal}"), value >= goal);
        self.row(name, &number(value), value.into(), Some(goal));
    }

    /// Adds median, 99th percentile and worst of many times in seconds, if there are any; the goal
    /// is for the 99th percentile.
    pub fn times(&mut self, name: &str, times: impl IntoIterator<Item = f64>, goal: Option<f64>) {
        let mut times = Vec::from_iter(times);
        times.sort_by(f64::total_cmp);
        if times.is_empty() {
            return;
        }
        let [median, p99, worst] =
            [50, 99, 100].map(|percent| times[(times.len() * percent).div_ceil(100) - 1]);
        let measured = format!("{median:.3}, 99 %: {p99:.3}, worst: {worst:.3}");
        let value = json!({"median": median, "p99": p99, "worst": worst});
        let goal = goal.map(|goal| (format!("99 % <= {goal}"), p99 <= goal));
        self.row(name, &measured, value, goal);
    }

    fn row(&mut self, name: &str, measured: &str, value: Value, goal: Option<(String, bool)>) {
        let goal = match goal {
            None => String::new(),
            Some((goal, true)) => goal + ", met",
            Some((goal, false)) => {
                self.missed.push(name.to_owned());
                goal + ", **missed**"
            }
        };
        self.table += &format!("\n| {name} | {measured} | {goal} |");
        self.figures.insert(name.to_owned(), value);
    }

    /// Prints it, as Markdown and as the JSON line.
    pub fn print(self) {
        let Self {
            benchmark,
            what,
            table,
            figures,
            missed,
        } = self;
        let day = Utc::now().format("%F").to_string();
        let cores = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let models: Vec<_> = cores
            .lines()
            .filter_map(|line| line.strip_prefix("model name\t: "))
            .collect();
        let model = models.first().copied().unwrap_or_default();
        let machine = format!("{} cores of {model}", models.len());
        println!("\n*{what}. {day}, {machine}.*\n\n|  | measured | goal |\n|---|---|---|{table}\n");
        let report = json!({"benchmark": benchmark, "what": what, "day": day, "machine": machine, "figures": figures, "missed": missed});
        println!("{report}");
    }
}

/// Tells a person who waits what goes on, on standard error.
pub fn progress(text: impl AsRef<str>) {
    eprintln!("{} {}", Utc::now().format("%H:%M:%S"), text.as_ref());
}

fn number(value: f64) -> String {
    let digits = if value.fract() == 0.0 { 0 } else { 3 };
    format!("{value:.digits$}")
}
