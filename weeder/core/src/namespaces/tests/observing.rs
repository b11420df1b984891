//! Nothing is deleted on unobserved state.

use super::*;

#[test]
fn unlisted_pods_are_not_deleted() {
    let mut seed = leading();
    seed.crashes("1").crashes("2").unready(ETCD);
    seed.pods(Change::Lost).slices(Change::Lost);
    seed.lists_slices(&[(ETCD, "e")]).windows("etcd recovery");
    seed.pass(1.0).lists_pods([pod("2")]).deletes("2");
}

#[test]
fn unseen_service_deletes_nothing() {
    let mut seed = recovered();
    seed.slices(Change::Lost)
        .crashes("1")
        .windows("etcd recovery");
    seed.lists_slices(&[(ETCD, "")]).windows("etcd not_ready");
}

#[test]
fn retry_waits_for_sight() {
    let mut seed = recovered();
    seed.crashes("1").tries("1", Outcome::Retry(None));
    seed.pods(Change::Lost).pass(20.0).deletes("");
    assert_eq!(seed.next(), Some(WATCH - 20.0));
    seed.lists_pods([pod("1")]).deletes("1");
}
