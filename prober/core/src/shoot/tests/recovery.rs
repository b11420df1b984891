//! D-53: recovery is noticed soon.

use super::*;

#[test]
fn a_leader_probes_twice_a_beat_while_anything_is_held_down_and_a_standby_does_not() {
    let mut leader = Rig::leader().in_outage();
    leader.run(250.0);
    assert!(
        longest_gap(&leader.probes(131.0)) <= 5.001,
        "{:?}",
        leader.probes(131.0)
    );
    let mut standby = Rig::standby().in_outage();
    standby.run(250.0);
    assert!(
        longest_gap(&standby.probes(132.0)) > 15.0,
        "{:?}",
        standby.probes(132.0)
    );
}

#[test]
fn whoever_gains_the_lead_does_so_from_then_on() {
    let mut rig = Rig::standby().in_outage();
    rig.run(200.0);
    rig.env.leads = true;
    rig.run(230.0);
    let probes = rig.probes(200.0);
    assert!(
        probes[0] <= 205.0 && longest_gap(&probes) <= 5.001,
        "{probes:?}"
    );
}

#[test]
fn a_leader_does_so_also_while_probes_fail() {
    let mut rig = Rig::leader().in_outage();
    rig.run(140.0);
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.run(250.0);
    assert!(
        longest_gap(&rig.probes(140.0)) <= 5.001,
        "{:?}",
        rig.probes(140.0)
    );
}

#[test]
fn nodes_are_not_listed_at_each_of_these_probes_before_a_lease_is_renewed() {
    let mut rig = Rig::leader().in_outage();
    rig.run(260.0);
    let (probes, lists) = (rig.probes(140.0).len(), rig.when(&Action::ListNodes, 140.0));
    assert!(
        probes >= 20 && (3..=5).contains(&lists.len()),
        "{probes} probes, nodes at {lists:?}"
    );
    assert!(
        longest_gap(&lists) <= 35.0,
        "as often as configured all the same: {lists:?}"
    );
}

/// In an outage, while probes follow each other closely and leases expire over nine seconds.
fn probed_closely() -> Rig {
    let mut rig = Rig::leader().in_outage();
    (rig.nodes, rig.machines) = (90, machines(90));
    rig.holds_writes = true;
    rig.run(134.5);
    rig
}

#[test]
fn probes_that_follow_each_other_closely_list_nodes_once() {
    let rig = probed_closely();
    let (probes, lists) = (rig.probes(130.0), rig.when(&Action::ListNodes, 130.0));
    assert!(
        probes.len() >= 4 && lists == probes[..1],
        "probes at {probes:?}, nodes at {lists:?}"
    );
    let expired = rig.shoot.finding().expect("a finding").tally.expired;
    assert!((60..90).contains(&expired), "{expired} expired");
}

#[test]
fn they_list_them_again_when_a_lease_is_renewed_or_the_seed_is_known_again() {
    for change in [(|rig: &mut Rig| rig.spared = 1) as fn(&mut Rig), |rig| {
        rig.env.seed_since.down = Some(rig.now)
    }] {
        let mut rig = probed_closely();
        change(&mut rig);
        rig.run(135.5);
        let lists = rig.when(&Action::ListNodes, 134.5);
        assert_eq!(lists, rig.probes(134.5)[..1]);
    }
}

#[test]
fn nodes_are_listed_as_soon_as_a_lease_is_renewed() {
    let mut rig = Rig::leader().in_outage();
    rig.run(200.0);
    let before = rig.when(&Action::ListNodes, 0.0).len();
    // One of three is not enough to end the outage.
    rig.spared = 1;
    rig.run(240.0);
    assert_eq!(rig.verdict(), Verdict::ScaleDown);
    let probes = rig.probes(200.001);
    assert!(probes.len() >= 5, "{probes:?}");
    assert_eq!(
        rig.when(&Action::ListNodes, 0.0).len() - before,
        probes.len()
    );
}

#[test]
fn what_is_held_down_comes_back_within_half_a_beat_of_its_nodes() {
    let mut rig = Rig::leader().in_outage();
    rig.run(200.0);
    rig.renewed();
    rig.run(216.0);
    let restored = rig.writes()[2];
    assert_eq!((restored.1, restored.2), (KCM, Some(1)));
    assert!((200.0..=205.2).contains(&restored.0), "{restored:?}");
}

#[test]
fn what_was_held_down_stays_so_in_a_broken_view() {
    let mut rig = Rig::leader().in_outage();
    rig.run(160.0);
    rig.env.dependents = vec![DependentState::Unknown; 2];
    rig.renewed();
    rig.run(200.0);
    let mut dependents = rig.shoot.dependents();
    assert!(dependents.all(DependentRecord::is_last_known_held_down));
}
