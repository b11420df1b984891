//! Nothing is deleted on unobserved state.

use super::*;

#[test]
fn unlisted_pods_are_not_deleted() {
    let mut seed = TestSeed::leading(None);
    seed.pod("a", "1", &[ETCD]);
    seed.pod("b", "2", &[ETCD]);
    seed.slice("s", ETCD, &[]);
    seed.lose_pods();
    seed.lose_slices();
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
fn unseen_service_deletes_nothing() {
    let mut seed = TestSeed::recovered(None);
    seed.lose_slices();
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.list_slices(&[("s", slice(ETCD, &[]))]);
    assert_eq!(seed.events(), [(ETCD, NOT_READY)]);
}

#[test]
fn window_keeps_its_time_unseen() {
    let mut seed = TestSeed::recovered(None);
    seed.lose_slices();
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.pass(WATCH_DURATION - SECOND);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.lose_slices();
    assert_eq!(seed.skip(), SECOND);
    assert_eq!(seed.events(), [(ETCD, OVER)]);
}

#[test]
fn retry_waits_for_sight() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Retry(None)), ["1"]);
    seed.lose_pods();
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
