//! The benchmarks in tiny forms, so that they cannot rot. They measure nothing here: the machine
//! does other things too.

use std::process::{Command, Stdio};

/// Runs a benchmark and returns what its table says of a figure, or its median, by its name; no
/// figure is not a number, which fails every comparison. `kept` are the goals that this machine can
/// keep.
fn run(words: &str, kept: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_benchmarks"));
    command.args(words.split(' ')).stderr(Stdio::inherit());
    let output = command.output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{words}: {text}");
    let row = |text: &str, name: &str| {
        let row = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| {name} | ")));
        row.unwrap_or_default().to_owned()
    };
    for name in kept {
        assert!(row(&text, name).ends_with(", met |"), "{name}: {text}");
    }
    move |name| {
        let row = row(&text, name);
        let median = row.split([' ', ',']).next();
        median
            .and_then(|median| median.parse().ok())
            .unwrap_or(f64::NAN)
    }
}

#[test]
fn healthy_shoots_cost_one_request_a_probe() {
    let figure = run(
        "healthy --shoots=3 --nodes=4 --grace=8 --seconds=6",
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
    let figure = run("meltdown --shoots=3 --nodes=5 --grace=8 --age=0", &kept);
    for time in [
        "at 0 after its shoot's verdict, first level, last, s",
        "at 0 after its shoot's verdict, kube-controller-manager, last, s",
        "the same of a bare client, s",
    ] {
        assert!(figure(time) > 0.0, "{time}");
    }
}

#[test]
fn growth_is_measured_size_by_size() {
    let figure = run("growth --shoots=20 --nodes=3 --grace=8 --seconds=4", &[]);
    for shoots in [1, 20] {
        assert!(figure(&format!("{shoots} shoots: memory, KiB")) > 1000.0);
    }
}

#[test]
fn a_weeder_and_its_start_are_measured() {
    let start = "requests in the first 3 s, without the election's";
    let figure = run(
        "weeder --shoots=4 --seconds=3",
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
        "race --trials=1 --kill --grace=8",
        &[
            "outages raced",
            "all restored",
            "writes before the verdict",
            "writes that were not due",
        ],
    );
    assert!(figure("nodes ever Unknown") > 0.0 || figure("endpoints ever not ready") == 0.0);
    assert!(figure("verdict to kube-controller-manager's write, s") > 0.0);
    assert!((3.0..=100.0).contains(&figure("nodes cut off")));
}
