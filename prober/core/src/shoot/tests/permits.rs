//! What is written is decided once the permit is there.

use super::*;

/// A leader that waits for the permit to take machine-controller-manager down.
fn asking() -> Rig {
    let mut rig = Rig::leader().in_outage();
    rig.holds_permits = true;
    rig.run(131.0);
    assert_eq!(
        rig.when(&Action::AcquirePermit(MCM, Direction::Down), 0.0),
        [OUTAGE]
    );
    rig
}

#[test]
fn a_permit_is_given_back_if_the_resource_has_changed_and_what_it_is_now_is_judged_again() {
    let mut rig = asking();
    rig.api = Api::Hangs;
    rig.others(MCM, |observed| observed.replicas = 3);
    rig.input(Input::Permitted(MCM));
    assert_eq!(
        (rig.when(&Action::Cancel(MCM), 0.0), rig.writes()),
        (vec![131.0], vec![])
    );
    assert_eq!(rig.probes(131.0), [131.0]);
    (rig.api, rig.holds_permits) = (Api::Answers, false);
    rig.now = at(131.1);
    rig.input(Input::Failed(ProbeFailure::Other));
    rig.run(140.0);
    assert_eq!(
        rig.writes()
            .iter()
            .map(|write| (write.1, write.2))
            .collect::<Vec<_>>(),
        [(MCM, Some(0)), (KCM, Some(0))]
    );
    assert_eq!(rig.seen(MCM).marks.replicas.as_deref(), Some("3"));
    assert!(rig.orders()[0].judged_at > at(131.0));
}

#[test]
fn a_permit_is_given_back_if_others_have_done_it() {
    let mut rig = asking();
    rig.show(MCM, |observed| *observed = held("1"));
    rig.input(Input::Permitted(MCM));
    assert_eq!(
        (rig.when(&Action::Cancel(MCM), 0.0), rig.writes()),
        (vec![131.0], vec![])
    );
    assert_eq!(
        rig.when(&Action::AcquirePermit(KCM, Direction::Down), 0.0),
        [131.0]
    );
}

#[test]
fn a_verdict_that_turns_gives_up_what_waits_for_a_permit() {
    let mut rig = asking();
    rig.renewed();
    rig.run(150.0);
    assert_eq!(rig.verdict(), Verdict::ScaleUp);
    assert_eq!(rig.when(&Action::Cancel(MCM), 0.0).len(), 1);
    assert!(rig.reported(&Report::Abandoned(Direction::Down)));
    rig.input(Input::Permitted(MCM));
    assert_eq!(
        (rig.when(&Action::Cancel(MCM), 0.0).len(), rig.writes()),
        (2, vec![])
    );
}

#[test]
fn a_scale_down_goes_on_while_probes_fail_and_a_scale_up_waits() {
    let mut rig = asking();
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.run(131.5);
    assert!(rig.shoot.failures() > 0);
    rig.input(Input::Permitted(MCM));
    assert_eq!(rig.writes(), [(131.5, MCM, Some(0))]);

    let mut env = two();
    env.dependents = vec![DependentState::Present(Arc::new(held("1"))); 2];
    let mut rig = Rig::with(env);
    rig.holds_permits = true;
    rig.run(31.0);
    assert_eq!(
        rig.when(&Action::AcquirePermit(KCM, Direction::Up), 0.0),
        [30.0]
    );
    rig.api = Api::Fails(ProbeFailure::Other);
    rig.settings_changed();
    rig.input(Input::Permitted(KCM));
    assert_eq!(
        (rig.when(&Action::Cancel(KCM), 0.0), rig.writes()),
        (vec![31.0], vec![])
    );
    (rig.api, rig.holds_permits) = (Api::Answers, false);
    rig.run(40.0);
    assert_eq!(rig.writes().len(), 2);
}

#[test]
fn after_a_conflict_the_resource_is_read_probed_for_and_decided_on_again() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.run(131.0);
    // The view does not show it yet, but the read does.
    let before = rig.env.dependents[MCM.0].clone();
    rig.show(MCM, |observed| observed.replicas = 2);
    let after = std::mem::replace(&mut rig.env.dependents[MCM.0], before);
    let actions = rig.take(Input::Written(MCM, Err(Refusal::Conflict)));
    assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::Read(MCM, _))),
        "{actions:?}"
    );
    rig.holds_writes = false;
    rig.input(Input::Read(MCM, Ok(after)));
    rig.run(132.0);
    assert_eq!(
        rig.writes(),
        [
            (OUTAGE, MCM, Some(0)),
            (131.0, MCM, Some(0)),
            (131.0, KCM, Some(0))
        ]
    );
    assert!(
        rig.orders()[1].judged_at > at(131.0),
        "probed after it was read"
    );
    assert_eq!(rig.seen(MCM).marks.replicas.as_deref(), Some("2"));
}

#[test]
fn what_went_away_at_its_write_is_done() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    rig.run(131.0);
    rig.holds_writes = false;
    rig.input(Input::Written(MCM, Err(Refusal::NotFound)));
    rig.run(150.0);
    assert_eq!(rig.writes().len(), 2, "that of the other included");
}
