//! Priorities when capacity is short (D-65), and the cost of an event.

use super::*;

#[test]
fn deletions_in_flight_are_bounded() {
    tell(
        "
eight of a namespace: leading; 10 recover in a; 8 sent; next 300 s; deletes nothing; answer a/00 deleted; 1 sent; answer a/01 deleted; answer a/02 gone; 1 sent; deletes nothing
32 of all: leading; 10 recover in a; 10 recover in b; 10 recover in c; 10 recover in d; 10 recover in e; 32 sent; next 300 s; deletes nothing; answer a/00 deleted; 1 sent; answer b/00 retry; answer c/00 refused; 2 sent; deletes nothing
none once the window is closed: leading; 9 recover in shoot; 8 sent; etcd unready; answer shoot/00 deleted; deletes nothing
",
    );
}

#[test]
fn recoveries_go_before_first_windows() {
    tell(
        "
where there is no room for all: lead; slices a/etcd=e b/etcd=e c/etcd=e d/etcd=e; pods none; 8 crash in a; 8 crash in b; 8 crash in c; 8 crash in d; 1 recover in recovered; sends for etcd recovery; 0 sent
",
    );
}

/// Seconds between the recovery of a Service, `later`, and the deletion of its pod, beside so many
/// pods in each of so many namespaces whose DELETEs time out.
fn deleted_beside_hanging(namespaces: usize, pods: usize, later: f64) -> Option<f64> {
    /// The weeder's timeout.
    const GIVEN_UP_AFTER: f64 = 10.0;
    let mut seed = begin("leading");
    for number in 0..namespaces {
        seed.then(&format!("{pods} recover in hanging-{number}"));
    }
    let (mut time, mut sent) = (0.0, Vec::new());
    while time < WATCH {
        if time >= later {
            seed.then("1 recover in well");
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
        time += wait;
        seed.then(&format!("{wait} s"));
        for (_, uid) in sent.extract_if(.., |(end, _)| *end <= time) {
            seed.answer(&uid, Outcome::Unknown);
        }
    }
    None
}

#[test]
fn hanging_deletes_hold_up_no_others() {
    for (namespaces, pods, later, at_most) in [
        (1, 8, 0.0, 0.0),
        (1, 32, 0.0, 0.0),
        (1, 200, 0.0, 0.0),
        (3, 200, 0.0, 0.0),
        // What was not tried goes before what hangs.
        (6, 40, 120.0, 10.0),
        // The first attempts use all capacity, once; then they are tried singly.
        (4, 64, 0.0, 10.0),
        (8, 200, 0.0, 20.0),
        (20, 15, 0.0, 50.0),
        (31, 200, 0.0, 80.0),
    ] {
        let deleted = deleted_beside_hanging(namespaces, pods, later);
        let is_soon = deleted.is_some_and(|after| after <= at_most);
        assert!(is_soon, "{namespaces} times {pods}: {deleted:?}");
    }
}

/// Median time of an event of one crash-looping pod, with 33 of them in each of so many namespaces,
/// as the controller calls the core.
fn cost_of_an_event(namespaces: usize, what: &str) -> Duration {
    let mut seed = begin("leading");
    for number in 0..namespaces {
        seed.then(&format!("33 {what} in n{number}"));
    }
    while !seed.try_all(Outcome::Refused).is_empty() {}
    let mut times: Vec<Duration> = (0..301)
        .map(|version| {
            let namespace = version % namespaces;
            let pod = pod(&format!("n{namespace}/00 alone version {version}"));
            let begin = Instant::now();
            let shown = Change::Applied(pod.0, pod.1.expect("readable"));
            seed.namespaces.apply_pods(shown, seed.now);
            seed.send();
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
    // With and without open windows.
    for what in ["recover", "crash"] {
        let [few, many] = [1, 300].map(|namespaces| cost_of_an_event(namespaces, what));
        println!("33 crash-looping pods: {few:?}, 9,900: {many:?}");
        assert!(many < few * 20, "{few:?}, {many:?}");
    }
}
