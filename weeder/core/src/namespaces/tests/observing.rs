//! Nothing is deleted on unobserved state.

use super::*;

#[test]
fn pods_that_were_crash_looping_before_their_watch_broke_are_not_deleted_until_they_are_listed_again()
 {
    let mut seed = TestSeed::leading(None);
    seed.pod("a", "1", &[ETCD]);
    seed.pod("b", "2", &[ETCD]);
    seed.slice("s", ETCD, &[]);
    seed.namespaces.apply_pods(Change::Lost, seed.now);
    seed.namespaces.apply_slices(Change::Lost, seed.now);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert_eq!(
        seed.events(),
        [(ETCD, OPENED)],
        "a recovery is one, whoever is there to have use of it"
    );
    seed.pass(SECOND);
    seed.list_pods(&[("b", candidate("2", "owner", &[ETCD]))]);
    assert_eq!(seed.deleted(), ["2"], "the other one is well again");
}

#[test]
fn an_open_window_deletes_nothing_while_nobody_can_say_whether_its_service_is_ready() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.namespaces.apply_slices(Change::Lost, seed.now);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.list_slices(&[("s", slice(ETCD, &[]))]);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Closed(CloseReason::NotReady))]
    );
}

#[test]
fn a_window_keeps_its_time_while_nothing_is_seen_and_goes_on_afterwards() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.namespaces.apply_slices(Change::Lost, seed.now);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.pass(WATCH_DURATION - SECOND);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.namespaces.apply_slices(Change::Lost, seed.now);
    assert_eq!(seed.skip(), SECOND);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Closed(CloseReason::Over))]
    );
}

#[test]
fn a_retry_waits_for_sight_without_turning_in_circles() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Retry(None)), ["1"]);
    seed.namespaces.apply_pods(Change::Lost, seed.now);
    seed.pass(20 * SECOND);
    assert!(seed.due().is_empty());
    assert_eq!(
        seed.next(),
        Some(seed.now + WATCH_DURATION - 20 * SECOND),
        "the end of the window"
    );
    seed.list_pods(&[("a", candidate("1", "owner", &[ETCD]))]);
    assert_eq!(seed.deleted(), ["1"]);
}
