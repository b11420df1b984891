//! Replacements of an owner's deleted pods wait longer each time (D-67).

use super::*;

#[test]
fn own_fault_waits_longer() {
    let mut seed = leading();
    let mut config = Config::clone(&config(&[ETCD, API], None));
    config.watch_duration = Duration::from_secs(3600);
    seed.namespaces.reconfigure(Arc::new(config), seed.now);
    seed.ready(ETCD).crashes("0").deletes("0");
    // Each crashes a second after its predecessor was deleted, and beside it one of another owner.
    for (number, seconds) in [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
        .into_iter()
        .enumerate()
    {
        let (pod, other) = (format!("a={number}-next"), format!("other-{number}"));
        seed.pass(1.0)
            .crashes(&pod)
            .shows(self::pod(&other).alone());
        seed.deletes(&other).waits(seconds - 1.0).deletes(&pod[2..]);
    }
}

#[test]
fn all_replicas_are_deleted_at_once() {
    let mut seed = leading();
    for uid in ["1", "2", "3"] {
        seed.crashes(uid).pass(1.0);
    }
    seed.ready(ETCD).deletes("1 2 3").pass(1.0);
    for uid in ["4", "5", "6"] {
        seed.crashes(uid);
    }
    seed.waits(9.0).deletes("4 5 6").pass(1.0).crashes("7");
    seed.unready(ETCD).ready(ETCD).deletes("7");
}

#[test]
fn deletion_by_others_lets_nobody_wait() {
    let mut seed = recovered();
    seed.crashes("0")
        .sends("0")
        .pass(1.0)
        .crashes("1")
        .deletes("");
    seed.answers("0", Outcome::Gone).sends("1");
    seed.pass(1.0).crashes("2").waits(9.0);
    seed.sends("2").pass(1.0).crashes("3").deletes("");
    assert_eq!(seed.next(), Some(19.0), "the second round");
    seed.answers("2", Outcome::Changed).deletes("3");
    seed.pass(1.0).crashes("4").waits(19.0);
    seed.deletes("4").pass(1.0).crashes("5");
    seed.answers("1", Outcome::Gone).waits(39.0).deletes("5");
}

#[test]
fn another_limit_shortens_no_wait() {
    let mut seed = recovered_with(Some(1));
    seed.crashes("1")
        .deletes("1")
        .pass(1.0)
        .crashes("2")
        .deletes("");
    assert_eq!(seed.next(), Some(WATCH - 1.0));
    seed.reconfigures(&[ETCD, API], Some(2))
        .waits(9.0)
        .deletes("2");
}
