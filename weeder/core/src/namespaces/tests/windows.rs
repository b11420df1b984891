//! When windows open and close.

use super::*;

#[test]
fn a_recovery_deletes_at_once_what_waited_for_it() {
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
fn a_slice_created_ready_is_a_recovery_and_one_created_not_ready_is_none() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.slice("t", API, &[]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
}

#[test]
fn a_pod_that_crashes_while_the_window_is_open_is_deleted_and_one_that_crashes_later_is_not() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    assert!(seed.deleted().is_empty());
    seed.pass(WATCH_DURATION - SECOND);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.pass(SECOND);
    seed.pod("b", "2", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn the_window_closes_when_the_service_stops_being_ready_and_the_next_recovery_opens_a_full_one() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.pass(WATCH_DURATION - SECOND);
    seed.slice("s", ETCD, &[]);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Closed(CloseReason::NotReady))]
    );
    seed.pass(SECOND);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    assert_eq!(seed.skip(), WATCH_DURATION);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Closed(CloseReason::Over))]
    );
}

#[test]
fn a_service_that_stays_ready_opens_nothing_whatever_its_endpoints_do() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.slice("s", ETCD, &["e", "f"]);
    seed.slice("s", ETCD, &["f"]);
    seed.slice("t", ETCD, &["g"]);
    assert!(seed.events().is_empty());
}

#[test]
fn a_ready_service_opens_one_window_soon_after_the_start() {
    let mut seed = TestSeed::waiting(None);
    seed.namespaces.lead(seed.now);
    seed.list_slices(&[("s", slice(ETCD, &["e"])), ("t", slice(API, &[]))]);
    seed.list_pods(&[]);
    seed.pod("a", "1", &[ETCD, API]);
    assert!(seed.deleted().is_empty(), "the first windows are spread");
    let spread = seed.skip();
    assert!(spread <= 30 * SECOND);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Opened(OpenReason::Start))]
    );
    assert_eq!(seed.skip(), WATCH_DURATION);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Closed(CloseReason::Over))]
    );
    assert_eq!(seed.next(), None);
}

#[test]
fn a_service_that_fails_and_recovers_before_its_first_window_opens_is_not_kept_waiting() {
    let mut seed = TestSeed::waiting(None);
    seed.namespaces.lead(seed.now);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert!(seed.events().is_empty());
    seed.slice("s", ETCD, &[]);
    assert!(seed.events().is_empty());
    assert_eq!(seed.next(), None);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
}

#[test]
fn without_leadership_nothing_opens_and_with_it_each_ready_service_opens_once() {
    let mut seed = TestSeed::waiting(None);
    seed.list_slices(&[("s", slice(ETCD, &[]))]);
    seed.list_pods(&[]);
    seed.pod("a", "1", &[ETCD]);
    seed.slice("s", ETCD, &["e"]);
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.next(), None);
    seed.pass(WATCH_DURATION);
    seed.namespaces.lead(seed.now);
    assert!(seed.deleted().is_empty(), "the first windows are spread");
    seed.skip();
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Opened(OpenReason::Start))]
    );
}

#[test]
fn a_broken_watch_opens_a_window_only_where_other_endpoints_are_ready() {
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
fn slices_that_vanished_while_nothing_was_seen_close_their_window() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.list_slices(&[]);
    assert_eq!(
        seed.events(),
        [(ETCD, WindowChange::Closed(CloseReason::NotReady))]
    );
    assert!(seed.is_empty());
}

#[test]
fn a_changed_service_found_after_blindness_gets_a_full_window_in_place_of_the_old_one() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
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
fn all_is_seen_from_the_lists_of_both_kinds_until_a_watch_breaks() {
    let mut seed = TestSeed::waiting(None);
    assert!(!seed.namespaces.observes());
    seed.list_slices(&[]);
    assert!(!seed.namespaces.observes());
    seed.list_pods(&[]);
    assert!(seed.namespaces.observes());
    seed.namespaces.apply_slices(Change::Lost, seed.now);
    assert!(!seed.namespaces.observes());
    seed.list_slices(&[]);
    assert!(seed.namespaces.observes());
}

#[test]
fn a_flapping_service_leaves_nothing_behind() {
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
    seed.namespaces
        .apply_slices(Change::Gone(key("s")), seed.now);
    seed.due();
    assert!(seed.is_empty());
    assert_eq!(seed.next(), None);
}

#[test]
fn unknown_slices_and_pods_that_go_are_nothing_to_remember() {
    let mut seed = TestSeed::leading(None);
    seed.namespaces
        .apply_slices(Change::Gone(key("s")), seed.now);
    seed.pod_is_fine("a");
    assert!(seed.events().is_empty());
    assert!(seed.is_empty());
}
