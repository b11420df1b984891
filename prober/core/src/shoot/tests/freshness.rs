//! D-84: what a write rests on was asked for since the write is allowed, and in the last
//! seconds.

use super::*;

#[test]
fn allowed_again_wants_a_new_probe() {
    // The nodes renew while nobody probes: the first probe is that of the moment at which it may write.
    tell(
        "
        a pause is lifted | outage, protects off, paused; 3 nodes back; 5.9 suspended to 6 s, unpaused; 70 | nothing; verdicts: ScaleUp, ScaleDown, ScaleUp; probes from 3 to 6.5: 6
        the owner record is ours | outage, protects off, owner unknown; 3 nodes back; 5.9 suspended to 6 s, owner here; 70 | nothing; verdicts: ScaleUp, ScaleDown, ScaleUp; probes from 3 to 6.5: 6
        the lead is gained | outage, protects off, standby; 3 nodes back; 5.9 suspended to 6 s, lead; 70 | nothing; verdicts: ScaleUp, ScaleDown, ScaleUp; probes from 3 to 6.5: 6
        the Clusters are seen | outage, protects off, Clusters unseen; 3 nodes back; 5.9 suspended to 6 s, Clusters seen; 70 | nothing; verdicts: ScaleUp, ScaleDown, ScaleUp; probes from 3 to 6.5: 6
        ",
    );
}

#[test]
fn probe_under_way_is_no_evidence() {
    // The nodes renew again while it is under way, and then it may write.
    tell(
        "
        a pause is lifted | outage, paused; 20 answers take 4 s; 46 nodes back, unpaused; 100 | nothing
        by a slower one | outage, paused; 20 answers take 12 s; 41 nodes back, unpaused; 100 | nothing
        with a reload | outage, paused; 20 answers take 4 s; 46 nodes back, unpaused, reload; 100 | nothing
        the owner record is ours | outage, owner unknown; 20 answers take 4 s; 46 nodes back, owner here; 100 | nothing
        the lead is gained | outage, protects off, standby; 20 answers take 4 s; 46 nodes back, lead; 100 | nothing
        the Clusters are seen | outage, Clusters unseen; 20 answers take 4 s; 46 nodes back, Clusters seen; 100 | nothing
        somebody raises it | outage; 20 answers take 4 s; 41 nodes back, kcm raised; 100 | writes from 1: 49 kcm 1, 49 mcm 1
        with other settings | outage; 20 answers take 4 s; 46 nodes back, kcm raised, settings; 100 | writes from 1: 54 kcm 1, 54 mcm 1
        ",
    );
}

#[test]
fn new_terms_want_a_new_probe() {
    tell(
        "
        a reload | outage, permits held; 0 probes hang, suspended to 1.9 s, reload, permit; 1.9 | nothing; probes from 1.9: 1.9
        other settings | outage, permits held; 0 probes hang, suspended to 1.9 s, settings, permit; 1.9 | nothing; probes from 1.9: 1.9
        a suspended process | outage, permits held; 0 probes hang, suspended to 1.9 s, Clusters seen, permit; 1.9 | nothing; probes from 1.9: 1.9
        ",
    );
}

#[test]
fn scale_down_is_probed_closely() {
    tell(
        "
        by the leader | outage, pods linger; 10 | 0 mcm 0, 5 kcm 0; probes from 0 to 5: 0, 1, 2, 3, 4, 5
        by a standby | outage, standby, pods linger; 10 | 1.5 mcm 0, 5 kcm 0; probes from 1.5 to 5: 1.5, 2.5, 3.5, 4.5, 5
        after a write that comes later, too | outage; 60 mcm raised; 70 | probes from 60: 60, 61, 66
        after 10 s less closely | outage, permits held; 40 | nothing; probes from 11 to 21: 12.5, 15, 17.5, 20
        failed ones are repeated in their own time | outage, permits held; 1.4 probes fail, reload; 30 | nothing; probes from 2: 2.4, 4.4, 8.4, 13.4, 17.4, 22.4, 27.4
        ",
    );
}

#[test]
fn next_level_wants_an_outage() {
    tell(
        "
        the nodes renew | outage, pods linger; 1 nodes back; 10 | 0 mcm 0, 2 mcm 1
        two of three are back, and not yet proven: D-73 | outage, 5 nodes, 2 spared, pods linger; 1 4 spared; 20 | 0.3 mcm 0, 11.3 mcm 1; verdicts: ScaleUp, ScaleDown, HoldUndecided, ScaleUp
        a silent node is deleted | outage, 5 nodes, 2 spared, pods linger; 2 4 nodes; 20 | 0.3 mcm 0, 12.3 mcm 1
        without Machines it goes on | outage, pods linger; 1 0 machines, no node counts, settings; 6 | 0 mcm 0, 5 kcm 0; verdicts: ScaleUp, ScaleDown, HoldNoMachines
        where no node counts it goes on | outage, 5 nodes, 1 spared, pods linger; 1 no node counts; 6 | 0.2 mcm 0, 5.2 kcm 0; verdicts: ScaleUp, ScaleDown, HoldUndecided
        ",
    );
}

#[test]
fn restore_wants_a_new_answer() {
    tell(
        "
        since its level was opened | held down, mcm delayed up by 10 s; 39 probes hang; 60 answer 60; 61 | 30 kcm 1, 60 mcm 1
        of the last 10 s | held down, permits held; 30 probes hang; 39 permit; 39 | 39 kcm 1
        a later permit comes too late | held down, permits held; 30 probes hang; 41 permit; 41 | nothing
        ",
    );
}

#[test]
fn next_level_awaits_a_probe() {
    tell(
        "
        until one fails after a reload | outage, pods linger, leader silent from -130 s; 1.4 probes fail, reload; 10 | writes from 1: 5 kcm 0
        after the lead was gained | outage, standby, pods linger, leader silent from -130 s; 1.4 probes fail, lead; 10 | writes from 1: 5 kcm 0
        a first one is awaited for longer | outage, standby, pods linger; 1.2 probes fail, lead; 8.899 probes answered; 20 | 13.2 mcm 0, 13.2 kcm 0
        no initialDelay | outage, kcm delayed down by 0 s; 20 | 0 mcm 0, 0 kcm 0
        a short one | outage, kcm delayed down by 3 s; 20 | 0 mcm 0, 3 kcm 0
        a long one | outage, kcm delayed down by 120 s; 20 | 0 mcm 0, 6.899 kcm 0
        ",
    );
}

#[test]
fn late_permit_wants_a_new_probe() {
    // D-84: the nodes are well since 11 s.
    tell(
        "
        of the leader | outage, permits held; 11 nodes back; 14 permit | nothing
        later | outage, permits held; 11 nodes back; 17 permit | nothing
        later | outage, permits held; 11 nodes back; 27 permit | nothing
        of a standby | outage, standby, permits held; 11 nodes back; 14 permit | nothing
        later | outage, standby, permits held; 11 nodes back; 17 permit | nothing
        later | outage, standby, permits held; 11 nodes back; 27 permit | nothing
        so does a second attempt | outage, writes held; 11 nodes back; 17 timeout mcm; 20 | 0 mcm 0, 5 kcm 0
        ",
    );
}
