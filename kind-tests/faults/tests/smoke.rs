//! The soak in small: a few shoots, some seconds of faults. And that its oracle bites.

use std::process::Command;

use serde_json::Value;

/// Milliseconds by which a machine may be late at worst. What a later one excuses is not found, and looked for again.
const LATE: u64 = 1000;
const TRIES: usize = 3;

/// Runs a soak; whether it ended with success, its last line, and all that it said.
fn soak(words: &[&str]) -> (bool, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .arg(testbed::agent::binary().expect("it is built"))
        .args(["--real=false", "--seed=11"])
        .args(words)
        .output()
        .expect("the soak runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| line.starts_with('{')).and_then(|line| serde_json::from_str(line).ok());
    (output.status.success(), last.unwrap_or_default(), text)
}

#[test]
fn some_seconds_of_faults_leave_nothing_wrong_behind() {
    let (passed, line, text) = soak(&["--duration=18s", "--shoots=8"]);
    assert!(passed, "{text}");
    assert!(line["counts"]["cuts"].as_u64() > Some(0) && line["counts"]["writes"].as_u64() > Some(0), "{line}");
}

/// Each does something wrong, in the watchdog's name mostly, which must be found as what it is and as nothing else but what follows from it.
#[test]
fn what_is_done_wrong_is_found_as_what_it_is() {
    let (usual, nothing): (&[&str], &[&str]) = (&["--duration=18s", "--shoots=12"], &[]);
    let sabotages: [(&str, &[&str], &str, &[&str]); 8] = [
        ("scale-down", usual, "wrong_scale_downs", nothing),
        ("away", usual, "wrong_scale_downs", nothing),
        ("restore", usual, "wrong_restores", nothing),
        ("leaderless", usual, "leaderless_writes", nothing),
        ("memory", usual, "wrong_memories", nothing),
        ("deletion", usual, "wrong_deletions", nothing),
        ("leak", &["--duration=20s", "--rounds=4", "--shoots=4"], "leaks", nothing),
        // With two rounds no process is disturbed in the second one.
        ("sleep", &["--duration=24s", "--rounds=2", "--shoots=4"], "missed_outages", &["late_answers"]),
    ];
    let runs = sabotages.map(|(sabotage, words, key, consequences)| {
        std::thread::spawn(move || {
            let sabotage_arg = format!("--sabotage={sabotage}");
            let mut runs = std::iter::repeat_with(|| soak(&[words, &[&sabotage_arg]].concat())).take(TRIES);
            let tells = |(passed, line, _): &(bool, Value, String)| !passed || line["worst_lag_ms"].as_u64() < Some(LATE);
            let (passed, line, text) = runs.find(tells).expect("a machine that is less late");
            let must = line["must_be_zero"].as_object().cloned().unwrap_or_default();
            let found: Vec<&String> = must.iter().filter(|(_, count)| count.as_u64() != Some(0)).map(|(key, _)| key).collect();
            let expected = |found: &&String| *found == key || consequences.contains(&found.as_str());
            let as_what_it_is = found.iter().any(|found| *found == key) && found.iter().all(expected);
            assert!(!passed && as_what_it_is, "{sabotage}: found {found:?}, not {key}:\n{text}");
        })
    });
    for run in runs {
        run.join().expect("found");
    }
}
