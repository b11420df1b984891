//! State that a standby keeps for when it becomes the leader (D-66).

use super::*;

/// A standby that has listed an unready Service, and a pod that waits for it.
fn standby() -> Seed {
    let mut seed = waiting(None);
    seed.lists_slices(&[(ETCD, "")]).lists_pods([pod("1")]);
    seed
}

#[test]
fn recovery_before_lead_opens() {
    let mut seed = standby();
    seed.ready(ETCD).pass(17.0).rests();
    seed.leads().deletes("1").windows("etcd recovery");
    seed.waits(WATCH - 17.0).windows("etcd over");
}

#[test]
fn older_recovery_is_a_start() {
    let mut seed = standby();
    seed.ready(ETCD).pass(WATCH).leads().waits_for_its_turn();
    seed.deletes("1").windows("etcd start");
}

#[test]
fn first_listed_ready_is_a_start() {
    let mut seed = waiting(None);
    seed.lists_slices(&[(ETCD, "e")])
        .lists_pods([pod("1")])
        .pass(100.0)
        .leads();
    seed.waits_for_its_turn().deletes("1").windows("etcd start");
    seed.waits(WATCH).windows("etcd over");
}

#[test]
fn service_down_again_opens_nothing() {
    let mut seed = standby();
    seed.ready(ETCD).pass(1.0).unready(ETCD).pass(1.0).leads();
    seed.windows("").rests();
}

#[test]
fn other_endpoints_recover_in_a_standby() {
    let mut seed = standby();
    for endpoints in ["f", "g"] {
        seed.lists_slices(&[(ETCD, "e"), ("two/etcd", endpoints)]);
    }
    seed.pass(1.0).leads().deletes("1");
    seed.windows("etcd recovery, etcd recovery");
}

#[test]
fn termination_counts_in_a_standby() {
    let mut seed = standby();
    seed.shows(pod("1").terminated(&[("c", 1)])).ready(ETCD);
    seed.pass(4.0).leads().deletes("1");
}

#[test]
fn standby_forgets_what_is_gone() {
    let mut seed = standby();
    for _ in 0..100 {
        seed.ready(ETCD).pass(WATCH).unready(ETCD);
    }
    seed.slices(Change::Gone(key(ETCD))).heals("1").is_empty();
}
