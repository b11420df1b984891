//! Priorities when capacity is short (D-65), and the cost of an event.

use std::collections::HashMap;

use super::*;
use crate::namespace::MAX_IN_FLIGHT as MAX_OF_NAMESPACE;

#[test]
fn deletions_in_flight_are_bounded() {
    let mut seed = leading();
    for number in 0..8 {
        seed.recovers_with(&format!("n{number}"), MAX_OF_NAMESPACE + 2);
    }
    let mut in_flight = seed.send();
    assert_eq!(in_flight.len(), MAX_IN_FLIGHT);
    seed.deletes("");
    assert_eq!(seed.next(), Some(WATCH), "nothing before one has ended");
    let mut seen = HashSet::new();
    while let Some(Deletion { uid, .. }) = in_flight.pop() {
        seed.answers(&uid, Outcome::Deleted);
        assert!(seen.insert(uid));
        in_flight.extend(seed.send());
        assert!(in_flight.len() <= MAX_IN_FLIGHT);
        let mut of_each = HashMap::<_, usize>::new();
        for deletion in &in_flight {
            *of_each.entry(&deletion.pod.namespace).or_default() += 1;
        }
        assert!(of_each.values().all(|count| *count <= MAX_OF_NAMESPACE));
    }
    assert_eq!(seen.len(), 8 * (MAX_OF_NAMESPACE + 2));
}

#[test]
fn closed_window_sends_nothing() {
    let mut seed = leading();
    seed.recovers_with("shoot", MAX_OF_NAMESPACE + 1);
    assert_eq!(seed.send().len(), MAX_OF_NAMESPACE);
    seed.unready(ETCD)
        .answers("shoot/00", Outcome::Deleted)
        .deletes("");
}

#[test]
fn recoveries_go_before_first_windows() {
    let mut seed = waiting(None);
    let first = [0, 1, 2, 3, 4].map(|number| format!("first-{number}"));
    let services = first.each_ref().map(|name| format!("{name}/{ETCD}"));
    let slices = services.each_ref().map(|service| (&**service, "e"));
    seed.leads().lists_slices(&slices).lists_pods([]);
    for namespace in &first {
        seed.crash_in(namespace, MAX_OF_NAMESPACE);
    }
    seed.pass(30.0).recovers_with("recovered", 1);
    let deleted = seed.try_all(Outcome::Deleted);
    assert_eq!(
        (deleted.len(), &*deleted[0]),
        (MAX_IN_FLIGHT, "recovered/00")
    );
    let rest = first.len() * MAX_OF_NAMESPACE + 1 - MAX_IN_FLIGHT;
    assert_eq!(seed.try_all(Outcome::Deleted).len(), rest);
}

/// Seconds between the recovery of a Service, `later`, and the deletion of its pod, beside so many
/// pods in each of so many namespaces whose DELETEs time out.
fn deleted_beside_hanging(namespaces: usize, pods: usize, later: f64) -> Option<f64> {
    /// The weeder's timeout.
    const GIVEN_UP_AFTER: f64 = 10.0;
    let mut seed = leading();
    for number in 0..namespaces {
        seed.recovers_with(&format!("hanging-{number}"), pods);
    }
    let (mut time, mut sent) = (0.0, Vec::new());
    while time < WATCH {
        if time >= later {
            seed.recovers_with("well", 1);
        }
        for deletion in seed.send() {
            if deletion.pod.namespace == "well" {
                return Some(time - later);
            }
            sent.push((time + GIVEN_UP_AFTER, deletion.uid));
        }
        let given_up = sent.iter().map(|(end, _)| end - time);
        let back = Some(later - time).filter(|wait| *wait > 0.0);
        let wait = given_up.chain(seed.next()).chain(back).reduce(f64::min)?;
        (time, _) = (time + wait, seed.pass(wait));
        for (_, uid) in sent.extract_if(.., |(end, _)| *end <= time) {
            seed.answers(&uid, Outcome::Unknown);
        }
    }
    None
}

#[test]
fn hanging_namespace_holds_up_no_other() {
    for (namespaces, pods) in [(1, 8), (1, 31), (1, 32), (1, 64), (1, 200), (3, 200)] {
        let deleted = deleted_beside_hanging(namespaces, pods, 0.0);
        assert_eq!(deleted, Some(0.0), "{namespaces} times {pods}");
    }
}

#[test]
fn untried_goes_before_what_hangs() {
    let deleted = deleted_beside_hanging(6, 40, 120.0);
    assert!(deleted.is_some_and(|after| after <= 10.0), "{deleted:?}");
}

#[test]
fn hanging_ones_are_tried_singly() {
    for (namespaces, pods) in [(4, 64), (8, 200), (20, 15), (31, 200)] {
        let deleted = deleted_beside_hanging(namespaces, pods, 0.0);
        // Their first attempts use all capacity, once.
        let rounds = (namespaces * MAX_OF_NAMESPACE).div_ceil(MAX_IN_FLIGHT);
        let is_soon = |after| after <= 10.0 * rounds as f64;
        assert!(
            deleted.is_some_and(is_soon),
            "{namespaces} times {pods}: {deleted:?}"
        );
    }
}

/// Median time of an event of one crash-looping pod, with 33 of them in each of so many namespaces,
/// as the controller calls the core.
fn cost_of_an_event(namespaces: usize, windows_are_open: bool) -> Duration {
    let mut seed = leading();
    let name = |number: usize| format!("n{number}");
    for number in 0..namespaces {
        if windows_are_open {
            seed.recovers_with(&name(number), 33);
        } else {
            seed.crash_in(&name(number), 33);
        }
    }
    while !seed.try_all(Outcome::Refused).is_empty() {}
    let mut times: Vec<Duration> = (0..301)
        .map(|version| {
            let pod = pod(&format!("{}/00", name(version % namespaces))).alone();
            let shown = pod.version(&version.to_string());
            let begin = Instant::now();
            seed.shows(shown).send();
            seed.namespaces.take_events();
            seed.next();
            seed.namespaces.open_windows();
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn pods_elsewhere_cost_nothing() {
    for windows_are_open in [false, true] {
        let [few, many] = [1, 300].map(|namespaces| cost_of_an_event(namespaces, windows_are_open));
        println!("33 crash-looping pods: {few:?}, 9,900: {many:?}");
        assert!(many < few * 20, "{few:?}, {many:?}");
    }
}
