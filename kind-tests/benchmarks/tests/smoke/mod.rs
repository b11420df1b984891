//! The benchmarks in tiny forms, so that they cannot rot. They measure nothing here: the machine does other things too.

use std::process::{Command, Stdio};

use serde_json::Value;

/// The figures of a run on control planes of its own.
pub fn run(benchmark: &str, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_benchmarks"));
    command.arg(benchmark).args(args).env_remove("SEED_KUBECONFIG").env_remove("SHOOT_KUBECONFIG");
    let output = command.stderr(Stdio::inherit()).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{benchmark} failed: {text}");
    assert!(text.contains("measured"), "no table: {text}");
    let report: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(report["benchmark"], benchmark);
    assert!(!report["machine"].as_str().expect("a machine").is_empty());
    report["figures"].clone()
}

/// Not a number where there is none, which fails every comparison.
pub fn figure(figures: &Value, key: &str) -> f64 {
    figures[key].as_f64().unwrap_or(f64::NAN)
}
