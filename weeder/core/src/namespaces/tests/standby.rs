//! State that a standby keeps for when it becomes the leader (D-66).

use super::*;

fn started(event: WindowChange) -> bool {
    event == WindowChange::Opened(OpenReason::Start)
}

/// A standby that has listed an unready Service, and a pod that waits for it.
fn standby() -> TestSeed {
    let mut seed = TestSeed::waiting(None);
    seed.list_slices(&[("s", slice(ETCD, &[]))]);
    seed.list_pods(&[("a", candidate("1", "owner", &[ETCD]))]);
    seed
}

#[test]
fn a_service_that_became_ready_before_the_lead_opens_at_once_for_the_time_that_is_left() {
    let mut seed = standby();
    seed.slice("s", ETCD, &["e"]);
    seed.pass(17 * SECOND);
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.next(), None);
    seed.namespaces.lead(seed.now);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    assert_eq!(seed.skip(), WATCH_DURATION - 17 * SECOND);
    let over = WindowChange::Closed(CloseReason::Over);
    assert_eq!(seed.events(), [(ETCD, over)]);
}

#[test]
fn a_service_that_became_ready_longer_ago_opens_as_at_a_start() {
    let mut seed = standby();
    seed.slice("s", ETCD, &["e"]);
    seed.pass(WATCH_DURATION);
    seed.namespaces.lead(seed.now);
    assert!(seed.deleted().is_empty(), "the first windows are spread");
    assert!(seed.skip() <= 30 * SECOND);
    assert_eq!(seed.deleted(), ["1"]);
    assert!(started(seed.events()[0].1));
}

#[test]
fn a_service_that_was_ready_when_it_was_first_listed_opens_as_at_a_start() {
    let mut seed = TestSeed::waiting(None);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    seed.list_pods(&[("a", candidate("1", "owner", &[ETCD]))]);
    seed.namespaces.lead(seed.now);
    assert!(seed.deleted().is_empty());
    seed.skip();
    assert_eq!(seed.deleted(), ["1"]);
    assert!(started(seed.events()[0].1));
}

#[test]
fn a_service_that_is_down_again_opens_nothing() {
    let mut seed = standby();
    seed.slice("s", ETCD, &["e"]);
    seed.pass(SECOND);
    seed.slice("s", ETCD, &[]);
    seed.pass(SECOND);
    seed.namespaces.lead(seed.now);
    assert!(seed.events().is_empty());
    assert_eq!(seed.next(), None);
}

#[test]
fn a_service_found_with_other_endpoints_after_a_broken_watch_counts_as_recovered_in_a_standby() {
    let mut seed = standby();
    seed.list_slices(&[("s", slice(ETCD, &["e"])), ("t/s", slice(ETCD, &["f"]))]);
    seed.list_slices(&[("s", slice(ETCD, &["e"])), ("t/s", slice(ETCD, &["g"]))]);
    seed.pass(SECOND);
    seed.namespaces.lead(seed.now);
    assert_eq!(seed.deleted(), ["1"]);
    assert_eq!(seed.events(), [(ETCD, OPENED), (ETCD, OPENED)]);
}

#[test]
fn a_termination_that_a_standby_saw_counts_from_when_it_saw_it() {
    let mut seed = standby();
    seed.show("a", terminated("1", &[("c", 1)], &[ETCD]));
    seed.slice("s", ETCD, &["e"]);
    seed.pass(TERMINATED_FOR);
    seed.namespaces.lead(seed.now);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn a_standby_forgets_what_is_gone() {
    let mut seed = standby();
    for _ in 0..100 {
        seed.slice("s", ETCD, &["e"]);
        seed.pass(WATCH_DURATION);
        seed.slice("s", ETCD, &[]);
    }
    seed.namespaces
        .apply_slices(Change::Gone(key("s")), seed.now);
    seed.pod_is_fine("a");
    assert!(seed.is_empty());
}
