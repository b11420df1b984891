//! D-18, D-35, D-74: which levels are open is found again at each input, and what others do to one keeps
//! none of the others from its turn.

use super::*;

#[test]
fn open_level_stays_open() {
    tell(
        "
        one that appears is down at once | outage, with optional aux, aux missing, pods linger; 2 aux running; 20 | 0 mcm 0, 2 aux 0, 5 kcm 0
        pods have 5 s after a delay | outage, pods linger, grace 120 s, mcm delayed down by 3 s; 40 | 3 mcm 0, 8 kcm 0
        beside a standby, too | outage, standby, pods linger, grace 120 s, mcm delayed down by 3 s; 3 mcm ending; 40 | 9.5 kcm 0
        a pause delays none | outage, pods linger, paused; 3 unpaused; 20 | 3 mcm 0, 5 kcm 0
        nor does a lower one that is taken down in a restore | outage, mcm delayed up by 30 s; 70 mark, nodes back; 8 to 28 by 20 kcm down; 40 | writes from 0: 1 kcm 1, 13 kcm 1, 33 mcm 1, 33 kcm 1
        or known late | outage, with aux, mcm delayed up by 30 s, aux unknown; 70 mark, nodes back; 45 aux held; 120 | writes from 0: 1 kcm 1, 55 aux 1, 61 mcm 1
        ",
    );
}

#[test]
fn each_restore_keeps_the_order() {
    tell(
        "
        of what others hold down | standby, pods linger; 100 mcm held, kcm held, probes fail; 200 probes answered; 230 lead; 300 | 230 kcm 1, 235 mcm 1
        of what they stop | pods linger; 100 mcm stopped, kcm stopped; 200 | 100 kcm 1, 105 mcm 1
        when a write is seen before its answer | outage; 70 mark, nodes back, writes held; 1.5 kcm running, kcm unready; 40 | writes from 0: 1 kcm 1, 6.5 mcm 1
        when another replica wrote | standby; 100 mcm held, kcm held, probes fail; 200 probes answered; 220 kcm running, kcm unready; 222 lead; 300 | 225 mcm 1
        a second one | outage, pods linger; 70 mark, nodes back; 20 mcm down, kcm down; 60 | writes from 0: 1 kcm 1, 1 mcm 1, 25 kcm 1, 30 mcm 1
        what is back is left alone | outage; 70 mark, nodes back; 3 to 40 by 1 kcm down; 90 | mcm from 0: 1 1
        after a blip in an outage | outage, pods linger; 1 nodes back; 2.5 silent from 2.6 s; 60 | 0 mcm 0, 2 mcm 1, 31.101 mcm 0, 36.101 kcm 0
        ",
    );
}
