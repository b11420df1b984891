//! D-68, D-72: a write rests on a probe of the last seconds, and what others change on what is done
//! is done again.

use super::*;

// D-68: the nodes are well since 11 s.
#[test]
fn late_permit_wants_a_new_probe() {
    for leads in [true, false] {
        let taken_down = [14.0, 17.0, 20.0, 27.0].map(|permitted| {
            let mut replica = outage().leads(leads).holds_permits();
            replica.until(11.0).nodes_back();
            replica.until(permitted).permit(MCM);
            !replica.writes().is_empty()
        });
        assert_eq!(taken_down, [false; 4], "leads {leads}");
    }
}

#[test]
fn later_permit_of_a_restore_wants_one_too() {
    for (permitted, written) in [(39.0, ALL_UP[..1].to_vec()), (41.0, vec![])] {
        let mut leader = healthy().all_held_down().holds_permits();
        leader.until(30.0);
        leader.api = Api::Hangs;
        leader.until(permitted).permit(KCM);
        assert_eq!(leader.scaled(), written, "a permit at {permitted} s");
    }
}

#[test]
fn second_attempt_wants_a_new_probe() {
    let mut leader = outage().holds_writes();
    leader.until(11.0).nodes_back().until(17.0);
    leader.refuse(MCM, Refusal::Timeout).until(20.0);
    assert_eq!(leader.scaled(), ALL_DOWN, "each once");
}

/// D-72: so often a dependent was scaled to so many.
fn times(shoot: &Timeline, write: (DependentId, i32)) -> usize {
    let writes = shoot.scaled().into_iter();
    writes.filter(|one| *one == write).count()
}

#[test]
fn raised_during_a_hanging_write() {
    let mut leader = outage().holds_writes();
    leader.until(1.0);
    let order = leader.orders().remove(0);
    leader.make(&order).until(6.0).others(MCM, raise);
    leader.until(10.0);
    assert_eq!(times(&leader, (MCM, 0)), 2);
}

#[test]
fn raised_while_a_level_waits() {
    let mut leader = outage().config(|config| {
        config.dependents[KCM.0].scale_down.initial_delay = Duration::from_secs(120);
    });
    leader.until(3.0).others(MCM, raise).until(6.0);
    assert!(!leader.scaled().contains(&(KCM, 0)), "it waits");
    assert_eq!(times(&leader, (MCM, 0)), 2);
}

#[test]
fn taken_down_while_a_level_waits() {
    let mut leader = outage()
        .config(|config| config.dependents[MCM.0].scale_up.initial_delay = Duration::from_secs(30));
    leader.until(70.0).mark().nodes_back().until(8.0);
    assert_eq!(leader.scaled_from(0.0), [(KCM, 1)]);
    leader.others(KCM, take_down).until(28.0);
    assert_eq!(times(&leader, (KCM, 1)), 2);
}
