//! When windows open and close.

use super::*;

#[test]
fn recovery_deletes_at_once() {
    let mut seed = leading();
    seed.crashes("1").shows(pod("2").on(&[API])).unready(ETCD);
    seed.deletes("").ready(ETCD).deletes("1");
    seed.deletes("").windows("etcd recovery");
}

#[test]
fn unready_service_closes_its_window() {
    let mut seed = recovered();
    seed.windows("etcd recovery").pass(WATCH - 1.0);
    seed.unready(ETCD).crashes("1").windows("etcd not_ready");
    seed.pass(1.0).ready(ETCD).deletes("1");
    seed.windows("etcd recovery")
        .waits(WATCH)
        .windows("etcd over");
}

#[test]
fn ready_service_opens_soon() {
    let mut seed = waiting(None);
    seed.leads().lists_slices(&[(ETCD, "e"), (API, "")]);
    seed.lists_pods([pod("1").on(&[ETCD, API])]);
    seed.waits_for_its_turn().deletes("1").windows("etcd start");
    seed.waits(WATCH).windows("etcd over").rests();
}

#[test]
fn early_recovery_opens_at_once() {
    let mut seed = waiting(None);
    seed.leads().lists_slices(&[(ETCD, "e")]).lists_pods([]);
    seed.windows("").unready(ETCD).windows("").rests();
    seed.ready(ETCD).windows("etcd recovery");
}

#[test]
fn new_endpoints_open_a_window() {
    let mut seed = leading();
    seed.ready("one/etcd")
        .slice("two/etcd", ETCD, "f")
        .unready("three/etcd");
    seed.windows("etcd recovery, etcd recovery").pass(WATCH);
    seed.windows("etcd over, etcd over");
    for uid in ["one/1", "two/2", "three/3"] {
        seed.crashes(uid);
    }
    seed.lists_slices(&[("one/etcd", "e"), ("two/etcd", "g"), ("three/etcd", "h")]);
    seed.deletes("three/3 two/2");
}

#[test]
fn changed_endpoints_renew_the_window() {
    let mut seed = recovered_with(Some(1));
    seed.crashes("1").deletes("1").crashes("2").deletes("");
    seed.lists_slices(&[(ETCD, "f")]).deletes("2");
    seed.windows("etcd recovery, etcd renewed, etcd recovery");
    seed.lists_slices(&[]).windows("etcd not_ready");
    seed.lists_pods([]).is_empty();
}

#[test]
fn flapping_service_leaves_nothing() {
    let mut seed = leading();
    for _ in 0..1000 {
        seed.ready(ETCD).crashes("1").tries("1", Outcome::Changed);
        seed.unready(ETCD).heals("1").deletes("").pass(0.1);
    }
    // These are not known.
    seed.heals("2").slices(Change::Gone(key(API)));
    seed.slices(Change::Gone(key(ETCD))).is_empty();
}
