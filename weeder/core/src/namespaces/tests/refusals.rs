//! A refused DELETE holds back the pods of its namespace, or of all if the permission is missing
//! everywhere.

use super::*;
use crate::namespace::MAX_IN_FLIGHT as MAX_OF_NAMESPACE;

/// Seconds after which one more is tried.
const TRIALS: [f64; 6] = [10.0, 30.0, 70.0, 130.0, 190.0, 250.0];

/// Refuses all that is sent while the windows are open. Returns how many, and when.
fn refuse_all(seed: &mut Seed, mut meanwhile: impl FnMut(&mut Seed)) -> (usize, Vec<f64>) {
    let (mut sent, mut times, mut time) = (0, Vec::new(), 0.0);
    loop {
        let refused = seed.try_all(Outcome::Refused).len();
        times.extend((refused > 0).then_some(time));
        sent += refused;
        meanwhile(seed);
        match seed.next() {
            Some(wait) if time + wait < WATCH => (time, _) = (time + wait, seed.pass(wait)),
            _ => return (sent, times),
        }
    }
}

#[test]
fn refused_deletes_wait_longer() {
    let mut seed = leading();
    seed.recovers_with("shoot", 33);
    let (sent, times) = refuse_all(&mut seed, |_| ());
    assert_eq!(times, [&[0.0], &TRIALS[..]].concat());
    assert_eq!(sent, MAX_OF_NAMESPACE + TRIALS.len());
}

#[test]
fn no_change_shortens_the_wait() {
    let mut seed = leading();
    seed.recovers_with("shoot", 33);
    let mut version = 1;
    let (sent, _) = refuse_all(&mut seed, |seed| {
        version += 1;
        for number in 0..33 {
            let pod = pod(&format!("shoot/{number:02}")).alone();
            seed.shows(pod.version(&version.to_string()));
        }
        seed.unready(ETCD).ready(ETCD).deletes("");
    });
    assert_eq!(sent, MAX_OF_NAMESPACE + TRIALS.len());
}

#[test]
fn returned_right_is_used() {
    let mut seed = leading_with(Some(1));
    seed.recovers_with("one", 3);
    seed.tries("one/00 one/01 one/02", Outcome::Refused);
    for seconds in [10.0, 20.0, 40.0] {
        seed.waits(seconds);
        assert_eq!(seed.try_all(Outcome::Refused).len(), 1);
    }
    // Others wait for nothing.
    seed.recovers_with("two", 2).deletes("two/00 two/01");
    seed.waits(60.0);
    let deleted = [0, 1].map(|_| seed.try_all(Outcome::Deleted).len());
    assert_eq!(deleted, [1, 2], "one is tried before all others");
}

#[test]
fn refusal_lets_others_be_tried() {
    let mut seed = recovered();
    seed.shows(pod("a").alone()).tries("a", Outcome::Refused);
    seed.shows(pod("b").alone()).waits(10.0).deletes("b");
    seed.tries("a", Outcome::Refused);
}

#[test]
fn missing_right_tries_one_of_all() {
    let mut seed = leading();
    for number in 0..100 {
        seed.recovers_with(&format!("n{number:03}"), 33);
    }
    assert_eq!(seed.try_all(Outcome::Refused).len(), MAX_IN_FLIGHT);
    seed.misses_right();
    let tried = refuse_all(&mut seed, |_| ());
    assert_eq!(tried, (TRIALS.len(), TRIALS.to_vec()));
    assert!(seed.namespaces.misses_right());
}

#[test]
fn one_delete_proves_the_right() {
    let mut seed = leading();
    seed.recovers_with("one", 1)
        .tries("one/00", Outcome::Refused);
    seed.misses_right().recovers_with("two", 2);
    seed.pods(Change::Lost).pass(20.0);
    seed.deletes("");
    assert!(seed.next().is_some_and(|wait| wait > 0.0), "it turns");
    seed.pods(Change::Watched).deletes("two/00");
    assert!(!seed.namespaces.misses_right());
    seed.deletes("two/01 one/00");
}

#[test]
fn any_answer_proves_the_right() {
    for outcome in [Outcome::Gone, Outcome::Changed] {
        let mut seed = leading();
        seed.recovers_with("one", 1).misses_right();
        seed.pass(10.0).tries("one/00", outcome);
        assert!(!seed.namespaces.misses_right(), "{outcome:?}");
    }
    let mut seed = leading();
    seed.recovers_with("a", 8)
        .recovers_with("z", 1)
        .misses_right();
    seed.pass(10.0).tries("a/00", Outcome::Refused);
    seed.namespaces.find_right();
    seed.deletes("z/00");
}
