//! The soak in small: a few shoots, some seconds of faults. And that its oracle bites.

use std::process::Command;

use serde_json::Value;

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

/// Does something wrong in the watchdog's name, which must be found as what it is and as nothing else but what follows from it.
fn found(words: &[&str], sabotage: &str, key: &str, consequences: &[&str]) {
    let (passed, line, text) = soak(&[words, &[&format!("--sabotage={sabotage}")]].concat());
    let must = line["must_be_zero"].as_object().cloned().unwrap_or_default();
    let found: Vec<&String> = must.iter().filter(|(_, count)| count.as_u64() != Some(0)).map(|(key, _)| key).collect();
    let expected = |found: &&String| *found == key || consequences.contains(&found.as_str());
    assert!(!passed && must[key] != 0 && found.iter().all(expected), "{sabotage}: found as {found:?}, not as {key}:\n{text}");
}

#[test]
fn what_is_done_wrong_in_the_watchdogs_name_is_found_as_what_it_is() {
    let sabotages = [
        ("scale-down", "wrong_scale_downs"),
        ("away", "wrong_scale_downs"),
        ("restore", "wrong_restores"),
        ("leaderless", "leaderless_writes"),
        ("memory", "wrong_memories"),
        ("deletion", "wrong_deletions"),
    ];
    let runs = sabotages
        .map(|(sabotage, key)| std::thread::spawn(move || found(&["--duration=18s", "--shoots=12"], sabotage, key, &[])));
    for run in runs {
        run.join().expect("found");
    }
}

#[test]
fn agents_that_use_more_at_each_rest_are_found() {
    found(&["--duration=20s", "--rounds=4", "--shoots=4"], "leak", "leaks", &[]);
}

#[test]
fn an_outage_that_nobody_answers_is_found() {
    // With two rounds no process is disturbed in the second one.
    found(&["--duration=24s", "--rounds=2", "--shoots=4"], "sleep", "missed_outages", &["late_answers"]);
}
