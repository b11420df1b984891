//! A container that stays terminated for 4 s is in backoff (D-62, D-64).

use super::*;

const HALF: Duration = Duration::from_secs(2);

#[test]
fn terminated_for_4_s_is_deleted() {
    let mut seed = TestSeed::recovered(None);
    seed.terminated("a", "1", 1);
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.skip(), TERMINATED_FOR, "nothing but time makes it due");
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(
        seed.skip(),
        WATCH_DURATION - TERMINATED_FOR,
        "the end of the window is all that is to come"
    );
}

#[test]
fn termination_counts_since_seen() {
    let mut seed = TestSeed::leading(None);
    seed.terminated("a", "1", 1);
    seed.terminated("b", "2", 1);
    assert!(seed.due().is_empty());
    assert_eq!(seed.next(), None, "without a window nobody waits");
    seed.pass(HALF);
    seed.terminated("b", "2", 2);
    seed.pass(HALF);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.skip(), HALF);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn restart_within_4_s_keeps_the_pod() {
    let mut seed = TestSeed::recovered(None);
    for restarts in 1..5 {
        seed.terminated("a", "1", restarts);
        assert!(seed.due().is_empty());
        seed.pass(TERMINATED_FOR - Duration::from_nanos(1));
        assert!(seed.due().is_empty());
        seed.pod_is_fine("a");
        seed.pass(TERMINATED_FOR);
        assert!(seed.due().is_empty());
    }
}

#[test]
fn only_another_end_restarts_the_time() {
    let mut seed = TestSeed::recovered(None);
    seed.terminated("a", "1", 1);
    seed.pass(HALF);
    seed.show(
        "a",
        DeletionCandidate {
            resource_version: "2".into(),
            ..terminated("1", &[("c", 1)], &[ETCD])
        },
    );
    seed.list_pods(&[("a", terminated("1", &[("c", 1)], &[ETCD]))]);
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), HALF);
    seed.terminated("a", "1", 2);
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), TERMINATED_FOR);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn same_name_has_its_own_time() {
    let mut seed = TestSeed::recovered(None);
    seed.terminated("a", "1", 1);
    seed.pass(HALF);
    seed.terminated("a", "2", 1);
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), TERMINATED_FOR);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn first_ended_container_counts() {
    let mut seed = TestSeed::recovered(None);
    seed.terminated("a", "1", 1);
    seed.pass(HALF);
    seed.show("a", terminated("1", &[("b", 1), ("c", 1)], &[ETCD]));
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), HALF);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn reported_meanwhile_is_believed() {
    let mut seed = TestSeed::recovered(None);
    seed.terminated("a", "1", 1);
    assert!(seed.due().is_empty());
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn restart_during_the_delete_wins() {
    let mut seed = TestSeed::leading(None);
    seed.terminated("a", "1", 1);
    seed.pass(TERMINATED_FOR);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deletes(Outcome::Changed), ["1"]);
    seed.pod_is_fine("a");
    seed.pass(TERMINATED_FOR);
    assert!(seed.due().is_empty());
    seed.terminated("a", "1", 2);
    assert!(seed.due().is_empty(), "the next end has a time of its own");
    assert_eq!(seed.skip(), TERMINATED_FOR);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn new_window_keeps_the_time() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Retry(Some(60 * SECOND))), ["1"]);
    seed.slice("s", ETCD, &[]);
    seed.terminated("a", "1", 1);
    assert_eq!(seed.deleted(), [""; 0]);
    seed.slice("s", ETCD, &["e"]);
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), TERMINATED_FOR);
    assert_eq!(seed.deletes(Outcome::Retry(None)), ["1"]);
    assert_eq!(
        seed.skip(),
        SECOND / 2,
        "its waits are those of every failure"
    );
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn time_goes_on_unseen() {
    let mut seed = TestSeed::recovered(None);
    seed.terminated("a", "1", 1);
    seed.lose_pods();
    seed.pass(TERMINATED_FOR);
    assert!(seed.due().is_empty());
    assert_eq!(
        seed.next(),
        Some(seed.now + WATCH_DURATION - TERMINATED_FOR),
        "the end of the window"
    );
    seed.list_pods(&[("a", terminated("1", &[("c", 1)], &[ETCD]))]);
    assert_eq!(seed.deleted(), ["1"]);
}
