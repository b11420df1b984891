//! Priorities when capacity is short (D-65).

use super::*;
use crate::namespace::MAX_IN_FLIGHT as MAX_OF_NAMESPACE;

/// Makes so many pods of a namespace crash-loop.
fn crash(seed: &mut TestSeed, namespace: &str, pods: usize) {
    for number in 0..pods {
        let name = format!("{namespace}/{number:03}");
        seed.show(&name, candidate(&name, &name, &[ETCD]));
    }
}

fn recover(seed: &mut TestSeed, namespace: &str) {
    seed.slice(&format!("{namespace}/s"), ETCD, &["e"]);
}

#[test]
fn deletions_in_flight_are_bounded() {
    let mut seed = TestSeed::leading(None);
    let namespaces: Vec<String> = (0..8).map(|number| format!("n{number}")).collect();
    for namespace in &namespaces {
        crash(&mut seed, namespace, MAX_OF_NAMESPACE + 2);
        recover(&mut seed, namespace);
    }
    let mut flying = seed.due();
    assert_eq!(flying.len(), MAX_IN_FLIGHT);
    assert!(seed.due().is_empty());
    assert_eq!(
        seed.next(),
        Some(seed.now + WATCH_DURATION),
        "nothing before one has ended"
    );
    let mut seen = HashSet::new();
    while let Some(deletion) = flying.pop() {
        assert!(seen.insert(deletion.uid.clone()));
        seed.ended(&deletion, Outcome::Deleted);
        flying.extend(seed.due());
        assert!(flying.len() <= MAX_IN_FLIGHT);
        for namespace in &namespaces {
            let of_namespace = flying
                .iter()
                .filter(|flying| flying.pod.namespace == *namespace);
            assert!(of_namespace.count() <= MAX_OF_NAMESPACE);
        }
    }
    assert_eq!(seen.len(), namespaces.len() * (MAX_OF_NAMESPACE + 2));
}

#[test]
fn closed_window_sends_nothing() {
    let mut seed = TestSeed::leading(None);
    crash(&mut seed, "shoot", MAX_OF_NAMESPACE + 1);
    recover(&mut seed, "shoot");
    let flying = seed.due();
    assert_eq!(flying.len(), MAX_OF_NAMESPACE);
    seed.slice("s", ETCD, &[]);
    seed.ended(&flying[0], Outcome::Deleted);
    assert!(seed.due().is_empty());
}

#[test]
fn recoveries_go_before_first_windows() {
    let mut seed = TestSeed::waiting(None);
    let first: Vec<String> = (0..5).map(|number| format!("first-{number}")).collect();
    let slices: Vec<_> = first.iter().map(|name| format!("{name}/s")).collect();
    let slices: Vec<_> = slices
        .iter()
        .map(|name| (name.as_str(), slice(ETCD, &["e"])))
        .collect();
    seed.lead();
    seed.list_slices(&slices);
    seed.list_pods(&[]);
    for namespace in &first {
        crash(&mut seed, namespace, MAX_OF_NAMESPACE);
    }
    seed.pass(30 * SECOND);
    recover(&mut seed, "recovered");
    crash(&mut seed, "recovered", 1);
    let mut deleted = seed.deleted();
    assert_eq!(deleted.len(), MAX_IN_FLIGHT);
    assert_eq!(deleted.remove(0), "recovered/000");
    deleted.extend(seed.deleted());
    let all = first.len() * MAX_OF_NAMESPACE;
    assert_eq!(deleted.len(), all, "and the rest follows");
}

/// Delay between the recovery of a Service and the deletion of its pod, beside so many pods in each
/// of so many namespaces whose DELETEs time out. That Service recovers `later`.
fn deleted_beside_hanging(namespaces: usize, pods: usize, later: Duration) -> Option<Duration> {
    /// The weeder's timeout.
    const GIVEN_UP_AFTER: Duration = Duration::from_secs(10);
    let mut seed = TestSeed::leading(None);
    let (end, back) = (seed.now + WATCH_DURATION, seed.now + later);
    for number in 0..namespaces {
        let name = format!("hanging-{number}");
        crash(&mut seed, &name, pods);
        recover(&mut seed, &name);
    }
    crash(&mut seed, "well", 1);
    let mut flying: Vec<(Instant, Deletion)> = Vec::new();
    while seed.now < end {
        if seed.now >= back {
            recover(&mut seed, "well");
        }
        for deletion in seed.due() {
            if deletion.pod.namespace == "well" {
                return Some(seed.now - back);
            }
            flying.push((seed.now + GIVEN_UP_AFTER, deletion));
        }
        let given_up = flying.iter().map(|(time, _)| *time);
        let back = Some(back).filter(|back| *back > seed.now);
        seed.now = given_up.chain(seed.next()).chain(back).min()?;
        let (ended, rest): (Vec<_>, _) =
            flying.into_iter().partition(|(time, _)| *time <= seed.now);
        flying = rest;
        for (_, deletion) in ended {
            seed.ended(&deletion, Outcome::Unknown);
        }
    }
    None
}

#[test]
fn hanging_namespace_holds_up_no_other() {
    for (namespaces, pods) in [(1, 8), (1, 31), (1, 32), (1, 64), (1, 200), (3, 200)] {
        let deleted = deleted_beside_hanging(namespaces, pods, Duration::ZERO);
        assert_eq!(deleted, Some(Duration::ZERO), "{namespaces} times {pods}");
    }
}

#[test]
fn untried_goes_before_what_hangs() {
    let later = 120 * SECOND;
    let deleted = deleted_beside_hanging(6, 40, later).expect("it is deleted");
    assert!(deleted <= 10 * SECOND, "{deleted:?}");
}

#[test]
fn hanging_ones_are_tried_singly() {
    for (namespaces, pods) in [(4, 64), (8, 200), (20, 15), (31, 200)] {
        let deleted = deleted_beside_hanging(namespaces, pods, Duration::ZERO);
        let deleted = deleted.unwrap_or_else(|| panic!("{namespaces} times {pods}: never"));
        // Their first attempts use all capacity, once.
        let rounds = (namespaces * MAX_OF_NAMESPACE).div_ceil(MAX_IN_FLIGHT) as u32;
        assert!(
            deleted <= 10 * SECOND * rounds,
            "{namespaces} times {pods}: {deleted:?}"
        );
    }
}
