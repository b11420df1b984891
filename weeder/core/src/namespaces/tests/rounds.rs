//! Replacements of an owner's deleted pods wait longer each time (D-67).

use super::*;

/// Makes a pod of one owner crash-loop a second after its creation.
fn successor(seed: &mut TestSeed, number: u32) {
    seed.pass(SECOND);
    seed.pod("a", &number.to_string(), &[ETCD]);
}

#[test]
fn a_pod_that_crashes_for_its_own_reason_is_deleted_after_growing_waits() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    let start = seed.now;
    let mut times = Vec::new();
    for number in 0.. {
        successor(&mut seed, number);
        while seed.deleted().is_empty() && seed.now < start + WATCH_DURATION {
            seed.skip();
        }
        if seed.now >= start + WATCH_DURATION {
            break;
        }
        times.push((seed.now - start).as_secs());
    }
    assert_eq!(times, [1, 11, 31, 71, 151]);
}

#[test]
fn all_replicas_that_crash_loop_when_their_service_is_back_are_deleted_at_once() {
    let mut seed = TestSeed::leading(None);
    for uid in ["1", "2", "3"] {
        seed.pod(uid, uid, &[ETCD]);
        seed.pass(SECOND);
    }
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1", "2", "3"]);
    seed.pass(SECOND);
    for uid in ["4", "5", "6"] {
        seed.pod(uid, uid, &[ETCD]);
    }
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.skip(), 9 * SECOND);
    assert_eq!(seed.deleted(), ["4", "5", "6"]);
}

#[test]
fn another_owner_and_another_window_have_waits_of_their_own() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    successor(&mut seed, 1);
    assert_eq!(seed.deleted(), ["1"]);
    successor(&mut seed, 2);
    assert!(seed.deleted().is_empty());
    seed.show("b", candidate("other", "other", &[ETCD]));
    assert_eq!(seed.deleted(), ["other"]);
    seed.slice("s", ETCD, &[]);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn a_pod_that_somebody_else_deleted_makes_its_successors_wait_for_nothing() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    successor(&mut seed, 1);
    let sent = seed.due();
    successor(&mut seed, 2);
    assert!(seed.due().is_empty(), "the first one may have been deleted");
    seed.namespaces.ended(&sent[0], Outcome::Gone, seed.now);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn another_limit_does_not_shorten_the_waits() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
    successor(&mut seed, 1);
    assert_eq!(seed.deleted(), ["1"]);
    successor(&mut seed, 2);
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.next(), Some(seed.now + WATCH_DURATION - 2 * SECOND));
    seed.reconfigure(config(&[ETCD, API], Some(2)));
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.skip(), 9 * SECOND);
    assert_eq!(seed.deleted(), ["2"]);
}
