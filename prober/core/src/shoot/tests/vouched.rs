//! A person vouches for the nodes: what carries the marker comes back, whatever the leases would
//! say.

use super::*;

fn vouched(mcm: Observed, kcm: Observed) -> Timeline {
    let mut leader = healthy().dependents(mcm, kcm);
    leader.api = Api::Vouched;
    leader
}

#[test]
fn vouched_for_comes_back_in_order() {
    for (mcm, restored) in [
        (held("2"), vec![(KCM, 3), (MCM, 2)]),
        // Somebody else has taken it to 0.
        (running(0), vec![(KCM, 3)]),
    ] {
        let mut leader = vouched(mcm, held("3"));
        leader.until(60.0);
        assert_eq!(leader.scaled(), restored);
        assert_eq!(
            leader.reported(Report::Ended(Direction::Up, restored.len(), 0)),
            1
        );
    }
}

#[test]
fn changed_is_read_again() {
    let mut leader = vouched(running(1), held("3")).holds_writes();
    leader.until(31.0);
    leader.show(KCM, |kcm| kcm.marks.replicas = Some("5".into()));
    leader.seed.holds_writes = false;
    leader.refuse(KCM, Refusal::Conflict).until(60.0);
    assert_eq!(leader.scaled(), [(KCM, 3), (KCM, 5)]);
}
