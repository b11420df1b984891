//! Timelines in which others, clocks and answers do their worst, and all is well.

use super::*;

#[test]
fn change_leaves_nothing_up() {
    // Between two levels, and probes fail or hang from then on.
    tell(
        "
        probes fail | outage, pods linger; 2.1 probes fail; 7 | scaled: mcm 0, kcm 0
        probes hang | outage, pods linger; 2.1 probes hang; 7 | scaled: mcm 0, kcm 0
        a reload | outage, pods linger; 2.1 probes fail, reload; 7 | scaled: mcm 0, kcm 0
        and they hang | outage, pods linger; 2.1 probes hang, reload; 7 | scaled: mcm 0, kcm 0
        other settings | outage, pods linger; 2.1 probes fail, settings; 7 | scaled: mcm 0, kcm 0
        and they hang | outage, pods linger; 2.1 probes hang, settings; 7 | scaled: mcm 0, kcm 0
        the lead | outage, standby, pods linger; 2.1 probes fail, lead; 7 | scaled: mcm 0, kcm 0
        and they hang | outage, standby, pods linger; 2.1 probes hang, lead; 7 | scaled: mcm 0, kcm 0
        ",
    );
}

#[test]
fn conflicts_are_no_hot_loop() {
    // D-52: somebody changes it before each of our writes is there, twenty times a second.
    tell(
        "
        a probe a second | outage, mcm alone, writes held; 1 to 5 by 0.1 mcm at 2, conflict mcm, mcm at 3, conflict mcm; 5 | probes from 1 to 5: 1, 1, 2, 3, 4
        ",
    );
}

#[test]
fn slow_answers_delay_each_level() {
    // The first node is marked at 9.9 s.
    tell(
        "
        | outage, pods linger; -25 answers take 1 s; 45 | 1 mcm 0, 6 kcm 0
        | outage, pods linger; -25 answers take 1.9 s; 45 | 1.9 mcm 0, 6.899 kcm 0
        | outage, pods linger; -25 answers take 3 s; 45 | 3 mcm 0, 6.899 kcm 0
        | outage, pods linger; -25 answers take 4.9 s; 45 | 5.5 mcm 0, 6.899 kcm 0
        | outage, pods linger, standby; -25 answers take 1 s; 45 | 3 mcm 0, 6 kcm 0
        | outage, pods linger, standby; -25 answers take 1.9 s; 45 | 3.8 mcm 0, 6.899 kcm 0
        | outage, pods linger, standby; -25 answers take 3 s; 45 | 6 mcm 0, 6.899 kcm 0
        | outage, pods linger, standby; -25 answers take 4.9 s; 45 | 7 mcm 0, 7 kcm 0
        ",
    );
}

#[test]
fn silent_api_server_stops_no_leader() {
    // It is answered by nobody from the first write on, and the first node is marked at 9.9 s. A standby
    // rests on no answer that is older than 5 s.
    tell(
        "
        probes hang | outage, pods linger; 0.1 probes hang; 20 | 0 mcm 0, 6.899 kcm 0
        beside a standby | outage, standby, pods linger; 0.1 probes hang; 20 | 3.5 mcm 0
        which had an answer later | outage, standby, pods linger; 2.6 probes hang; 20 | 1.5 mcm 0, 6.899 kcm 0
        probes fail, and the nodes return meanwhile | outage, pods linger; 1 nodes back, probes fail; 20 probes answered; 40 | 0 mcm 0, 5 kcm 0, 21 kcm 1, 21 mcm 1
        they hang | outage, pods linger; 1 nodes back, probes hang; 20 probe fails, probes answered; 40 | 0 mcm 0, 6.899 kcm 0, 21 kcm 1, 21 mcm 1
        beside a standby | outage, standby, pods linger; 1 nodes back, probes fail; 20 probes answered; 40 | 3.5 mcm 0
        ",
    );
}
