//! The owner record decides whether anything is written for a shoot here.

use super::*;

/// Where the config wants no passivation, checks fail, or the record cannot be resolved.
const ELSEWHERE: Owner = Owner::Elsewhere {
    passivates_since: None,
};

fn passivates(second: f64) -> Owner {
    Owner::Elsewhere {
        passivates_since: Some(at(second)),
    }
}

fn env_with(owner: Owner) -> OwnedEnvironment {
    OwnedEnvironment { owner, ..two() }
}

/// A shoot that belongs elsewhere, idle until it is to be passivated.
fn elsewhere() -> Rig {
    Rig::with(env_with(ELSEWHERE))
}

impl Rig {
    fn owner(&mut self, owner: Owner) {
        self.env.owner = owner;
        self.input(Input::Woken);
    }
}

fn down(at: DependentId) -> (DependentId, Option<i32>) {
    (at, Some(0))
}

fn orders(rig: &Rig) -> Vec<(DependentId, Option<i32>)> {
    rig.writes()
        .into_iter()
        .map(|(_, at, replicas)| (at, replicas))
        .collect()
}

#[test]
fn a_shoot_that_is_ours_is_protected_and_restored_as_ever() {
    let mut rig = Rig::leader().in_outage();
    rig.run(160.0);
    assert_eq!(orders(&rig), [down(MCM), down(KCM)]);
    rig.renewed();
    rig.run(300.0);
    assert_eq!(orders(&rig)[2..], [(KCM, Some(1)), (MCM, Some(1))]);
}

#[test]
fn nothing_is_written_before_the_first_check_is_over() {
    let mut rig = Rig::with(env_with(Owner::Unknown)).in_outage();
    rig.run(150.0);
    assert_eq!(rig.writes(), []);
    assert_eq!(
        rig.when(&Action::Report(Report::NotOwner(Direction::Down)), 0.0)
            .len(),
        1
    );
    rig.owner(Owner::Here);
    rig.run(151.0);
    assert_eq!(orders(&rig), [down(MCM), down(KCM)]);
}

#[test]
fn while_a_first_check_fails_the_leader_protects_and_nothing_else_is_done() {
    let unproven = || env_with(Owner::LeaderOnly);
    let mut leader = Rig::with(unproven()).in_outage();
    leader.run(160.0);
    assert_eq!(orders(&leader), [down(MCM), down(KCM)]);
    leader.renewed();
    leader.run(300.0);
    assert_eq!(leader.writes().len(), 2, "nothing is restored");
    leader.owner(Owner::Here);
    leader.run(310.0);
    assert_eq!(leader.writes().len(), 4);

    let mut standby = Rig::with(OwnedEnvironment {
        leads: false,
        ..unproven()
    })
    .in_outage();
    standby.run(200.0);
    assert_eq!(standby.writes(), []);
}

#[test]
fn a_flow_is_given_up_before_its_next_write_when_the_shoot_is_lost() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_permits = true;
    rig.run(132.0);
    assert_eq!(rig.shoot.scaling(), Some(Direction::Down));
    rig.owner(ELSEWHERE);
    assert!(rig.reported(&Report::Abandoned(Direction::Down)) && rig.shoot.scaling().is_none());
    // A permit that comes too late is given back.
    rig.holds_permits = false;
    rig.input(Input::Permitted(MCM));
    rig.run(400.0);
    assert_eq!(rig.writes(), []);
}

#[test]
fn one_odd_answer_holds_writes_back_and_costs_no_more() {
    let mut rig = Rig::leader().in_outage();
    rig.run(125.0);
    rig.owner(Owner::Unknown);
    rig.run(135.0);
    assert_eq!(rig.writes(), []);
    let probes = rig.probes(125.0).len();
    assert!(probes > 0, "it is probed all the same");
    rig.owner(Owner::Here);
    rig.run(136.0);
    assert_eq!(orders(&rig), [down(MCM), down(KCM)], "the verdict stands");
}

#[test]
fn a_replica_that_does_not_lead_has_no_second_write_because_the_record_has_changed() {
    let mut rig = Rig::standby().in_outage();
    rig.run(160.0);
    assert_eq!(orders(&rig), [down(MCM), down(KCM)]);
    rig.owner(passivates(160.0));
    rig.owner(Owner::Here);
    rig.others(KCM, |manager| {
        (manager.replicas, manager.marks) = (1, Marks::default())
    });
    rig.run(300.0);
    assert_eq!(orders(&rig), [down(MCM), down(KCM)]);
}

#[test]
fn a_level_that_is_still_to_come_is_not_written_when_the_shoot_is_lost() {
    let mut rig = Rig::leader().in_outage();
    rig.pods_linger = true;
    rig.run(132.0);
    assert_eq!(orders(&rig), [down(MCM)]);
    rig.owner(ELSEWHERE);
    rig.run(400.0);
    assert_eq!(orders(&rig), [down(MCM)]);
    assert!(rig.seen(MCM).marks.held_down, "annotations stay");
}

#[test]
fn a_restore_is_given_up_when_the_shoot_is_lost() {
    let held = [held("2"), held("3")]
        .map(|observed| DependentState::Present(Arc::new(observed)))
        .into();
    let mut rig = Rig::with(OwnedEnvironment {
        dependents: held,
        ..two()
    });
    rig.holds_permits = true;
    rig.run(60.0);
    assert_eq!(rig.shoot.scaling(), Some(Direction::Up));
    rig.owner(ELSEWHERE);
    assert!(rig.reported(&Report::Abandoned(Direction::Up)));
    rig.run(400.0);
    assert_eq!(rig.writes(), []);
}

#[test]
fn a_shoot_that_is_lost_is_not_probed() {
    let mut rig = Rig::leader();
    rig.run(100.0);
    rig.owner(ELSEWHERE);
    let probes = rig.probes(0.0).len();
    rig.run(1000.0);
    assert_eq!(rig.probes(0.0).len(), probes);
    assert_eq!(rig.shoot.next(), None);
    rig.owner(Owner::Here);
    rig.run(1001.0);
    assert!(rig.probes(0.0).len() > probes);
}

#[test]
fn a_probe_that_is_under_way_when_the_shoot_is_lost_and_found_again_is_not_sent_twice() {
    let mut rig = Rig::leader();
    rig.run(100.0);
    rig.api = Api::Hangs;
    rig.run(150.0);
    let (probes, sent) = (rig.probes(0.0).len(), rig.now);
    rig.owner(ELSEWHERE);
    rig.owner(Owner::Here);
    rig.run(160.0);
    assert_eq!(rig.probes(0.0).len(), probes);
    rig.api = Api::Answers;
    let actions = rig.answer(times(seconds(sent)));
    rig.follow(actions);
    rig.run(200.0);
    assert!(rig.probes(0.0).len() > probes);
}

#[test]
fn probing_starts_afresh_when_the_shoot_is_ours_again() {
    let held = [held("2"), held("3")]
        .map(|observed| DependentState::Present(Arc::new(observed)))
        .into();
    let mut healthy = Rig::with(OwnedEnvironment {
        dependents: held,
        ..env_with(ELSEWHERE)
    });
    healthy.run(500.0);
    healthy.owner(Owner::Here);
    healthy.run(600.0);
    let writes = healthy.writes();
    assert!(
        writes[0].0 >= 530.0,
        "a restore waits for initialDelay: {writes:?}"
    );
    assert_eq!(orders(&healthy), [(KCM, Some(3)), (MCM, Some(2))]);

    // Silence is believed only once it was watched for a renewal's time.
    let mut silent = Rig::with(env_with(ELSEWHERE)).in_outage();
    silent.run(500.0);
    silent.owner(Owner::Here);
    silent.run(600.0);
    let writes = silent.writes();
    assert!((511.0..525.0).contains(&writes[0].0), "{writes:?}");
}

#[test]
fn what_is_known_to_belong_elsewhere_is_passivated_in_the_order_of_a_scale_down() {
    let mut rig = elsewhere();
    rig.run(10.0);
    assert_eq!(rig.writes(), [], "one odd answer does nothing");
    rig.pods_linger = true;
    rig.owner(passivates(9.0));
    rig.run(12.0);
    assert_eq!(
        orders(&rig),
        [down(MCM)],
        "the next level waits for the pods"
    );
    rig.run(30.0);
    assert_eq!(orders(&rig), [down(MCM), down(KCM)]);
    for at in [MCM, KCM] {
        let marks = rig.seen(at).marks;
        assert!(
            marks.held_down && marks.replicas.as_deref() == Some("1"),
            "{marks:?}"
        );
    }
    assert_eq!(rig.probes(0.0).len(), 0);
}

#[test]
fn what_was_passivated_comes_back_in_order_when_it_is_ours_again() {
    let mut rig = elsewhere();
    rig.run(10.0);
    rig.owner(passivates(9.0));
    rig.run(30.0);
    rig.owner(Owner::Here);
    rig.run(100.0);
    assert_eq!(
        orders(&rig),
        [down(MCM), down(KCM), (KCM, Some(1)), (MCM, Some(1))]
    );
    assert!(rig.writes()[2].0 >= 60.0, "{:?}", rig.writes());
}

#[test]
fn nothing_is_passivated_unless_all_says_so() {
    let silent = |rig: &mut Rig, owner: Owner, why: &str| {
        rig.run(10.0);
        rig.owner(owner);
        rig.run(100.0);
        assert_eq!(rig.writes(), [], "{why}");
    };
    silent(&mut elsewhere(), Owner::Unknown, "it is not confirmed");
    silent(&mut elsewhere(), ELSEWHERE, "nothing says so");
    for (change, why) in [
        (
            (|env| env.leads = false) as fn(&mut OwnedEnvironment),
            "this replica does not lead",
        ),
        (|env| env.paused = Some(true), "it is paused"),
        (|env| env.is_ours = false, "its Cluster says otherwise"),
        (|env| env.seed_since.down = None, "the seed is not seen"),
    ] {
        let mut rig = elsewhere();
        change(&mut rig.env);
        silent(&mut rig, passivates(9.0), why);
    }
    let mut ignored = elsewhere();
    for at in [MCM, KCM] {
        ignored.show(at, |observed| observed.marks.ignored = true);
    }
    silent(&mut ignored, passivates(9.0), "ignore-scaling says so");
}

#[test]
fn what_others_bring_up_is_passivated_by_a_later_check() {
    let mut rig = elsewhere();
    rig.run(10.0);
    rig.owner(passivates(9.0));
    rig.run(30.0);
    rig.others(KCM, |manager| manager.replicas = 1);
    rig.run(40.0);
    assert_eq!(rig.writes().len(), 2, "the check is older than the change");
    rig.owner(passivates(39.0));
    rig.run(41.0);
    assert_eq!(orders(&rig)[2..], [down(KCM)]);
}

#[test]
fn a_passivation_is_given_up_when_the_shoot_is_ours_or_the_record_cannot_be_resolved_any_more() {
    for then in [Owner::Here, ELSEWHERE] {
        let mut rig = elsewhere();
        rig.run(10.0);
        rig.pods_linger = true;
        rig.owner(passivates(9.0));
        rig.run(11.0);
        rig.owner(then);
        assert!(rig.reported(&Report::Abandoned(Direction::Down)));
        rig.run(35.0);
        assert!(!orders(&rig).contains(&down(KCM)), "{then:?}");
    }
}
