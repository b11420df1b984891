//! D-74: nothing blocks the way back for ever, whatever cannot be scaled and why.

use super::*;

/// A third dependent, which goes down and comes up with the first ones.
const AUX: DependentId = DependentId(2);
/// Each dependent's `scaleUp.timeout`.
const TIMEOUT: f64 = 30.0;

/// A shoot with a dependent in this state whose nodes fall silent, and are back at 200 s.
fn restored_with(state: DependentState, optional: bool, level: i32) -> Rig {
    let mut env = two();
    let mut aux = dependent("aux", level, 0);
    aux.optional = optional;
    Arc::make_mut(&mut env.config).dependents.push(aux);
    env.dependents.push(state);
    let mut rig = Rig::with(env).in_outage();
    rig.run(200.0);
    rig
}

fn present() -> DependentState {
    DependentState::Present(Arc::new(running(1)))
}

impl Rig {
    /// When a dependent was last told to come up.
    fn raised(&self, id: DependentId) -> Option<f64> {
        let raised = |write: &&(f64, DependentId, Option<i32>)| {
            write.1 == id && write.2.is_some_and(|replicas| replicas > 0)
        };
        let writes = self.writes();
        writes.iter().rev().find(raised).map(|write| write.0)
    }

    /// When it was reported that a dependent cannot be scaled in a direction.
    fn failures(&self, id: DependentId, direction: Direction) -> Vec<f64> {
        let failed = self.said(|action| match action {
            Action::Report(Report::NotScaled(at, where_to, _)) => {
                (*at == id && *where_to == direction).then_some(())
            }
            _ => None,
        });
        failed.into_iter().map(|(when, ())| when).collect()
    }
}

#[test]
fn what_can_never_be_scaled_delays_the_later_levels_by_its_timeout_and_no_longer() {
    let never = [
        DependentState::Unknown,
        DependentState::Absent,
        DependentState::NoSuchKind,
    ];
    for state in never {
        for optional in [false, true] {
            let mut rig = restored_with(state.clone(), optional, 0);
            assert_eq!(rig.writes().len(), 2, "{state:?}: the others went down");
            rig.renewed();
            rig.run(400.0);
            let [kcm, mcm] = [KCM, MCM].map(|id| rig.raised(id).expect("restored"));
            assert!(kcm < 206.0, "{state:?}: {kcm}");
            // Of what is optional, absence is no failure.
            let delay = match (&state, optional) {
                (DependentState::Absent, true) => 0.0,
                _ => TIMEOUT,
            };
            assert!(
                (delay..delay + 1.1).contains(&(mcm - kcm)),
                "{state:?}: {kcm} and {mcm}"
            );
            assert_eq!(
                rig.reported(&Report::LeftBehind(AUX)),
                delay > 0.0,
                "{state:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_written_delays_them_no_longer_either_and_comes_back_when_it_can_be() {
    for optional in [false, true] {
        let mut rig = restored_with(present(), optional, 0);
        assert_eq!(rig.writes().len(), 3);
        rig.refused = Some(AUX);
        rig.renewed();
        rig.run(400.0);
        let [kcm, mcm] = [KCM, MCM].map(|id| rig.raised(id).expect("restored"));
        assert!(
            (TIMEOUT..TIMEOUT + 1.1).contains(&(mcm - kcm)),
            "{kcm} {mcm}"
        );
        rig.refused = None;
        rig.run(720.0);
        assert!(rig.shoot.dependent(AUX).has_replicas());
    }
}

#[test]
fn at_the_last_level_it_delays_nothing() {
    let mut rig = restored_with(DependentState::NoSuchKind, false, 2);
    rig.renewed();
    rig.run(230.0);
    let [kcm, mcm] = [KCM, MCM].map(|id| rig.raised(id).expect("restored"));
    assert!(mcm - kcm < 1.1, "{kcm} {mcm}");
    assert!(!rig.reported(&Report::LeftBehind(AUX)));
}

#[test]
fn it_is_tried_again_ever_more_rarely() {
    let mut rig = restored_with(present(), false, 0);
    rig.refused = Some(AUX);
    rig.renewed();
    rig.run(4000.0);
    let failures = rig.failures(AUX, Direction::Up);
    let first = failures[0];
    assert!(
        (12..=20).contains(&failures.len()),
        "{} in an hour: {failures:?}",
        failures.len()
    );
    assert!(failures[2] < first + 8.0, "soon again: {failures:?}");
    let late: Vec<_> = failures.into_iter().filter(|at| *at > 1500.0).collect();
    let gaps = late.windows(2).map(|two| two[1] - two[0]);
    assert!(
        gaps.into_iter().all(|gap| (300.0..320.0).contains(&gap)),
        "{late:?}"
    );
}

#[test]
fn what_was_unknown_is_tried_as_soon_as_it_is_known() {
    // While it is waited for, and long after the others are back.
    for known_from in [212.0, 1000.0] {
        let mut rig = restored_with(DependentState::Unknown, false, 0);
        rig.renewed();
        rig.run(known_from);
        rig.env.dependents[AUX.0] = DependentState::Present(Arc::new(held("1")));
        rig.run(known_from + 25.0);
        let raised = rig.raised(AUX).expect("restored");
        assert!(raised < known_from + 21.0, "{raised}");
    }
}

#[test]
fn a_write_that_hangs_is_not_waited_for_longer() {
    let mut rig = restored_with(present(), false, 0);
    rig.renewed();
    rig.holds_writes = true;
    rig.run(206.0);
    let orders = rig.orders();
    let [kcm, aux] = [KCM, AUX].map(|id| {
        let order = orders.iter().rev().find(|order| order.dependent == id);
        order.cloned().expect("ordered")
    });
    let opened = rig.raised(AUX).expect("ordered");
    rig.holds_writes = false;
    let actions = rig.write(&kcm);
    rig.follow(actions);
    rig.run(opened + TIMEOUT - 0.1);
    assert!(rig.raised(MCM).is_none());
    rig.holds_writes = true;
    rig.run(opened + TIMEOUT);
    let actions = rig.take(Input::Written(aux.dependent, Err(Refusal::Timeout)));
    rig.follow(actions);
    rig.run(opened + TIMEOUT + 1.2);
    assert!(rig.raised(MCM).is_some());
}

#[test]
fn what_only_waits_for_its_delay_or_its_permit_is_not_left_behind() {
    let mut rig = restored_with(present(), false, 0);
    let dependents = &mut Arc::make_mut(&mut rig.env.config).dependents;
    dependents[AUX.0].scale_up.initial_delay = Duration::from_secs(40);
    rig.renewed();
    rig.run(400.0);
    let [kcm, aux, mcm] = [KCM, AUX, MCM].map(|id| rig.raised(id).expect("restored"));
    assert!(kcm + 40.0 <= aux && aux <= mcm, "{kcm} {aux} {mcm}");

    let mut rig = restored_with(present(), false, 0);
    rig.renewed();
    rig.holds_permits = true;
    rig.run(300.0);
    assert_eq!(rig.raised(MCM), None);
    assert_eq!(
        rig.when(&Action::AcquirePermit(MCM, Direction::Up), 200.0),
        [0.0; 0]
    );
}

#[test]
fn in_an_outage_it_is_reported_ever_more_rarely_and_written_as_soon_as_it_can_be() {
    let cases: [(DependentState, Option<DependentId>); 2] =
        [(DependentState::Unknown, None), (present(), Some(AUX))];
    for (state, refused) in cases {
        let mut rig = restored_with(present(), false, 0);
        rig.renewed();
        rig.run(400.0);
        (rig.env.dependents[AUX.0], rig.refused) = (state, refused);
        rig.silent(405.0);
        rig.run(750.0);
        let failures = rig.failures(AUX, Direction::Down);
        assert!((5..=10).contains(&failures.len()), "{failures:?}");
        rig.refused = None;
        rig.env.dependents[AUX.0] = present();
        rig.run(756.0);
        assert!(rig.shoot.dependent(AUX).is_held_down(), "as ever");
    }
}

#[test]
fn each_outage_and_each_restore_reports_it_at_once() {
    let mut rig = restored_with(DependentState::Unknown, false, 0);
    rig.renewed();
    rig.run(400.0);
    rig.silent(405.0);
    rig.run(435.0);
    rig.renewed();
    rig.run(450.0);
    let reported = |direction, from: f64, until: f64| {
        let failures = rig.failures(AUX, direction);
        failures.iter().any(|at| (from..until).contains(at))
    };
    assert!(reported(Direction::Down, 430.0, 432.0));
    assert!(reported(Direction::Up, 435.0, 446.0));
}

#[test]
fn a_seed_that_refuses_all_protective_writes_for_seconds_costs_no_node() {
    let mut rig = Rig::leader().in_outage();
    rig.holds_writes = true;
    let refuse_until = |rig: &mut Rig, until: f64| {
        let mut answered = 0;
        while seconds(rig.now) < until {
            rig.run(seconds(rig.now) + 0.05);
            for order in rig.orders().split_off(answered) {
                answered += 1;
                let refused = Refusal::Unavailable {
                    code: 503,
                    said: String::new(),
                };
                rig.input(Input::Written(order.dependent, Err(refused)));
            }
        }
        answered
    };
    rig.run(OUTAGE - 0.1);
    let refused = refuse_until(&mut rig, OUTAGE + 4.0);
    assert!(refused > 6, "{refused}");
    rig.holds_writes = false;
    rig.run(DEADLINE + 1.0);
    assert_eq!(
        rig.writes()[refused..]
            .iter()
            .map(|write| (write.1, write.2))
            .collect::<Vec<_>>(),
        [(MCM, Some(0)), (KCM, Some(0))]
    );
}
