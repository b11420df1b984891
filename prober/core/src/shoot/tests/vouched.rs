//! A person vouches for the nodes: what carries the marker comes back, whatever the leases would
//! say.

use super::*;

fn vouched(machines: Observed, manager: Observed) -> Rig {
    let dependents = [machines, manager]
        .map(|observed| DependentState::Present(Arc::new(observed)))
        .into();
    let mut rig = Rig::with(OwnedEnvironment {
        dependents,
        ..two()
    });
    rig.api = Api::Vouched;
    rig
}

fn replicas(rig: &Rig) -> Vec<(DependentId, Option<i32>)> {
    rig.writes()
        .into_iter()
        .map(|(_, at, replicas)| (at, replicas))
        .collect()
}

#[test]
fn what_is_held_down_comes_back_in_order_and_to_what_is_remembered() {
    let mut rig = vouched(held("2"), held("3"));
    rig.run(60.0);
    assert_eq!(replicas(&rig), [(KCM, Some(3)), (MCM, Some(2))]);
    assert!(rig.reported(&Report::Ended(Direction::Up, 2, 0)));
}

#[test]
fn what_somebody_else_has_taken_to_0_stays_there() {
    let mut rig = vouched(
        Observed {
            replicas: 0,
            ready: 0,
            ..running(1)
        },
        held("3"),
    );
    rig.run(60.0);
    assert_eq!(replicas(&rig), [(KCM, Some(3))]);
}

#[test]
fn what_has_changed_in_the_meantime_is_read_again_and_then_written() {
    let mut rig = vouched(running(1), held("3"));
    rig.holds_writes = true;
    rig.run(31.0);
    rig.show(KCM, |manager| manager.marks.replicas = Some("5".into()));
    rig.holds_writes = false;
    rig.input(Input::Written(KCM, Err(Refusal::Conflict)));
    rig.run(60.0);
    assert_eq!(replicas(&rig), [(KCM, Some(3)), (KCM, Some(5))]);
}
