//! D-53: recovery is noticed soon.

use super::*;

#[test]
fn leader_probes_twice_a_beat() {
    let mut leader = outage();
    leader.until(120.0);
    let probes = leader.probes(1.0);
    assert!(longest_gap(&probes) <= 5.001, "{probes:?}");

    let mut standby = outage().standby();
    standby.until(120.0);
    let probes = standby.probes(2.0);
    assert!(longest_gap(&probes) > 15.0, "{probes:?}");
    standby.gain_lead().until(150.0);
    let probes = standby.probes(120.0);
    assert!(
        probes[0] <= 125.0 && longest_gap(&probes) <= 5.001,
        "{probes:?}"
    );
}

#[test]
fn failed_probe_is_repeated_in_5_s() {
    for leads in [true, false] {
        let mut replica = outage().leads(leads);
        replica.until(20.0);
        replica.api = FAILS;
        replica.until(120.0);
        let probes = replica.probes(40.0);
        assert!(longest_gap(&probes) <= 5.001, "leads {leads}: {probes:?}");
    }
}

impl Timeline {
    fn nodes_listed(&self, from: f64) -> Vec<f64> {
        let mut listed = self.when(&Action::ListNodes);
        listed.retain(|when| *when >= from);
        listed
    }
}

#[test]
fn silent_nodes_are_listed_rarely() {
    let mut leader = outage();
    leader.until(130.0);
    let listed = leader.nodes_listed(10.0);
    assert!(leader.probes(10.0).len() >= 20);
    assert!((3..=5).contains(&listed.len()), "{listed:?}");
    assert!(longest_gap(&listed) <= 35.0, "as often as configured");
}

/// In an outage, while probes follow each other closely and leases expire over nine seconds.
fn probed_closely() -> Timeline {
    let mut leader = outage().silent(-25.1).of_nodes(90).holds_writes();
    leader.until(4.4);
    leader
}

#[test]
fn close_probes_list_the_nodes_once() {
    let leader = probed_closely();
    let probes = leader.probes(-0.1);
    assert!(probes.len() >= 4, "{probes:?}");
    assert_eq!(leader.nodes_listed(-0.1), probes[..1]);
    let expired = leader.shoot.finding().expect("a finding").tally.expired;
    assert!((60..90).contains(&expired), "{expired} expired");
}

#[test]
fn renewal_lists_nodes_again() {
    type Change = fn(&mut Timeline);
    let renewal: Change = |leader| leader.nodes.spared = 1;
    let view: Change = |leader| leader.env.seed_since.down = Some(leader.moment(4.4));
    for change in [renewal, view] {
        let mut leader = probed_closely();
        change(&mut leader);
        leader.until(5.4);
        assert_eq!(leader.nodes_listed(4.4), leader.probes(4.4)[..1]);
    }
}

#[test]
fn renewals_list_nodes_each_time() {
    let mut leader = outage();
    leader.until(70.0);
    // One of three is not enough to end the outage.
    leader.nodes.spared = 1;
    leader.until(110.0);
    assert_eq!(leader.verdict(), Verdict::ScaleDown);
    let probes = leader.probes(70.001);
    assert!(probes.len() >= 5, "{probes:?}");
    assert_eq!(leader.nodes_listed(70.001), probes);
}

#[test]
fn restore_within_half_a_beat() {
    let mut leader = outage();
    leader.until(70.0).mark().nodes_back().until(16.0);
    assert_eq!(leader.scaled_from(0.0), ALL_UP);
    assert!(leader.writes_from(0.0)[0].0 <= 5.2);
}

#[test]
fn restore_waits_for_pods_for_5_s() {
    for (pods_linger, next_level) in [(false, 30.0), (true, 35.0)] {
        let mut leader = healthy().all_held_down();
        leader.seed.pods_linger = pods_linger;
        leader.until(60.0);
        assert_eq!(leader.writes(), [(30.0, KCM, 1), (next_level, MCM, 1)]);
        let late = leader.reported(Report::NotReady(KCM));
        assert_eq!(late, usize::from(pods_linger));
    }
}

#[test]
fn broken_view_forgets_nothing() {
    let mut leader = outage();
    leader.until(30.0);
    leader.env.dependents = vec![DependentState::Unknown; 2];
    leader.nodes_back().until(70.0);
    let mut dependents = leader.shoot.dependents();
    assert!(dependents.all(DependentRecord::is_last_known_held_down));
}
