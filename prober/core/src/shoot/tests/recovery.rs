//! D-53: recovery is noticed soon, at no more lists of nodes than needed.

use super::*;

#[test]
fn leader_probes_twice_a_beat() {
    tell(
        "
        while anything is held down | outage; 120 | gap from 1: 5.0
        a standby does not, before it gains the lead | outage, standby; 120 lead; 150 | gap from 2 to 120: 16.4; gap from 120: 5.0; probes from 120 to 126: 122.3
        a failed one is repeated as soon | outage; 20 probes fail; 120 | gap from 40: 5.0
        also by a standby | outage, standby; 20 probes fail; 120 | gap from 40: 5.0
        ",
    );
}

#[test]
fn close_probes_list_the_nodes_once() {
    // Leases of 90 nodes expire over nine seconds.
    tell(
        "
        while leases expire | outage, silent from -25.1 s, 90 nodes, writes held; 4.4 | probes from -0.1: 1.3, 2.3, 3.3, 4.3; listed from -0.1: 1.3
        for 5 s | outage, silent from -25.1 s, 90 nodes, writes held; 4.4 1 spared; 6.4 | listed from -0.1: 1.3, 6.3
        each time, of one node that is not enough | outage; 70 1 spared; 110 | probes from 70.001: 71, 71, 76, 81, 86, 91, 96, 101, 106; listed from 70.001: 71, 76, 81, 86, 91, 96, 101, 106; verdicts: ScaleUp, ScaleDown
        of one that is silent for hours, with each probe | 5 nodes, 4 spared; 100 silent from 104.5 s; 3600 | probes from 3550: 3558.8, 3575.2, 3591.6; listed from 3550: 3558.8, 3575.2, 3591.6
        silent nodes as often as configured | outage; 130 | listed from 10: 31, 61, 91, 121
        ",
    );
}

#[test]
fn broken_view_forgets_nothing() {
    let mut leader = begin("outage");
    leader.then("30 mcm unknown, kcm unknown, nodes back; 70");
    let mut dependents = leader.shoot.dependents();
    assert!(dependents.all(|known| known.stays_held_down(false)));
}
