//! The race: one short outage beside a healthy shoot.

mod smoke;

use smoke::{figure, run};

#[test]
fn a_short_race_is_run_and_reported() {
    let figures = run("race", &["--trials=1", "--lanes=1", "--grace=8", "--seed=1", "--load=1"]);
    let counts = ["trials", "restored", "early", "superfluous"].map(|key| figure(&figures, key));
    assert_eq!(counts, [1.0, 1.0, 0.0, 0.0], "{figures}");
    assert!(figure(&figures, "load_probes") >= 1.0, "{figures}");
    let trial = &figures["raced"][0];
    assert!(figure(trial, "kcm_write") > 0.0 && (3.0..=100.0).contains(&figure(trial, "nodes")), "{trial}");
}
