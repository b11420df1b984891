//! The owner record decides whether anything is written for a shoot here.

use super::*;

/// Nothing is passivated: the config wants none, checks fail, or the record cannot be resolved.
const ELSEWHERE: Owner = Owner::Elsewhere {
    passivates_since: None,
};

impl Timeline {
    fn owner(&mut self, owner: Owner) -> &mut Self {
        self.env.owner = owner;
        self.input(Input::Woken)
    }

    /// It is to be passivated by a check that was sent then.
    fn passivate(&mut self, checked: f64) -> &mut Self {
        let checked = self.moment(checked);
        self.owner(Owner::Elsewhere {
            passivates_since: Some(checked),
        })
    }

    fn of(self, owner: Owner) -> Self {
        self.with(|env| env.owner = owner)
    }
}

/// A shoot that belongs elsewhere, idle until it is to be passivated.
fn elsewhere() -> Timeline {
    healthy().of(ELSEWHERE)
}

#[test]
fn unknown_owner_holds_writes_back() {
    // At the start, and by one odd answer.
    for unknown_from in [-130.0, -5.0] {
        let mut leader = outage();
        leader.until(unknown_from).owner(Owner::Unknown).until(5.0);
        assert_eq!(leader.writes(), []);
        let not_owner = Report::NotOwner(Direction::Down);
        assert_eq!(leader.reported(not_owner), 1);
        assert!(!leader.probes(-5.0).is_empty(), "it is probed all the same");
        leader.owner(Owner::Here).until(6.0);
        assert_eq!(leader.scaled(), ALL_DOWN);
    }
}

#[test]
fn failing_check_lets_protect() {
    let mut leader = outage().of(Owner::LeaderOnly);
    leader.until(30.0).nodes_back().until(170.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
    leader.owner(Owner::Here).until(180.0);
    assert_eq!(leader.scaled()[2..], ALL_UP);

    let mut standby = outage().standby().of(Owner::LeaderOnly);
    standby.until(70.0);
    assert_eq!(standby.writes(), []);
}

#[test]
fn lost_shoot_is_left_alone() {
    let restoring = healthy().all_held_down().holds_permits();
    for (mut leader, lost, direction, written) in [
        (outage().holds_permits(), 2.0, Direction::Down, vec![]),
        (outage().pods_linger(), 2.0, Direction::Down, vec![(MCM, 0)]),
        (restoring, 60.0, Direction::Up, vec![]),
    ] {
        leader.until(lost);
        assert_eq!(leader.shoot.scaling(), Some(direction));
        leader.owner(ELSEWHERE);
        assert_eq!(leader.shoot.scaling(), None);
        assert_eq!(leader.reported(Report::Abandoned(direction)), 1);
        let marks = leader.seen(MCM).marks;
        leader.seed.holds_permits = false;
        leader.permit(MCM).until(300.0);
        assert_eq!(leader.scaled(), written, "a late permit is given back");
        assert_eq!(leader.seen(MCM).marks, marks, "annotations stay");
    }
}

#[test]
fn regaining_gives_no_second_turn() {
    let mut standby = outage().standby();
    standby.until(30.0).passivate(30.0).owner(Owner::Here);
    standby.others(KCM, undo).until(170.0);
    assert_eq!(standby.scaled(), ALL_DOWN);
}

#[test]
fn lost_shoot_is_not_probed() {
    let mut leader = healthy();
    leader.until(100.0).owner(ELSEWHERE).until(1000.0);
    assert_eq!(leader.probes(100.1), NEVER);
    assert_eq!(leader.shoot.next(), None);
    leader.owner(Owner::Here).until(1001.0);
    assert!(!leader.probes(1000.0).is_empty());
}

#[test]
fn probe_is_not_sent_twice() {
    let mut leader = healthy();
    leader.until(100.0);
    leader.api = Api::Hangs;
    leader.until(150.0);
    let probes = leader.probes(0.0).len();
    leader.owner(ELSEWHERE).owner(Owner::Here).until(160.0);
    assert_eq!(leader.probes(0.0).len(), probes);
    leader.api = Api::Answers;
    leader.answer(150.0).until(200.0);
    assert!(leader.probes(0.0).len() > probes);
}

#[test]
fn regained_shoot_starts_afresh() {
    let mut held_down = elsewhere().all_held_down();
    held_down
        .until(500.0)
        .mark()
        .owner(Owner::Here)
        .until(100.0);
    assert_eq!(held_down.scaled(), ALL_UP);
    assert!(held_down.writes()[0].0 >= 30.0, "after initialDelay");

    let mut new = elsewhere().eligible(0.0).silent(-50.0);
    new.until(10.0).mark().owner(Owner::Here).until(100.0);
    assert_eq!(new.writes()[0], (30.0, MCM, 0), "after initialDelay");

    let mut silent = elsewhere().silent(104.5);
    silent.until(500.0).mark().owner(Owner::Here).until(100.0);
    let (first, ..) = silent.writes()[0];
    assert!(
        (11.0..25.0).contains(&first),
        "silence is believed once it was watched for a renewal's time: {first}"
    );
}

#[test]
fn passivation_keeps_the_order() {
    let mut leader = elsewhere().pods_linger();
    leader.until(10.0);
    assert_eq!(leader.writes(), [], "one odd answer does nothing");
    leader.passivate(9.0).until(12.0);
    assert_eq!(leader.scaled(), [(MCM, 0)], "the next level waits for pods");
    leader.until(30.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
    for id in [MCM, KCM] {
        assert_eq!(leader.seen(id).marks, held("1").marks);
    }
    assert_eq!(leader.probes(0.0), NEVER);
}

#[test]
fn passivated_comes_back() {
    let mut leader = elsewhere();
    leader.until(10.0).passivate(9.0).until(30.0).mark();
    leader.owner(Owner::Here).until(70.0);
    assert_eq!(leader.scaled_from(0.0), ALL_UP);
    assert!(leader.writes_from(0.0)[0].0 >= 30.0, "after initialDelay");
}

#[test]
fn passivation_needs_all_to_say_so() {
    type Change = fn(&mut Timeline);
    #[rustfmt::skip]
    let cases: [(&str, Change); 7] = [
        ("it is not confirmed", |leader| leader.env.owner = Owner::Unknown),
        ("nothing says so", |leader| leader.env.owner = ELSEWHERE),
        ("this replica does not lead", |leader| leader.env.leads = false),
        ("it is paused", |leader| leader.env.paused = Some(true)),
        ("its Cluster says otherwise", |leader| leader.env.is_ours = false),
        ("the seed is not seen", |leader| leader.env.seed_since.down = None),
        ("operators say otherwise", |leader| _ = leader.show(MCM, ignore).show(KCM, ignore)),
    ];
    for (why, change) in cases {
        let mut leader = elsewhere();
        leader.until(10.0);
        leader.env.owner = Owner::Elsewhere {
            passivates_since: Some(leader.moment(9.0)),
        };
        change(&mut leader);
        leader.until(100.0);
        assert_eq!(leader.writes(), [], "{why}");
    }
}

#[test]
fn later_check_passivates_again() {
    let mut leader = elsewhere();
    leader.until(10.0).passivate(9.0).until(30.0);
    leader.others(KCM, raise).until(40.0);
    assert_eq!(leader.scaled(), ALL_DOWN, "the check is older than that");
    leader.passivate(39.0).until(41.0);
    assert_eq!(leader.scaled()[2..], [(KCM, 0)]);
}

#[test]
fn passivation_ends_with_its_reason() {
    for then in [Owner::Here, ELSEWHERE] {
        let mut leader = elsewhere().pods_linger();
        leader.until(10.0).passivate(9.0).until(11.0).owner(then);
        assert_eq!(leader.reported(Report::Abandoned(Direction::Down)), 1);
        leader.until(35.0);
        assert!(!leader.scaled().contains(&(KCM, 0)), "{then:?}");
    }
}
