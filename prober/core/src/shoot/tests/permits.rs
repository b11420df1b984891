//! What is written is decided once the permit is there.

use super::*;

/// A leader that waits for the permit to take machine-controller-manager down.
fn asking() -> Timeline {
    let mut leader = outage().holds_permits();
    leader.until(0.9);
    assert_eq!(leader.asked(MCM, Direction::Down), [0.0]);
    leader
}

impl Timeline {
    /// Times at which a permit was asked for.
    fn asked(&self, id: DependentId, direction: Direction) -> Vec<f64> {
        self.when(&Action::AcquirePermit(id, direction))
    }

    fn cancelled(&self, id: DependentId) -> Vec<f64> {
        self.when(&Action::Cancel(id))
    }
}

#[test]
fn change_gives_the_permit_back() {
    let mut leader = asking();
    leader.api = Api::Hangs;
    leader.others(MCM, |observed| observed.replicas = 3);
    leader.permit(MCM);
    assert_eq!(
        (leader.cancelled(MCM), leader.writes()),
        (vec![0.9], vec![])
    );
    assert_eq!(leader.probes(0.9), [0.9]);
    (leader.api, leader.seed.holds_permits) = (Api::Answers, false);
    leader.jump(1.0).input(Input::Failed(ProbeFailure::Other));
    leader.until(10.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
    assert_eq!(leader.seen(MCM).marks, held("3").marks);
    assert!(leader.orders()[0].judged_at > leader.moment(0.9));
}

#[test]
fn done_gives_the_permit_back() {
    let mut leader = asking();
    leader.show(MCM, take_down).permit(MCM);
    assert_eq!(
        (leader.cancelled(MCM), leader.writes()),
        (vec![0.9], vec![])
    );
    assert_eq!(leader.asked(KCM, Direction::Down), [0.9]);
}

#[test]
fn turn_gives_the_permit_back() {
    let mut leader = asking();
    leader.nodes_back().until(20.0);
    assert_eq!(leader.verdict(), Verdict::ScaleUp);
    assert_eq!(leader.cancelled(MCM).len(), 1);
    assert_eq!(leader.reported(Report::Abandoned(Direction::Down)), 1);
    leader.permit(MCM);
    assert_eq!((leader.cancelled(MCM).len(), leader.writes()), (2, vec![]));
}

#[test]
fn failing_probes_stop_a_restore() {
    let mut leader = asking();
    leader.api = FAILS;
    leader.until(1.5);
    assert!(leader.shoot.failures() > 0);
    leader.permit(MCM);
    assert_eq!(leader.writes(), [(1.5, MCM, 0)]);

    let mut leader = healthy().all_held_down().holds_permits();
    leader.until(31.0);
    assert_eq!(leader.asked(KCM, Direction::Up), [30.0]);
    leader.api = FAILS;
    leader.change_settings().permit(KCM);
    assert_eq!(
        (leader.cancelled(KCM), leader.writes()),
        (vec![31.0], vec![])
    );
    (leader.api, leader.seed.holds_permits) = (Api::Answers, false);
    leader.until(40.0);
    assert_eq!(leader.scaled(), ALL_UP);
}

#[test]
fn conflict_is_decided_again() {
    let mut leader = outage().holds_writes();
    leader.until(1.0);
    // The view does not show it yet.
    leader.seed.read = Some(Observed {
        resource_version: "2".into(),
        ..running(2)
    });
    leader.seed.holds_writes = false;
    leader.refuse(MCM, Refusal::Conflict).until(2.0);
    let writes = [(0.0, MCM, 0), (1.0, MCM, 0), (1.0, KCM, 0)];
    assert_eq!(leader.writes(), writes);
    let second = &leader.orders()[1];
    assert!(
        second.judged_at > leader.moment(1.0),
        "probed after the read"
    );
    assert_eq!(second.change.write.marks, held("2").marks);
}

#[test]
fn vanished_at_its_write_is_done() {
    let mut leader = outage().holds_writes();
    leader.until(1.0);
    leader.seed.holds_writes = false;
    leader.refuse(MCM, Refusal::NotFound).until(20.0);
    assert_eq!(leader.scaled(), ALL_DOWN);
}
