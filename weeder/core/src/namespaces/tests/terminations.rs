//! A container that stays terminated for 4 s is in backoff (D-62, D-64).

use super::*;

const HALF: Duration = Duration::from_secs(2);

#[test]
fn a_pod_is_deleted_when_its_container_has_been_terminated_for_four_seconds() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
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
fn the_time_begins_when_the_termination_is_first_seen_and_not_with_the_window() {
    let mut seed = TestSeed::leading(None);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
    seed.show("b", terminated("2", &[("c", 1)], &[ETCD]));
    assert!(seed.due().is_empty());
    assert_eq!(seed.next(), None, "without a window nobody waits");
    seed.pass(HALF);
    seed.show("b", terminated("2", &[("c", 2)], &[ETCD]));
    seed.pass(HALF);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.skip(), HALF);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn a_container_that_is_restarted_within_four_seconds_keeps_its_pod() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    for restarts in 1..5 {
        seed.show("a", terminated("1", &[("c", restarts)], &[ETCD]));
        assert!(seed.due().is_empty());
        seed.pass(TERMINATED_FOR - Duration::from_nanos(1));
        assert!(seed.due().is_empty());
        seed.pod_is_fine("a");
        seed.pass(TERMINATED_FOR);
        assert!(seed.due().is_empty());
    }
}

#[test]
fn another_change_of_the_pod_does_not_begin_the_time_again_and_another_end_does() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
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
    seed.show("a", terminated("1", &[("c", 2)], &[ETCD]));
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), TERMINATED_FOR);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn another_pod_of_the_same_name_has_a_time_of_its_own() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
    seed.pass(HALF);
    seed.show("a", terminated("2", &[("c", 1)], &[ETCD]));
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), TERMINATED_FOR);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn of_several_containers_the_one_that_ended_first_counts() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
    seed.pass(HALF);
    seed.show("a", terminated("1", &[("b", 1), ("c", 1)], &[ETCD]));
    assert!(seed.due().is_empty());
    assert_eq!(seed.skip(), HALF);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn a_crash_loop_that_is_reported_meanwhile_is_believed_at_once() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
    assert!(seed.due().is_empty());
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn a_kubelet_that_restarts_the_container_while_the_delete_is_under_way_wins() {
    let mut seed = TestSeed::leading(None);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
    seed.pass(TERMINATED_FOR);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deletes(Outcome::Changed), ["1"]);
    seed.pod_is_fine("a");
    seed.pass(TERMINATED_FOR);
    assert!(seed.due().is_empty());
    seed.show("a", terminated("1", &[("c", 2)], &[ETCD]));
    assert!(seed.due().is_empty(), "the next end has a time of its own");
    assert_eq!(seed.skip(), TERMINATED_FOR);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn a_new_window_ends_the_wait_after_a_failure_and_not_the_time() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Retry(Some(60 * SECOND))), ["1"]);
    seed.slice("s", ETCD, &[]);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
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
fn nothing_is_due_while_pods_are_not_seen_and_the_time_goes_on() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
    seed.namespaces.apply_pods(Change::Lost, seed.now);
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
