//! The benchmarks of load in tiny forms, so that they cannot rot. They measure nothing here: the machine does other things too.

use std::process::{Command, Stdio};

use serde_json::Value;

fn run(benchmark: &str, args: &[&str]) -> Value {
    let program = env!("CARGO_BIN_EXE_benchmarks");
    let output = Command::new(program).arg(benchmark).args(args).stderr(Stdio::inherit()).output().expect("it runs");
    assert!(output.status.success(), "{benchmark} failed");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("measured"), "no table: {text}");
    let report: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(report["benchmark"], benchmark);
    assert!(!report["machine"].as_str().expect("a machine").is_empty());
    report
}

fn figure(report: &Value, key: &str) -> f64 {
    let figure = report["figures"][key].as_f64();
    assert!(figure.is_some(), "no {key} in {report}");
    figure.expect("just asserted")
}

#[test]
fn healthy_shoots_cost_one_request_a_probe_and_none_on_the_seed() {
    let report = run("healthy", &["--shoots=3", "--nodes=4", "--grace=8", "--foreign-secrets=5", "--seconds=6"]);
    assert_eq!(["requests", "connections", "seed_requests"].map(|key| figure(&report, key)), [1.0, 0.0, 0.0]);
    assert!(figure(&report, "probes") >= 6.0 && figure(&report, "most") > 1.0, "{report}");
    // So few probes may cost less than Linux counts, on either side.
    assert!(report["figures"].get("cpu_ratio").is_some(), "{report}");
}

#[test]
fn a_melt_down_is_written_for_all_shoots_and_all_of_it_comes_back() {
    let report = run("meltdown", &["--shoots=3", "--nodes=5", "--grace=8"]);
    assert_eq!(["stale", "lost"].map(|key| figure(&report, key)), [0.0, 0.0]);
    assert!(
        figure(&report, "first_level_min") > 0.0 && figure(&report, "kcm_max") >= figure(&report, "first_level_min"),
        "{report}"
    );
    assert!(figure(&report, "bare") > 0.0, "{report}");
}

#[test]
fn growth_is_measured_size_by_size() {
    let report = run("growth", &["--sizes=2,4", "--nodes=3", "--grace=8", "--seconds=4"]);
    assert!(figure(&report, "probes_4") > figure(&report, "probes_2"), "{report}");
}

#[test]
fn the_weeder_deletes_what_waits_and_its_start_is_counted() {
    let report = run("weeder", &["--shoots=4", "--at-once=2", "--rounds=2", "--rounds-per-start=2", "--seconds=3"]);
    assert!(
        figure(&report, "start") >= 4.0 && figure(&report, "quiet_p50") > 0.0 && figure(&report, "early_p50") > 0.0,
        "{report}"
    );
    assert_eq!(figure(&report, "refused"), 0.0);
}

#[test]
fn a_start_is_timed_on_an_empty_and_on_a_full_seed() {
    let report = run("start", &["--shoots=2", "--nodes=2", "--times=1"]);
    assert!(figure(&report, "ready") > 0.0 && figure(&report, "ready_full") > 0.0 && figure(&report, "size") > 1.0, "{report}");
}
