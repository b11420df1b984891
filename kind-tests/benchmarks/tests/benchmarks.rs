//! The benchmarks in tiny forms, so that they cannot rot. They measure nothing here: the machine
//! does other things too.

use std::process::{Command, Stdio};

use serde_json::Value;

/// A figure of a run; not a number where there is none, which fails
/// every comparison.
fn run(words: &str) -> impl Fn(&str) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_benchmarks"));
    command.args(words.split(' ')).stderr(Stdio::inherit());
    let output = command.output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{words}: {text}");
    assert!(text.contains("measured"), "no table: {text}");
    let report: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    move |figure| {
        let value = report.pointer(&format!("/figures/{figure}"));
        value.and_then(Value::as_f64).unwrap_or(f64::NAN)
    }
}

#[test]
fn healthy_shoots_cost_one_request_a_probe() {
    let figure = run("healthy --shoots=3 --nodes=4 --grace=8 --foreign-secrets=5 --seconds=6");
    let counts = ["requests", "connections", "seed_requests"].map(&figure);
    assert_eq!(counts, [1.0, 0.0, 0.0]);
    assert!(figure("probes") >= 6.0 && figure("most") > 1.0);
}

#[test]
fn a_melt_down_is_written_and_restored() {
    let figure = run("meltdown --shoots=3 --nodes=5 --grace=8");
    assert_eq!(["stale", "lost"].map(&figure), [0.0, 0.0]);
    let [first, last, bare] = ["first_level_min", "kcm_max", "bare"].map(figure);
    assert!(first > 0.0 && last >= first && bare > 0.0);
}

#[test]
fn growth_is_measured_size_by_size() {
    let figure = run("growth --sizes=2,4 --nodes=3 --grace=8 --seconds=4");
    assert!(figure("probes_4") > figure("probes_2"));
}

#[test]
fn a_weeder_and_its_start_are_measured() {
    let figure = run("weeder --shoots=4 --at-once=2 --rounds=2 --rounds-per-start=2 --seconds=3");
    let [start, quiet, early] = ["start", "quiet_p50", "early_p50"].map(&figure);
    assert!(start >= 4.0 && quiet > 0.0 && early > 0.0);
    assert_eq!(figure("refused"), 0.0);
}

#[test]
fn a_start_is_timed_on_an_empty_and_a_full_seed() {
    let figure = run("start --shoots=2 --nodes=2 --times=1");
    let [ready, ready_full, size] = ["ready", "ready_full", "size"].map(figure);
    assert!(ready > 0.0 && ready_full > 0.0 && size > 1.0);
}

#[test]
fn a_short_race_is_run_and_reported() {
    let figure = run("race --trials=1 --lanes=1 --grace=8 --seed=1 --load=1");
    let counts = ["trials", "restored", "early", "superfluous"].map(&figure);
    assert_eq!(counts, [1.0, 1.0, 0.0, 0.0]);
    assert!(figure("unknown") > 0.0 || figure("endpoints_lost") == 0.0);
    assert!(figure("load_probes") >= 1.0 && figure("raced/0/kcm_write") > 0.0);
    assert!((3.0..=100.0).contains(&figure("raced/0/nodes")));
}
