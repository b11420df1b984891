//! D-52: a write rests on evidence that is newer than what it changes.

use super::*;

#[test]
fn raised_goes_down_at_once() {
    tell(
        "
        soon | outage; 0.9 kcm raised; 1.9 | writes from 0.5: 0.9 kcm 0; probes from 0.9: 0.9, 1.9
        later | outage; 3.9 kcm raised; 4.9 | writes from 0.5: 3.9 kcm 0; probes from 3.9: 3.9, 4.9
        at the end | outage; 6.9 kcm raised; 7.9 | writes from 0.5: 6.9 kcm 0; probes from 6.9: 6.9, 7.9
        an earlier probe is no evidence | outage, mcm alone; 0.9 probes hang, settings; 2 mcm raised; 2.5 probes answered, permits held, answer 0.9; 2.5 permit; 2.5 | 0 mcm 0, 2.5 mcm 0; probes from 0.9: 0.9, 2.5
        ",
    );
}

#[test]
fn editor_is_probed_for_rarely() {
    tell(
        "
        it is said at the fourth | outage, mcm alone; 7 to 42 by 0.1 mcm running; 42 | probes from 7 to 30: 7, 8, 9, 19, 29; reports: KeepsChanging(mcm)
        nor is it fought on the way up | outage, mcm alone; 70 mark, nodes back; 7 to 42 by 0.1 mcm down; 42 | writes from 0: 1 mcm 1, 12 mcm 1, 23 mcm 1, 34 mcm 1; reports: KeepsChanging(mcm)
        it does not keep others up | outage, pods linger; 0.1 to 60 by 0.2 mcm ready at 1; 60 | kcm: 5 0; probes from 0.1: 0.1, 1.1, 2.1, 3.1, 4.1, 5, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56
        it delays no later outage | outage; 7 to 16 by 1 mcm running; 17 nodes back; 30 silent from 30 s, pods linger; 65 | verdicts from 17: ScaleUp, ScaleDown; probes from 58: 58.101, 59.101, 60.101, 61.101, 62.101, 63.101
        ",
    );
}

#[test]
fn newer_is_believed_before_the_view() {
    tell(
        "
        an answer | outage, views lag; 30 | 0 mcm 0, 0 kcm 0
        versions are numbers | outage, views lag; -10 version 8, mcm same; 30 | 0 mcm 0, 0 kcm 0; bases: 9, 1
        something before the write is shown only now | outage, views lag; -10 version 8, mcm same; 5 version 8, mcm unready; 30 version 10, mcm at 2; 31 | 0 mcm 0, 0 kcm 0, 30 mcm 0 of 2
        an older read: the seed comes back from a backup | outage, writes held, version 900, mcm same; 1 version 500, mcm same; 1 conflict mcm; 3 | bases: 901, 501
        a view that stays older | outage, version 900; 10 version 500, mcm undone; 306 | 0 mcm 0, 0 kcm 0, 301 mcm 0
        ",
    );
}

#[test]
fn new_leader_protects_at_once() {
    tell(
        "
        and restores once the Clusters are read | outage, standby; 0.9 lead, Clusters unread; 1.4 nodes back; 30 Clusters read; 31 | 0.9 mcm 0, 0.9 kcm 0, 30 kcm 1, 30 mcm 1; verdicts: ScaleUp, ScaleDown, ScaleUp
        ",
    );
}

#[test]
fn leases_of_candidates_are_counted() {
    // As the last complete probe found them.
    for [begins, events, expected] in table(
        "
        outage, 1 spared | 1 | node-0 0 s Valid, node-1 30 s Expired, node-2 30 s Expired
        outage, no node counts | 1 |
        standby | 20 |
        ",
    ) {
        let mut timeline = begin(begins);
        timeline.then(events);
        let counted = timeline.shoot.counted_leases().into_iter();
        let shown = counted.map(|lease| {
            let age = lease.age.num_seconds();
            format!("{} {age} s {:?}", lease.node, lease.state)
        });
        assert_eq!(shown.collect::<Vec<_>>().join(", "), expected, "{begins}");
    }
}
