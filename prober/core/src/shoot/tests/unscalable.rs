//! D-74: nothing blocks the way back for ever, whatever cannot be scaled and why. The nodes are back at
//! 0 s, and each `scaleUp.timeout` is 30 s.

use super::*;

#[test]
fn unscalable_delays_by_its_timeout() {
    tell(
        "
        unknown | outage, with aux, aux unknown; 70 mark, nodes back; 200 | scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 31 mcm 1; left: 31 aux
        unscalable | outage, with aux, aux unscalable; 70 mark, nodes back; 200 | scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 31 mcm 1; left: 31 aux
        missing | outage, with aux, aux missing; 70 mark, nodes back; 200 | scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 31 mcm 1; left: 31 aux
        missing and optional | outage, with optional aux, aux missing; 70 mark, nodes back; 200 | scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 1 mcm 1; left: nothing
        in the last level | outage, with last aux, aux unscalable; 70 mark, nodes back; 30 | scaled: mcm 0, kcm 0, kcm 1, mcm 1; writes from 0: 1 kcm 1, 1 mcm 1; left: nothing
        a delay is no failure | outage, with aux; 70 mark, nodes back, aux delayed up by 40 s; 200 | writes from 0: 1 kcm 1, 41 aux 1, 41 mcm 1; left: nothing
        nor is a wait for a permit | outage, with aux, permits held; -0.1 permits given; 70 mark, nodes back, permits held; 100 | writes from 0: nothing; left: nothing
        others change it all the time | outage; 70 mark, nodes back, refuse kcm; 10 kcm memory 2; 20 kcm memory 3; 200 | mcm from 0: 31 1; left: 31 kcm
        nor is one for another reason, and a failure after it is the first | outage, stabilization 60 s; 70 mark, nodes back; 50 refuse kcm; 70 refuse nothing; 90 | mcm from 0: 76.2 1; left: nothing
        a write hangs | outage, with aux; 70 mark, nodes back, writes held; 6 make kcm; 31 timeout aux; 33 | mcm from 0: 31 1; left: 31 aux
        ",
    );
}

#[test]
fn unscalable_is_tried_again() {
    tell(
        "
        once it can be written | outage, with aux; 70 mark, nodes back, refuse aux; 200 refuse nothing; 520 | mcm from 0: 31 1; failed from 0: 1.2 aux Up, 2.2 aux Up, 4.2 aux Up, 8.2 aux Up, 16.2 aux Up, 32.2 aux Up, 64.2 aux Up, 128.2 aux Up; aux from 200: 256.2 1
        once it is known | outage, with aux, aux unknown; 70 mark, nodes back; 12 aux held; 37 | aux: 22 1
        also long after the others are back | outage, with aux, aux unknown; 70 mark, nodes back; 800 aux held; 825 | aux: 800 1
        each turn of the verdict says so | outage, with aux, aux unknown; 70 mark, nodes back; 200 silent from 205 s; 235 nodes back; 250 | failed from 200: 230.301 aux Down, 233.301 aux Down, 236.301 aux Up, 237.301 aux Up, 239.301 aux Up, 243.301 aux Up
        in an outage it is said rarely | outage, with aux; 70 mark, nodes back; 200 aux unknown, silent from 205 s; 550 aux running; 556 | failed from 250: 295.301 aux Down, 415.301 aux Down; aux from 550: 550 0
        and where it is refused | outage, with aux; 70 mark, nodes back; 200 refuse aux, silent from 205 s; 550 refuse nothing, aux running; 556 | failed from 250: 295.301 aux Down, 415.301 aux Down; aux from 550: 550.301 0
        ",
    );
}

#[test]
fn failed_write_is_repeated_soon() {
    tell(
        "
        what is not answered in time | outage, mcm alone, writes held; 5 timeout mcm; 15 timeout mcm; 30 timeout mcm; 60 | limits: 0 mcm 5, 5.1 mcm 10, 15.1 mcm 15, 31 mcm 20
        a restore takes its timeout | held down, writes held; 60 timeout kcm; 61 | limits: 30 kcm 30, 60 mcm 30, 60.1 kcm 30
        of one dependent | outage, refuse mcm; 40 | tries to 25: 0 mcm, 0.1 mcm, 0.2 mcm, 0.2 kcm, 1.2 mcm, 2.2 mcm, 3.2 mcm, 4.2 mcm, 5.2 mcm, 6.2 mcm, 7.2 mcm, 8.2 mcm, 9.2 mcm, 10.2 mcm, 15.2 mcm, 20.2 mcm
        a controller that writes it all the time | outage, writes held; 0 to 3 by 0.05 conflict mcm; 3 | tries: 0 mcm, 0.1 mcm, 0.25 mcm, 0.25 kcm, 1.25 mcm, 2.25 mcm
        the same where it cannot be read after that | outage, writes held; 0 to 3 by 0.05 unread conflict mcm; 3 | tries: 0 mcm, 0.1 mcm, 0.25 mcm, 0.25 kcm, 1.25 mcm, 2.25 mcm
        a seed that refuses all for seconds costs no node | outage, refuse mcm, refuse kcm; 4 refuse nothing; 20 | writes from 4: 4.2 mcm 0, 4.4 kcm 0
        ",
    );
}
