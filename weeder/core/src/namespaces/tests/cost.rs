//! Cost of an event of one pod.

use super::*;

/// Median time of an event of one crash-looping pod, with 33 of them in each of so many namespaces,
/// as the controller calls the core.
fn cost_of_an_event(namespaces: usize, windows_are_open: bool) -> Duration {
    let mut seed = TestSeed::leading(None);
    for namespace in 0..namespaces {
        if windows_are_open {
            seed.slice(&format!("n{namespace}/s"), ETCD, &["e"]);
        }
        for pod in 0..33 {
            let name = format!("n{namespace}/{pod}");
            seed.show(&name, candidate(&name, &name, &[ETCD]));
        }
    }
    while !seed.deletes(Outcome::Refused).is_empty() {}
    let mut times: Vec<Duration> = (0..301)
        .map(|version: usize| {
            let name = format!("n{}/0", version % namespaces);
            let shown = candidate_at(&version.to_string(), &name, &name, &[ETCD]);
            let begin = Instant::now();
            seed.show(&name, shown);
            seed.due();
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
