//! The benchmarks in tiny forms, so that they cannot rot. They measure nothing here: the machine
//! does other things too.

use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run says of a figure, or its median, by its name; not a number where there is none, which fails every
/// comparison. `kept` are the goals that this machine can keep.
fn run(words: &str, kept: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_benchmarks"));
    command.args(words.split(' ')).stderr(Stdio::inherit());
    let output = command.output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{words}: {text}");
    let report: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    for name in kept {
        assert!(text.contains(&format!("| {name} | ")), "no {name}: {text}");
        let missed = report["missed"].as_array().expect("a list");
        assert!(!missed.iter().any(|missed| missed == name), "{text}");
    }
    move |name| {
        let figure = &report["figures"][name];
        let median = figure.get("median").unwrap_or(figure);
        median.as_f64().unwrap_or(f64::NAN)
    }
}

#[test]
fn healthy_shoots_cost_one_request_a_probe() {
    let figure = run(
        "healthy --shoots=3 --nodes=4 --grace=8 --foreign-secrets=5 --seconds=6",
        &[
            "requests on the shoot per probe",
            "new connections on the shoot per probe",
            "requests on the seed per probe",
        ],
    );
    // Of three shoots, once a second each at most.
    assert!((6.0..=20.0).contains(&figure("probes")));
    assert!(figure("high-water mark of memory, MiB") > 1.0);
}

#[test]
fn a_melt_down_is_written_and_restored() {
    let kept = ["Deployments that are not as before"];
    let figure = run(
        "meltdown --shoots=3 --nodes=5 --grace=8 --age=0 --foreign-secrets=5",
        &kept,
    );
    for level in ["first level", "kube-controller-manager"] {
        let ours = figure(&format!("at 0 after its shoot's verdict, {level}, last, s"));
        let bare = figure(&format!("the same of a bare client, {level}, s"));
        assert!(ours > 0.0 && bare > 0.0, "{level}: {ours}, {bare}");
    }
}

#[test]
fn growth_is_measured_size_by_size() {
    let figure = run("growth --sizes=2,4 --nodes=3 --grace=8 --seconds=4", &[]);
    let [two, more, four] = ["2 shoots", "one more than 2", "4 shoots"]
        .map(|shoots| figure(&format!("{shoots}: memory, KiB")));
    assert!(two > 1000.0 && (two + 2.0 * more - four).abs() < 1.0);
}

#[test]
fn a_weeder_and_its_start_are_measured() {
    let start = "requests in the first 3 s, without the election's";
    let figure = run(
        "weeder --shoots=4 --at-once=2 --rounds=2 --seconds=3",
        &[start, "requests refused (429)"],
    );
    assert!(figure(start) >= 4.0 && figure("from endpoint ready to DELETE, s") > 0.0);
}

#[test]
fn a_start_is_timed_on_an_empty_and_a_full_seed() {
    let figure = run("start --shoots=2 --nodes=2 --times=1", &[]);
    for name in [
        "size of the binary, MiB",
        "from start to ready, s",
        "from start to ready on a full seed, s",
    ] {
        assert!(figure(name) > 0.0, "{name}");
    }
}

#[test]
fn a_short_race_is_run_and_reported() {
    let figure = run(
        "race --trials=1 --lanes=1 --replicas=2 --kill --grace=8 --load=1",
        &[
            "outages raced",
            "all restored",
            "writes before the verdict",
            "writes that were not due",
            "writes to shoots without an outage",
            "probes of the healthy shoots",
        ],
    );
    assert!(figure("nodes ever Unknown") > 0.0 || figure("endpoints ever not ready") == 0.0);
    assert!(figure("verdict to kube-controller-manager's write, s") > 0.0);
    assert!((3.0..=100.0).contains(&figure("nodes cut off")));
}
