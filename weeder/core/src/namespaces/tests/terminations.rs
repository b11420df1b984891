//! A container that stays terminated for 4 s is in backoff (D-62, D-64).

use super::*;

/// A pod whose container terminated after so many restarts.
fn ended(text: &str, restarts: i32) -> Pod {
    pod(text).terminated(&[("c", restarts)])
}

#[test]
fn terminated_for_4_s_is_deleted() {
    let mut seed = recovered();
    seed.shows(ended("1", 1)).waits(4.0).deletes("1");
    seed.waits(WATCH - 4.0);
}

#[test]
fn termination_counts_since_seen() {
    let mut seed = leading();
    seed.shows(ended("1", 1)).shows(ended("2", 1)).rests();
    seed.pass(2.0).shows(ended("2", 2)).pass(2.0);
    seed.ready(ETCD).deletes("1").waits(2.0).deletes("2");
}

#[test]
fn restart_within_4_s_keeps_the_pod() {
    let mut seed = recovered();
    for restarts in 1..5 {
        seed.shows(ended("1", restarts))
            .deletes("")
            .pass(3.999_999_999);
        seed.deletes("").heals("1").pass(4.0).deletes("");
    }
}

#[test]
fn only_another_end_restarts_the_time() {
    for (shown, seconds) in [
        (ended("a=1", 1).version("2"), 2.0),
        (ended("a=1", 2), 4.0),
        (ended("a=2", 1), 4.0),
        (pod("a=1").terminated(&[("b", 1), ("c", 1)]), 2.0),
        (pod("a=1").terminated(&[("b", 1)]), 4.0),
    ] {
        let mut seed = recovered();
        let uid = shown.candidate.uid.clone();
        seed.shows(ended("a=1", 1)).pass(2.0).shows(shown.clone());
        seed.lists_pods([shown]).waits(seconds).deletes(&uid);
    }
}

#[test]
fn reported_meanwhile_is_believed() {
    let mut seed = recovered();
    seed.shows(ended("1", 1))
        .deletes("")
        .crashes("1")
        .deletes("1");
}

#[test]
fn restart_during_the_delete_wins() {
    let mut seed = leading();
    seed.shows(ended("1", 1)).pass(4.0).ready(ETCD);
    seed.tries("1", Outcome::Changed)
        .heals("1")
        .pass(4.0)
        .deletes("");
    seed.shows(ended("1", 2)).waits(4.0).deletes("1");
}

#[test]
fn new_window_keeps_the_time() {
    let mut seed = recovered();
    let wait = Duration::from_secs(60);
    seed.crashes("1").tries("1", Outcome::Retry(Some(wait)));
    seed.unready(ETCD).shows(ended("1", 1)).deletes("");
    seed.ready(ETCD).waits(4.0).tries("1", Outcome::Retry(None));
    // Failures in the window before do not count.
    seed.waits(0.5).deletes("1");
}

#[test]
fn time_goes_on_unseen() {
    let mut seed = recovered();
    seed.shows(ended("1", 1))
        .pods(Change::Lost)
        .pass(4.0)
        .deletes("");
    assert_eq!(seed.next(), Some(WATCH - 4.0));
    seed.lists_pods([ended("1", 1)]).deletes("1");
}
