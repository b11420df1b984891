//! A benchmark's findings, as a table for people.

use chrono::Utc;

/// A benchmark's findings. The name of a figure ends with its unit.
#[derive(Default)]
pub struct BenchmarkReport {
    table: String,
}

impl BenchmarkReport {
    /// Adds a figure without a goal.
    pub fn add(&mut self, name: &str, value: f64) {
        self.row(name, &number(value), None);
    }

    pub fn at_most(&mut self, name: &str, value: f64, goal: f64) {
        let goal = (format!("<= {goal}"), value <= goal);
        self.row(name, &number(value), Some(goal));
    }

    pub fn at_least(&mut self, name: &str, value: f64, goal: f64) {
        let goal = (format!(">= {goal}"), value >= goal);
        self.row(name, &number(value), Some(goal));
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
        let goal = goal.map(|goal| (format!("99 % <= {goal}"), p99 <= goal));
        self.row(name, &measured, goal);
    }

    fn row(&mut self, name: &str, measured: &str, goal: Option<(String, bool)>) {
        let goal = match goal {
            None => String::new(),
            Some((goal, true)) => goal + ", met",
            Some((goal, false)) => goal + ", **missed**",
        };
        self.table += &format!("\n| {name} | {measured} | {goal} |");
    }

    /// Prints it as Markdown, below what was measured, when and on what machine.
    pub fn print(self, what: &str) {
        let day = Utc::now().format("%F");
        let cores = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let models = cores
            .lines()
            .filter_map(|line| line.strip_prefix("model name\t: "));
        let models = Vec::from_iter(models);
        let model = models.first().copied().unwrap_or_default();
        let (count, table) = (models.len(), self.table);
        println!(
            "\n*{what}. {day}, {count} cores of {model}.*\n\n|  | measured | goal |\n|---|---|---|{table}\n"
        );
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
