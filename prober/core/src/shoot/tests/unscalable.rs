//! D-74: nothing blocks the way back for ever, whatever cannot be scaled and why. The nodes are back at
//! 0 s, and each `scaleUp.timeout` is 30 s.

use super::*;

/// A third dependent, which goes down and comes up with the first ones.
const AUX: DependentId = DependentId(2);
const TIMEOUT: f64 = 30.0;

/// A shoot with a third dependent whose nodes fall silent, and are back at 0 s.
fn restored_with(aux: &str) -> Timeline {
    let mut leader = begin(&format!("outage, {aux}"));
    leader.then("70 mark, nodes back");
    leader
}

impl Timeline {
    /// Time at which a dependent was last told to come up.
    fn raised(&self, id: DependentId) -> Option<f64> {
        let mut writes = self.writes().into_iter().rev();
        let raised = writes.find(|(when, of, to)| *when >= 0.0 && *of == id && *to > 0);
        raised.map(|(when, ..)| when)
    }

    /// Times of the reports that it cannot be scaled in a direction.
    fn failures(&self, wanted: Direction) -> Vec<f64> {
        self.when(|action| {
            matches!(action, Action::Report(Report::NotScaled(AUX, direction, _)) if *direction == wanted)
        })
    }
}

#[test]
fn unscalable_delays_by_its_timeout() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("unknown", "outage, with aux, aux unknown; 70 mark, nodes back; 200", "scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 0.2 kcm 1, 30.2 mcm 1; left: 30.2 aux"),
        ("unknown and optional", "outage, with optional aux, aux unknown; 70 mark, nodes back; 200", "scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 0.2 kcm 1, 30.2 mcm 1; left: 30.2 aux"),
        ("of no kind", "outage, with aux, aux of no kind; 70 mark, nodes back; 200", "scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 31 mcm 1; left: 31 aux"),
        ("of no kind and optional", "outage, with optional aux, aux of no kind; 70 mark, nodes back; 200", "scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 31 mcm 1; left: 31 aux"),
        ("missing", "outage, with aux, aux missing; 70 mark, nodes back; 200", "scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 31 mcm 1; left: 31 aux"),
        ("missing and optional", "outage, with optional aux, aux missing; 70 mark, nodes back; 200", "scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 1 mcm 1; left: nothing"),
        ("in the last level", "outage, with last aux, aux of no kind; 70 mark, nodes back; 30", "scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 1 mcm 1; left: nothing"),
        ("a delay is no failure", "outage, with aux; 70 mark, nodes back, aux delayed up by 40 s; 200", "writes from 0: 1 kcm 1, 41 aux 1, 41 mcm 1; left: nothing"),
        ("nor is a wait for a permit", "outage, with aux, permits held; -0.1 permits given; 70 mark, nodes back, permits held; 100", "permits from 0: 1 kcm, 1 aux; left: nothing"),
    ];
    tell(rows);
}

#[test]
fn unwritable_delays_by_its_timeout() {
    for aux in ["with aux", "with optional aux"] {
        let mut leader = restored_with(aux);
        leader.then("0 refuse aux; 200");
        let [kcm, mcm] = [KCM, MCM].map(|id| leader.raised(id).expect("restored"));
        assert!(
            (TIMEOUT..TIMEOUT + 1.1).contains(&(mcm - kcm)),
            "{kcm} {mcm}"
        );
        leader.then("200 refuse nothing; 520");
        assert!(leader.shoot.dependent(AUX).has_replicas());
    }
}

#[test]
fn unwritable_is_tried_rarely() {
    let mut leader = restored_with("with aux");
    leader.then("0 refuse aux; 3800");
    let failures = leader.failures(Direction::Up);
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
        let mut leader = restored_with("with aux, aux unknown");
        leader.then(&format!("{known_from} aux held; {}", known_from + 25.0));
        let raised = leader.raised(AUX).expect("restored");
        assert!(raised < known_from + 21.0, "{raised}");
    }
}

#[test]
fn hanging_write_is_left_behind() {
    let mut leader = restored_with("with aux");
    leader.then("0 writes held; 6 make kcm; 6.1");
    let opened = leader.raised(AUX).expect("ordered");
    leader.until(opened + TIMEOUT - 0.1);
    assert_eq!(leader.raised(MCM), None);
    leader.until(opened + TIMEOUT).refuse(AUX, Refusal::Timeout);
    leader.until(opened + TIMEOUT + 1.2);
    assert!(leader.raised(MCM).is_some());
}

#[test]
fn unscalable_is_reported_rarely() {
    for change in ["aux unknown", "refuse aux"] {
        let mut leader = restored_with("with aux");
        leader.then(&format!("200 {change}, silent from 205 s; 550"));
        let failures = leader.failures(Direction::Down);
        assert!((5..=10).contains(&failures.len()), "{failures:?}");
        leader.then("550 refuse nothing, aux running; 556");
        assert!(leader.shoot.dependent(AUX).is_held_down(), "as ever");
    }
}

#[test]
fn each_turn_reports_failures() {
    let mut leader = restored_with("with aux, aux unknown");
    leader.then("200 silent from 205 s; 235 nodes back; 250");
    for (direction, from, until) in [
        (Direction::Down, 230.0, 232.0),
        (Direction::Up, 235.0, 246.0),
    ] {
        let failures = leader.failures(direction);
        let mut times = failures.iter();
        assert!(times.any(|at| (from..until).contains(at)), "{failures:?}");
    }
}

#[test]
fn failed_scalings_pause_longer_and_longer() {
    let mut leader = begin("outage, refuse mcm");
    leader.until(40.0);
    let begun = leader.when(|action| matches!(action, Action::Report(Report::Begun(_))));
    let gaps: Vec<_> = begun.windows(2).map(|two| two[1] - two[0]).collect();
    for (at, pause) in [1.0, 2.0, 4.0, 5.0, 5.0].into_iter().enumerate() {
        assert!((pause..pause + 1.1).contains(&gaps[at]), "{gaps:?}");
    }
}

/// For seconds the seed refuses all writes.
#[test]
fn refusing_seed_costs_no_node() {
    let mut leader = begin("outage, writes held");
    leader.until(-0.1);
    let mut refused = 0;
    while leader.time() < 4.0 {
        leader.until(leader.time() + 0.05);
        for (_, order) in leader.ordered().split_off(refused) {
            refused += 1;
            let unavailable = Refusal::Unavailable {
                code: 503,
                said: String::new(),
            };
            leader.refuse(order.dependent, unavailable);
        }
    }
    assert!(refused > 6, "{refused}");
    leader.then(&format!(
        "{} writes made; {}",
        leader.time(),
        DEADLINE + 1.0
    ));
    let made = leader.writes().split_off(refused);
    assert_eq!(made.len(), 2, "{made:?}");
}
