//! Replacements of an owner's deleted pods wait longer each time (D-67).

use super::*;

/// Makes a pod of one owner crash-loop a second after its creation.
fn successor(seed: &mut TestSeed, number: u32) {
    seed.pass(SECOND);
    seed.pod("a", &number.to_string(), &[ETCD]);
}

#[test]
fn own_fault_waits_longer() {
    let mut seed = TestSeed::recovered(None);
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
fn all_replicas_are_deleted_at_once() {
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
fn each_owner_has_its_own_waits() {
    let mut seed = TestSeed::recovered(None);
    successor(&mut seed, 1);
    assert_eq!(seed.deleted(), ["1"]);
    successor(&mut seed, 2);
    assert!(seed.deleted().is_empty());
    seed.show("b", candidate("other", "other", &[ETCD]));
    assert_eq!(seed.deleted(), ["other"]);
    seed.flap();
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn deletion_by_others_lets_nobody_wait() {
    let mut seed = TestSeed::recovered(None);
    successor(&mut seed, 1);
    let sent = seed.due();
    successor(&mut seed, 2);
    assert!(seed.due().is_empty(), "the first one may have been deleted");
    seed.ended(&sent[0], Outcome::Gone);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn another_limit_shortens_no_wait() {
    let mut seed = TestSeed::recovered(Some(1));
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
