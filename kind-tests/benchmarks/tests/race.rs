//! The race's smoke run: one short outage, so that the benchmark cannot rot. It measures nothing.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_race_is_run_and_reported() {
    let output = Command::new(env!("CARGO_BIN_EXE_benchmarks"))
        .args(["race", "--trials=1", "--lanes=1", "--grace=8", "--seed=1"])
        .env_remove("SEED_KUBECONFIG")
        .env_remove("SHOOT_KUBECONFIG")
        .output()
        .expect("the benchmark starts");
    let (told, progress) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{progress}");
    let json: Value = serde_json::from_str(told.lines().last().unwrap_or_default()).expect("the last line is JSON");
    let figures = &json["figures"];
    assert_eq!((&figures["trials"], &figures["restored"]), (&1.0.into(), &1.0.into()), "{told}\n{progress}");
    assert_eq!((&figures["early"], &figures["superfluous"]), (&0.0.into(), &0.0.into()), "{told}\n{progress}");
    let trial = &figures["raced"][0];
    assert!(trial["kcm_write"].as_f64().is_some_and(|late| late > 0.0), "{trial}");
    assert!(trial["nodes"].as_u64().is_some_and(|nodes| (3..=100).contains(&nodes)), "{trial}");
}
