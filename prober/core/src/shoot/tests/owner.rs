//! The owner record decides whether anything is written for a shoot here.

use super::*;

#[test]
fn unknown_owner_holds_writes_back() {
    tell(
        "
        since the start | outage, owner unknown; 5 owner here; 6 | 5 mcm 0, 5 kcm 0
        by one odd answer; it is probed all the same | outage; -5 owner unknown; 5 owner here; 6 | 5 mcm 0, 5 kcm 0; probes from -5 to 0.5: 0
        it is said once | outage, owner unknown; 5 | nothing; waits: 0 mcm NotOwned, 0 kcm NotOwned
        while that is tolerated the leader protects | outage, owner tolerated; 30 nodes back; 170 owner here; 180 | 0 mcm 0, 0 kcm 0, 170 kcm 1, 170 mcm 1
        and no standby | outage, standby, owner tolerated; 70 | nothing
        ",
    );
}

#[test]
fn passivation_keeps_the_order() {
    // A shoot that belongs to another seed is not probed: its task is told to take all down.
    tell(
        "
        level by level | passivated, pods linger; 30 | 0 mcm 0, 5 kcm 0
        what is raised goes down again | passivated; 10 kcm raised; 41 | 0 mcm 0, 0 kcm 0, 10 kcm 0
        by a standby after the leader | passivated, standby; 40 lead; 60 | 1.5 mcm 0, 1.5 kcm 0
        no write outlives it | passivated, writes held; 2 elsewhere; 20 | 0 mcm 0; cancelled: 2 mcm
        of a new shoot after initialDelay | passivated, new; 70 | 30 mcm 0, 30 kcm 0
        not while it is paused | passivated, paused; 100 | nothing
        not where the Cluster is elsewhere, too | passivated, elsewhere; 100 | nothing
        not while the Clusters are unseen | passivated, Clusters unseen; 100 | nothing
        not what is left to its operators | passivated, mcm ignored, kcm ignored; 100 | nothing
        ",
    );
}
