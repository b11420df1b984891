//! When windows open and close.

use super::*;

#[test]
fn recovery_deletes_at_once() {
    let mut seed = TestSeed::leading(None);
    seed.pod("a", "1", &[ETCD]);
    seed.pod("b", "2", &[API]);
    seed.slice("s", ETCD, &[]);
    assert!(seed.deleted().is_empty());
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1"]);
    assert!(seed.deleted().is_empty(), "once is enough");
}

#[test]
fn slice_created_ready_is_a_recovery() {
    let mut seed = TestSeed::recovered(None);
    seed.slice("t", API, &[]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
}

#[test]
fn open_window_counts_crashes() {
    let mut seed = TestSeed::recovered(None);
    assert!(seed.deleted().is_empty());
    seed.pass(WATCH_DURATION - SECOND);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.pass(SECOND);
    seed.pod("b", "2", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn unready_service_closes_its_window() {
    let mut seed = TestSeed::recovered(None);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.pass(WATCH_DURATION - SECOND);
    seed.slice("s", ETCD, &[]);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.events(), [(ETCD, NOT_READY)]);
    seed.pass(SECOND);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    assert_eq!(seed.skip(), WATCH_DURATION);
    assert_eq!(seed.events(), [(ETCD, OVER)]);
}

#[test]
fn other_endpoints_open_nothing() {
    let mut seed = TestSeed::recovered(None);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.slice("s", ETCD, &["e", "f"]);
    seed.slice("s", ETCD, &["f"]);
    seed.slice("t", ETCD, &["g"]);
    assert!(seed.events().is_empty());
}

#[test]
fn ready_service_opens_soon() {
    let mut seed = TestSeed::waiting(None);
    seed.lead();
    seed.list_slices(&[("s", slice(ETCD, &["e"])), ("t", slice(API, &[]))]);
    seed.list_pods(&[]);
    seed.pod("a", "1", &[ETCD, API]);
    assert!(seed.deleted().is_empty(), "the first windows are spread");
    let spread = seed.skip();
    assert!(spread <= 30 * SECOND);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED_AT_START)]);
    assert_eq!(seed.skip(), WATCH_DURATION);
    assert_eq!(seed.events(), [(ETCD, OVER)]);
    assert_eq!(seed.next(), None);
}

#[test]
fn early_recovery_opens_at_once() {
    let mut seed = TestSeed::waiting(None);
    seed.lead();
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert!(seed.events().is_empty());
    seed.slice("s", ETCD, &[]);
    assert!(seed.events().is_empty());
    assert_eq!(seed.next(), None);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
}

#[test]
fn only_a_leader_opens_windows() {
    let mut seed = TestSeed::waiting(None);
    seed.list_slices(&[("s", slice(ETCD, &[]))]);
    seed.list_pods(&[]);
    seed.pod("a", "1", &[ETCD]);
    seed.slice("s", ETCD, &["e"]);
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.next(), None);
    seed.pass(WATCH_DURATION);
    seed.lead();
    assert!(seed.deleted().is_empty(), "the first windows are spread");
    seed.skip();
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED_AT_START)]);
}

#[test]
fn new_endpoints_open_a_window() {
    let mut seed = TestSeed::leading(None);
    seed.slice("one/s", ETCD, &["e"]);
    seed.slice("two/s", ETCD, &["f"]);
    seed.slice("three/s", ETCD, &[]);
    assert_eq!(seed.events().len(), 2);
    seed.pass(WATCH_DURATION);
    assert_eq!(seed.events().len(), 2);
    seed.pod("one/a", "1", &[ETCD]);
    seed.pod("two/a", "2", &[ETCD]);
    seed.pod("three/a", "3", &[ETCD]);
    seed.list_slices(&[
        ("one/s", slice(ETCD, &["e"])),
        ("two/s", slice(ETCD, &["g"])),
        ("three/s", slice(ETCD, &["h"])),
    ]);
    let mut deleted = seed.deleted();
    deleted.sort();
    assert_eq!(deleted, ["2", "3"]);
}

#[test]
fn vanished_slices_close_their_window() {
    let mut seed = TestSeed::recovered(None);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.list_slices(&[]);
    assert_eq!(seed.events(), [(ETCD, NOT_READY)]);
    assert!(seed.is_empty());
}

#[test]
fn changed_endpoints_renew_the_window() {
    let mut seed = TestSeed::recovered(Some(1));
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.pod("b", "2", &[ETCD]);
    assert!(seed.deleted().is_empty());
    seed.list_slices(&[("s", slice(ETCD, &["f"]))]);
    assert_eq!(seed.deleted(), ["2"]);
    assert_eq!(
        seed.events(),
        [
            (ETCD, OPENED),
            (ETCD, WindowChange::Closed(CloseReason::Renewed)),
            (ETCD, OPENED)
        ]
    );
}

#[test]
fn all_is_seen_from_both_lists_on() {
    let mut seed = TestSeed::waiting(None);
    assert!(!seed.namespaces.observes());
    seed.list_slices(&[]);
    assert!(!seed.namespaces.observes());
    seed.list_pods(&[]);
    assert!(seed.namespaces.observes());
    seed.lose_slices();
    assert!(!seed.namespaces.observes());
    seed.list_slices(&[]);
    assert!(seed.namespaces.observes());
}

#[test]
fn flapping_service_leaves_nothing() {
    let mut seed = TestSeed::leading(None);
    for _ in 0..1000 {
        seed.slice("s", ETCD, &["e"]);
        seed.pod("a", "1", &[ETCD]);
        seed.deletes(Outcome::Changed);
        seed.slice("s", ETCD, &[]);
        seed.pod_is_fine("a");
        seed.due();
        seed.pass(SECOND / 10);
    }
    seed.remove_slice("s");
    seed.due();
    assert!(seed.is_empty());
    assert_eq!(seed.next(), None);
}

#[test]
fn unknown_objects_leave_nothing() {
    let mut seed = TestSeed::leading(None);
    seed.remove_slice("s");
    seed.pod_is_fine("a");
    assert!(seed.events().is_empty());
    assert!(seed.is_empty());
}
