//! D-74: nothing blocks the way back for ever, whatever cannot be scaled and why.

use super::*;

/// A third dependent, which goes down and comes up with the first ones.
const AUX: DependentId = DependentId(2);
/// Each dependent's `scaleUp.timeout`.
const TIMEOUT: f64 = 30.0;

/// A shoot with a dependent in this state whose nodes fall silent, and are back at 0 s.
fn restored_with(state: DependentState, optional: bool, level: i32) -> Timeline {
    let mut aux = dependent("aux", level, 0);
    aux.optional = optional;
    let mut leader = outage().config(|config| config.dependents.push(aux));
    leader = leader.with(|env| env.dependents.push(state));
    leader.until(70.0).mark().nodes_back();
    leader
}

fn running_one() -> DependentState {
    present(running(1))
}

impl Timeline {
    /// Time at which a dependent was last told to come up.
    fn raised(&self, id: DependentId) -> Option<f64> {
        let mut writes = self.writes_from(0.0).into_iter().rev();
        let raised = writes.find(|(_, of, replicas)| *of == id && *replicas > 0);
        raised.map(|(when, ..)| when)
    }

    /// Time between the restores of kube-controller-manager and machine-controller-manager, whose
    /// level is the next.
    fn next_level_after(&self) -> f64 {
        let [kcm, mcm] = [KCM, MCM].map(|id| self.raised(id).expect("restored"));
        assert!(kcm < 6.0, "{kcm}");
        mcm - kcm
    }

    /// Times of the reports that a dependent cannot be scaled in a direction.
    fn failures(&self, id: DependentId, direction: Direction) -> Vec<f64> {
        let failed = self.said(|action| match action {
            Action::Report(Report::NotScaled(at, to, _)) => {
                (*at == id && *to == direction).then_some(())
            }
            _ => None,
        });
        failed.into_iter().map(|(when, ())| when).collect()
    }
}

#[test]
fn unscalable_delays_by_its_timeout() {
    use DependentState::{Absent, NoSuchKind, Unknown};
    for (state, optional, delay) in [
        (Unknown, false, TIMEOUT),
        (Unknown, true, TIMEOUT),
        (NoSuchKind, false, TIMEOUT),
        (NoSuchKind, true, TIMEOUT),
        (Absent, false, TIMEOUT),
        (Absent, true, 0.0),
    ] {
        let case = format!("{state:?}, optional: {optional}");
        let mut leader = restored_with(state, optional, 0);
        assert_eq!(leader.scaled(), ALL_DOWN, "{case}: the others");
        leader.until(200.0);
        let after = leader.next_level_after();
        assert!((delay..delay + 1.1).contains(&after), "{case}: {after}");
        let left_behind = leader.reported(Report::LeftBehind(AUX));
        assert_eq!(left_behind, usize::from(delay > 0.0), "{case}");
    }
}

#[test]
fn unwritable_delays_by_its_timeout() {
    for optional in [false, true] {
        let mut leader = restored_with(running_one(), optional, 0);
        assert_eq!(leader.writes().len(), 3);
        leader.seed.refused = Some(AUX);
        leader.until(200.0);
        let after = leader.next_level_after();
        assert!((TIMEOUT..TIMEOUT + 1.1).contains(&after), "{after}");
        leader.seed.refused = None;
        leader.until(520.0);
        assert!(leader.shoot.dependent(AUX).has_replicas());
    }
}

#[test]
fn last_level_delays_nothing() {
    let mut leader = restored_with(DependentState::NoSuchKind, false, 2);
    leader.until(30.0);
    assert!(leader.next_level_after() < 1.1);
    assert_eq!(leader.reported(Report::LeftBehind(AUX)), 0);
}

#[test]
fn unwritable_is_tried_rarely() {
    let mut leader = restored_with(running_one(), false, 0);
    leader.seed.refused = Some(AUX);
    leader.until(3800.0);
    let failures = leader.failures(AUX, Direction::Up);
    assert!((12..=20).contains(&failures.len()), "{failures:?}");
    assert!(failures[2] < failures[0] + 8.0, "soon again: {failures:?}");
    let late: Vec<_> = failures.into_iter().filter(|at| *at > 1300.0).collect();
    let mut gaps = late.windows(2).map(|two| two[1] - two[0]);
    assert!(gaps.all(|gap| (299.9..320.0).contains(&gap)), "{late:?}");
}

#[test]
fn unknown_is_tried_once_known() {
    // While it is waited for, and long after the others are back.
    for known_from in [12.0, 800.0] {
        let mut leader = restored_with(DependentState::Unknown, false, 0);
        leader.until(known_from);
        leader.env.dependents[AUX.0] = present(held("1"));
        leader.until(known_from + 25.0);
        let raised = leader.raised(AUX).expect("restored");
        assert!(raised < known_from + 21.0, "{raised}");
    }
}

#[test]
fn hanging_write_is_left_behind() {
    let mut leader = restored_with(running_one(), false, 0).holds_writes();
    leader.until(6.0);
    let opened = leader.raised(AUX).expect("ordered");
    let orders = leader.orders();
    let kcm = orders.iter().rev().find(|order| order.dependent == KCM);
    leader.make(kcm.expect("ordered"));
    leader.until(opened + TIMEOUT - 0.1);
    assert_eq!(leader.raised(MCM), None);
    leader.until(opened + TIMEOUT).refuse(AUX, Refusal::Timeout);
    leader.until(opened + TIMEOUT + 1.2);
    assert!(leader.raised(MCM).is_some());
}

#[test]
fn waiting_is_no_failure() {
    let mut leader = restored_with(running_one(), false, 0);
    let dependents = &mut Arc::make_mut(&mut leader.env.config).dependents;
    dependents[AUX.0].scale_up.initial_delay = Duration::from_secs(40);
    leader.until(200.0);
    let [kcm, aux, mcm] = [KCM, AUX, MCM].map(|id| leader.raised(id).expect("restored"));
    assert!(kcm + 40.0 <= aux && aux <= mcm, "{kcm} {aux} {mcm}");

    let mut leader = restored_with(running_one(), false, 0).holds_permits();
    leader.until(100.0);
    assert_eq!(
        leader.when(&Action::AcquirePermit(MCM, Direction::Up)),
        NEVER
    );
}

#[test]
fn unscalable_is_reported_rarely() {
    let cases = [(DependentState::Unknown, None), (running_one(), Some(AUX))];
    for (state, refused) in cases {
        let mut leader = restored_with(running_one(), false, 0);
        leader.until(200.0);
        (leader.env.dependents[AUX.0], leader.seed.refused) = (state, refused);
        leader.fall_silent(205.0).until(550.0);
        let failures = leader.failures(AUX, Direction::Down);
        assert!((5..=10).contains(&failures.len()), "{failures:?}");
        leader.seed.refused = None;
        leader.env.dependents[AUX.0] = running_one();
        leader.until(556.0);
        assert!(leader.shoot.dependent(AUX).is_held_down(), "as ever");
    }
}

#[test]
fn each_turn_reports_failures() {
    let mut leader = restored_with(DependentState::Unknown, false, 0);
    leader.until(200.0).fall_silent(205.0).until(235.0);
    leader.nodes_back().until(250.0);
    for (direction, from, until) in [
        (Direction::Down, 230.0, 232.0),
        (Direction::Up, 235.0, 246.0),
    ] {
        let failures = leader.failures(AUX, direction);
        let mut times = failures.iter();
        assert!(times.any(|at| (from..until).contains(at)), "{failures:?}");
    }
}

#[test]
fn failed_scalings_pause_longer_and_longer() {
    let mut leader = outage();
    leader.seed.refused = Some(MCM);
    leader.until(40.0);
    let begun = leader.when(&Action::Report(Report::Begun(Direction::Down)));
    let gaps: Vec<_> = begun.windows(2).map(|two| two[1] - two[0]).collect();
    for (at, pause) in [1.0, 2.0, 4.0, 5.0, 5.0].into_iter().enumerate() {
        assert!((pause..pause + 1.1).contains(&gaps[at]), "{gaps:?}");
    }
}

/// For seconds the seed refuses all writes.
#[test]
fn refusing_seed_costs_no_node() {
    let mut leader = outage().holds_writes();
    leader.until(-0.1);
    let mut refused = 0;
    while leader.time() < 4.0 {
        leader.until(leader.time() + 0.05);
        for order in leader.orders().split_off(refused) {
            refused += 1;
            let unavailable = Refusal::Unavailable {
                code: 503,
                said: String::new(),
            };
            leader.refuse(order.dependent, unavailable);
        }
    }
    assert!(refused > 6, "{refused}");
    leader.seed.holds_writes = false;
    leader.until(DEADLINE + 1.0);
    assert_eq!(leader.scaled()[refused..], ALL_DOWN);
}
