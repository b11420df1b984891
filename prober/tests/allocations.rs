//! What a probe allocates: counts, so that they hold on any machine.

#[path = "../benches/bodies.rs"]
mod bodies;
#[path = "../benches/probing.rs"]
mod probing;
#[path = "../benches/work.rs"]
mod work;

use allocation_counter::{AllocationInfo, measure};
use probing::ProbeBench;
use work::SteadyShoot;

/// 5,000 nodes in their steady state.
const LARGE: usize = 5_000;

#[test]
fn decoding_leases_allocates_the_names_the_entries_and_the_version_only() {
    let shoot = SteadyShoot::new(LARGE);
    let mut leases = None;
    let info = measure(|| leases = Some(work::decode(bodies::PROTOBUF, &shoot.protobuf)));
    assert_eq!(leases.map(|leases| leases.len()), Some(LARGE));
    assert_eq!(info.count_total, 3, "{info:?}");
}

#[test]
fn leases_that_are_known_are_taken_in_without_any_allocation() {
    let mut shoot = SteadyShoot::new(LARGE);
    let leases = work::decode(bodies::PROTOBUF, &shoot.protobuf);
    let info = measure(|| shoot.judge.observe(shoot.times, leases.iter(), work::GRACE));
    assert_eq!(work::judge(&shoot).tally.candidates, LARGE);
    assert_eq!(info, AllocationInfo::default());
}

#[test]
fn a_verdict_allocates_the_same_few_tables_for_any_number_of_nodes() {
    for count in [10, LARGE] {
        for shoot in [
            SteadyShoot::new(count),
            SteadyShoot::new(count).with_nodes(),
        ] {
            let info = measure(|| assert_eq!(work::judge(&shoot).tally.candidates, count));
            // The names of the 20 oldest leases are kept for people.
            assert!(info.count_total <= 8 + 20, "{count} nodes: {info:?}");
        }
    }
}

#[test]
fn a_healthy_probe_over_tls_allocates_no_more_for_more_nodes() {
    let [few, many] = [10, 100].map(|count| ProbeBench::new(count).allocations(ProbeBench::leases));
    // 35 and 40 were counted: five are ours (the path, the body, the names, the entries, the
    // version), all else is hyper's and rustls'.
    assert!(few.count_total <= 45, "{few:?}");
    assert!(many.count_total <= few.count_total + 10, "{few:?} {many:?}");
}
