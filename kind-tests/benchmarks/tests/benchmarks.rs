//! The benchmarks in tiny forms, so that they cannot rot. They measure nothing here: the machine
//! does other things too.

use std::process::{Command, Stdio};

use serde_json::Value;

/// The figures of a run on control planes of its own.
fn run(benchmark: &str, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_benchmarks"));
    command
        .arg(benchmark)
        .args(args)
        .env_remove("SEED_KUBECONFIG")
        .env_remove("SHOOT_KUBECONFIG");
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
fn figure(figures: &Value, key: &str) -> f64 {
    figures[key].as_f64().unwrap_or(f64::NAN)
}

#[test]
fn healthy_shoots_cost_one_request_a_probe_and_none_on_the_seed() {
    let figures = run(
        "healthy",
        &[
            "--shoots=3",
            "--nodes=4",
            "--grace=8",
            "--foreign-secrets=5",
            "--seconds=6",
        ],
    );
    assert_eq!(
        ["requests", "connections", "seed_requests"].map(|key| figure(&figures, key)),
        [1.0, 0.0, 0.0]
    );
    assert!(
        figure(&figures, "probes") >= 6.0 && figure(&figures, "most") > 1.0,
        "{figures}"
    );
    // So few probes may cost less than Linux counts, on either side.
    assert!(figures.get("cpu_ratio").is_some(), "{figures}");
}

#[test]
fn a_melt_down_is_written_for_all_shoots_and_all_of_it_comes_back() {
    let figures = run("meltdown", &["--shoots=3", "--nodes=5", "--grace=8"]);
    assert_eq!(
        ["stale", "lost"].map(|key| figure(&figures, key)),
        [0.0, 0.0]
    );
    let [first, last, bare] =
        ["first_level_min", "kcm_max", "bare"].map(|key| figure(&figures, key));
    assert!(first > 0.0 && last >= first && bare > 0.0, "{figures}");
}

#[test]
fn growth_is_measured_size_by_size() {
    let figures = run(
        "growth",
        &["--sizes=2,4", "--nodes=3", "--grace=8", "--seconds=4"],
    );
    assert!(
        figure(&figures, "probes_4") > figure(&figures, "probes_2"),
        "{figures}"
    );
}

#[test]
fn the_weeder_deletes_what_waits_and_its_start_is_counted() {
    let figures = run(
        "weeder",
        &[
            "--shoots=4",
            "--at-once=2",
            "--rounds=2",
            "--rounds-per-start=2",
            "--seconds=3",
        ],
    );
    let [start, quiet, early, refused] =
        ["start", "quiet_p50", "early_p50", "refused"].map(|key| figure(&figures, key));
    assert!(
        start >= 4.0 && quiet > 0.0 && early > 0.0 && refused == 0.0,
        "{figures}"
    );
}

#[test]
fn a_start_is_timed_on_an_empty_and_on_a_full_seed() {
    let figures = run("start", &["--shoots=2", "--nodes=2", "--times=1"]);
    let [ready, ready_full, size] =
        ["ready", "ready_full", "size"].map(|key| figure(&figures, key));
    assert!(ready > 0.0 && ready_full > 0.0 && size > 1.0, "{figures}");
}

#[test]
fn a_short_race_is_run_and_reported() {
    let figures = run(
        "race",
        &[
            "--trials=1",
            "--lanes=1",
            "--grace=8",
            "--seed=1",
            "--load=1",
        ],
    );
    let counts = ["trials", "restored", "early", "superfluous"].map(|key| figure(&figures, key));
    assert_eq!(counts, [1.0, 1.0, 0.0, 0.0], "{figures}");
    assert!(
        figure(&figures, "unknown") > 0.0 || figure(&figures, "endpoints_lost") == 0.0,
        "{figures}"
    );
    assert!(figure(&figures, "load_probes") >= 1.0, "{figures}");
    let trial = &figures["raced"][0];
    assert!(
        figure(trial, "kcm_write") > 0.0 && (3.0..=100.0).contains(&figure(trial, "nodes")),
        "{trial}"
    );
}
