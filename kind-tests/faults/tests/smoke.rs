//! The soak in small: a few shoots, some seconds of faults. And that it finds what only real processes
//! can do wrong.

use std::process::Command;

use serde_json::Value;

/// Milliseconds by which a machine may be late at worst. A later one may break what it must not,
/// and excuses what must be found.
const LATE: u64 = 1000;
const TRIES: usize = 3;

/// Whether a soak ended with success, its last line, and all that it said.
type SoakRun = (bool, Value, String);

/// Runs a soak, again where it is not as it should be on a machine that was late.
fn soak(words: &[&str], is_good: impl Fn(&SoakRun) -> bool) -> SoakRun {
    let mut last = run(words);
    for _ in 1..TRIES {
        if is_good(&last) || last.1["worst_lag_ms"].as_u64() < Some(LATE) {
            break;
        }
        last = run(words);
    }
    last
}

fn run(words: &[&str]) -> SoakRun {
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .arg(testbed::agent::binary().expect("it is built"))
        .arg("--seed=11")
        .args(words)
        .output()
        .expect("the soak runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let last = text
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .and_then(|line| serde_json::from_str(line).ok());
    (output.status.success(), last.unwrap_or_default(), text)
}

/// What must be zero and is not.
fn found(line: &Value) -> Vec<&str> {
    let counts = line["must_be_zero"].as_object().into_iter().flatten();
    counts
        .filter(|(_, count)| count.as_u64() != Some(0))
        .map(|(key, _)| key.as_str())
        .collect()
}

#[test]
fn some_seconds_of_faults_leave_nothing_wrong_behind() {
    let (passed, line, text) = soak(&["--duration=18s", "--shoots=8"], |(passed, ..)| *passed);
    assert!(passed, "{text}");
    assert!(
        line["counts"]["cuts"].as_u64() > Some(0) && line["counts"]["writes"].as_u64() > Some(0),
        "{line}"
    );
}

#[test]
fn a_leak_is_found() {
    let words = [
        "--duration=20s",
        "--rounds=4",
        "--shoots=4",
        "--sabotage=leak",
    ];
    let is_found = |(passed, line, _): &SoakRun| !passed && found(line) == ["leaks"];
    let run = soak(&words, is_found);
    assert!(is_found(&run), "{:?}\n{}", found(&run.1), run.2);
}
