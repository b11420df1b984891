//! A refused DELETE holds back the pods of its namespace, or of all if the permission is missing
//! everywhere.

use super::*;
use crate::namespace::MAX_IN_FLIGHT as MAX_OF_NAMESPACE;

/// Makes some pods of a namespace crash-loop, and their Service ready.
fn recovered(seed: &mut TestSeed, namespace: &str, pods: usize) {
    for number in 0..pods {
        let name = format!("{namespace}/{number:02}");
        seed.show(&name, candidate(&name, &name, &[ETCD]));
    }
    seed.slice(&format!("{namespace}/s"), ETCD, &["e"]);
}

/// Refuses all DELETEs until the first windows are over. Returns their number, and the second of
/// the last one.
fn refuse_all(seed: &mut TestSeed, mut meanwhile: impl FnMut(&mut TestSeed)) -> (usize, Vec<u64>) {
    let (start, mut sent, mut times) = (seed.now, 0, Vec::new());
    loop {
        let refused = seed.deletes(Outcome::Refused).len();
        if refused > 0 {
            times.push((seed.now - start).as_secs());
        }
        sent += refused;
        meanwhile(seed);
        match seed.next() {
            Some(next) if next < start + WATCH_DURATION => seed.now = next,
            _ => return (sent, times),
        }
    }
}

#[test]
fn refused_deletes_wait_longer() {
    let mut seed = TestSeed::leading(None);
    recovered(&mut seed, "shoot", 33);
    let (sent, times) = refuse_all(&mut seed, |_| ());
    assert_eq!(times, [0, 10, 30, 70, 130, 190, 250]);
    assert_eq!(sent, MAX_OF_NAMESPACE + 6);
}

#[test]
fn no_change_shortens_the_wait() {
    let mut seed = TestSeed::leading(None);
    recovered(&mut seed, "shoot", 33);
    let mut version = 1;
    let (sent, times) = refuse_all(&mut seed, |seed| {
        version += 1;
        for number in 0..33 {
            let name = format!("{number:02}");
            let uid = format!("shoot/{name}");
            seed.show(
                &name,
                candidate_at(&version.to_string(), &uid, &uid, &[ETCD]),
            );
        }
        seed.flap();
        assert!(seed.due().is_empty());
    });
    assert_eq!(times, [0, 10, 30, 70, 130, 190, 250]);
    assert_eq!(sent, MAX_OF_NAMESPACE + 6);
}

#[test]
fn other_namespaces_wait_for_nothing() {
    let mut seed = TestSeed::leading(None);
    recovered(&mut seed, "one", 2);
    assert_eq!(seed.deletes(Outcome::Refused), ["one/00", "one/01"]);
    recovered(&mut seed, "two", 2);
    assert_eq!(seed.deleted(), ["two/00", "two/01"]);
}

#[test]
fn returned_right_is_used() {
    let mut seed = TestSeed::leading(Some(1));
    recovered(&mut seed, "shoot", 3);
    assert_eq!(seed.deletes(Outcome::Refused).len(), 3);
    for _ in 0..3 {
        seed.skip();
        assert_eq!(seed.deletes(Outcome::Refused).len(), 1);
    }
    seed.skip();
    assert_eq!(seed.deleted().len(), 1);
    assert_eq!(seed.deleted().len(), 2, "all others at once");
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
}

#[test]
fn refusal_lets_others_be_tried() {
    let mut seed = TestSeed::leading(None);
    recovered(&mut seed, "shoot", 1);
    assert_eq!(seed.deletes(Outcome::Refused), ["shoot/00"]);
    seed.show("b", candidate("b", "b", &[ETCD]));
    assert!(seed.deleted().is_empty());
    seed.skip();
    let due = seed.due();
    assert_eq!((due.len(), due[0].uid.as_str()), (1, "b"));
    seed.ended(&due[0], Outcome::Deleted);
    assert_eq!(seed.deletes(Outcome::Refused), ["shoot/00"]);
}

#[test]
fn missing_right_tries_one_of_all() {
    let mut seed = TestSeed::leading(None);
    for number in 0..100 {
        recovered(&mut seed, &format!("n{number:03}"), 33);
    }
    let first = seed.due();
    assert_eq!(first.len(), MAX_IN_FLIGHT);
    for deletion in &first {
        seed.ended(deletion, Outcome::Refused);
    }
    assert!(!seed.namespaces.misses_right());
    seed.namespaces.miss_right(seed.now);
    assert!(seed.namespaces.misses_right());
    let (sent, times) = refuse_all(&mut seed, |_| ());
    assert_eq!((sent, times), (6, vec![10, 30, 70, 130, 190, 250]));
    assert!(seed.namespaces.misses_right());
}

#[test]
fn one_delete_proves_the_right() {
    let mut seed = TestSeed::leading(None);
    recovered(&mut seed, "one", 1);
    assert_eq!(seed.deletes(Outcome::Refused), ["one/00"]);
    seed.namespaces.miss_right(seed.now);
    recovered(&mut seed, "two", 2);
    seed.lose_pods();
    seed.pass(20 * SECOND);
    assert!(seed.due().is_empty());
    assert!(seed.next().is_some_and(|next| next > seed.now), "it turns");
    seed.namespaces.apply_pods(Change::Watched, seed.now);
    let trial = seed.due();
    assert_eq!(trial.len(), 1, "the only one in flight");
    seed.ended(&trial[0], Outcome::Deleted);
    assert!(!seed.namespaces.misses_right());
    assert_eq!(seed.deleted().len(), 2);
}

#[test]
fn any_answer_proves_the_right() {
    for outcome in [Outcome::Gone, Outcome::Changed] {
        let mut seed = TestSeed::leading(None);
        recovered(&mut seed, "one", 1);
        seed.namespaces.miss_right(seed.now);
        seed.pass(10 * SECOND);
        assert_eq!(seed.deletes(outcome), ["one/00"]);
        assert!(!seed.namespaces.misses_right(), "{outcome:?}");
    }
    let mut seed = TestSeed::leading(None);
    recovered(&mut seed, "a", 8);
    recovered(&mut seed, "z", 1);
    seed.namespaces.miss_right(seed.now);
    seed.pass(10 * SECOND);
    assert_eq!(seed.deletes(Outcome::Refused), ["a/00"]);
    seed.namespaces.find_right();
    assert_eq!(seed.deleted(), ["z/00"]);
}
