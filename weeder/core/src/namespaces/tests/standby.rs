//! State that a standby keeps for when it becomes the leader (D-66).

use super::*;

/// A standby that has listed an unready Service, and a pod that waits for it.
fn standby() -> TestSeed {
    let mut seed = TestSeed::waiting(None);
    seed.list_slices(&[("s", slice(ETCD, &[]))]);
    seed.list_pods(&[("a", candidate("1", "owner", &[ETCD]))]);
    seed
}

#[test]
fn recovery_before_lead_opens() {
    let mut seed = standby();
    seed.slice("s", ETCD, &["e"]);
    seed.pass(17 * SECOND);
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.next(), None);
    seed.lead();
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    assert_eq!(seed.skip(), WATCH_DURATION - 17 * SECOND);
    assert_eq!(seed.events(), [(ETCD, OVER)]);
}

#[test]
fn older_recovery_is_a_start() {
    let mut seed = standby();
    seed.slice("s", ETCD, &["e"]);
    seed.pass(WATCH_DURATION);
    seed.lead();
    assert!(seed.deleted().is_empty(), "the first windows are spread");
    assert!(seed.skip() <= 30 * SECOND);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events()[0].1, OPENED_AT_START);
}

#[test]
fn first_listed_ready_is_a_start() {
    let mut seed = TestSeed::waiting(None);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    seed.list_pods(&[("a", candidate("1", "owner", &[ETCD]))]);
    seed.lead();
    assert!(seed.deleted().is_empty());
    seed.skip();
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events()[0].1, OPENED_AT_START);
}

#[test]
fn service_down_again_opens_nothing() {
    let mut seed = standby();
    seed.slice("s", ETCD, &["e"]);
    seed.pass(SECOND);
    seed.slice("s", ETCD, &[]);
    seed.pass(SECOND);
    seed.lead();
    assert!(seed.events().is_empty());
    assert_eq!(seed.next(), None);
}

#[test]
fn other_endpoints_recover_in_a_standby() {
    let mut seed = standby();
    seed.list_slices(&[("s", slice(ETCD, &["e"])), ("t/s", slice(ETCD, &["f"]))]);
    seed.list_slices(&[("s", slice(ETCD, &["e"])), ("t/s", slice(ETCD, &["g"]))]);
    seed.pass(SECOND);
    seed.lead();
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED), (ETCD, OPENED)]);
}

#[test]
fn termination_counts_in_a_standby() {
    let mut seed = standby();
    seed.terminated("a", "1", 1);
    seed.slice("s", ETCD, &["e"]);
    seed.pass(TERMINATED_FOR);
    seed.lead();
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn standby_forgets_what_is_gone() {
    let mut seed = standby();
    for _ in 0..100 {
        seed.slice("s", ETCD, &["e"]);
        seed.pass(WATCH_DURATION);
        seed.slice("s", ETCD, &[]);
    }
    seed.remove_slice("s");
    seed.pod_is_fine("a");
    assert!(seed.is_empty());
}
