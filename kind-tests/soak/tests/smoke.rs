//! The soak in small: a few shoots, some seconds of faults. And that its oracle bites.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The watchdog: DEPENDENCY_WATCHDOG_BIN, or the one that cargo has built beside this test.
fn watchdog() -> PathBuf {
    if let Some(path) = std::env::var_os("DEPENDENCY_WATCHDOG_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("this test has a path");
    let folder = test.parent().and_then(Path::parent).expect("it lies in target/*/deps");
    folder.join("dependency-watchdog")
}

/// Runs a soak; whether it ended with success, its last line, and all that it said.
fn soak(words: &[&str]) -> (bool, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .arg(watchdog())
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

#[test]
fn what_is_done_wrong_in_the_watchdogs_name_is_found() {
    let sabotages = [("scale-down", "wrong_scale_downs"), ("memory", "wrong_memories"), ("deletion", "wrong_deletions")];
    let runs = sabotages.map(|(sabotage, key)| {
        std::thread::spawn(move || (key, soak(&["--duration=18s", "--shoots=12", &format!("--sabotage={sabotage}")])))
    });
    for run in runs {
        let (key, (passed, line, text)) = run.join().expect("no panic");
        assert!(!passed && line["must_be_zero"][key].as_u64() > Some(0), "{key} was not found:\n{text}");
    }
}
