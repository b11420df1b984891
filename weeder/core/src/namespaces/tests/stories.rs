//! What happens in a seed, and what the weeder does then.

use super::*;

#[test]
fn windows_open_and_close() {
    tell(
        "
a recovery deletes at once: leading; crash 1, 2 on api; etcd unready; deletes nothing; etcd ready; deletes 1; deletes nothing; windows etcd recovery
a Service that is not ready closes its window: recovered; windows etcd recovery; 299 s; etcd unready; crash 1; windows etcd not_ready; 1 s; etcd ready; deletes 1; windows etcd recovery; waits 300 s; windows etcd over
one that was ready at the start opens it, too: lead; slices etcd=e api=; pods 1 on etcd+api; deletes 1; windows etcd start; waits 300 s; windows etcd over; rests
other endpoints after a broken watch are a recovery: leading; one/etcd ready; two/etcd ready f; three/etcd unready; windows etcd recovery, etcd recovery; 300 s; windows etcd over, etcd over; crash one/1, two/2, three/3; slices one/etcd=e two/etcd=g three/etcd=h; deletes three/3 two/2
they renew a window: recovered; limit 1; crash 1; deletes 1; crash 2; deletes nothing; slices etcd=f; deletes 2; windows etcd recovery, etcd renewed, etcd recovery; slices none; windows etcd not_ready; pods none; rests; holds 0 namespaces
a recovery is a cause before a start: lead; slices api=e; pods none; etcd ready; crash 1 on api+etcd, 2 on api; sends for etcd recovery; windows api start, etcd recovery; etcd unready; crash 3 on api+etcd; sends for api start
a Service that flaps leaves nothing behind: leading; etcd ready; crash 1; tries 1: changed; etcd unready; gone 1; deletes nothing; 0.1 s; etcd ready; etcd unready; gone unknown; api removed; etcd removed; rests; holds 0 namespaces
",
    );
}

#[test]
fn service_turns_by_its_endpoints() {
    tell(
        "
once each way: leading; etcd ready 1; windows etcd recovery; etcd ready 1+2; etcd ready 3; windows none; etcd unready; windows etcd not_ready; etcd unready; windows none
over all its slices: leading; api-4 ready; windows api recovery; api-6 ready; api-4 unready; windows none; api-6 unready; windows api not_ready; api-4 ready; windows api recovery
over no others: leading; etcd ready; api ready; windows etcd recovery, api recovery; etcd unready; windows etcd not_ready
a slice vanishes with its endpoints: lead; slices etcd-1=e etcd-2=f; pods none; windows etcd start; etcd-1 removed; windows none; etcd-2 removed; windows etcd not_ready; etcd-2 removed; windows none
",
    );
}

#[test]
fn only_other_endpoints_are_a_recovery() {
    tell(
        "
they are the same: lead; slices etcd=e+f api=; pods none; windows etcd start; slices etcd=f+e; windows none
cut differently: lead; slices etcd=e+f api=; pods none; windows etcd start; slices etcd-1=e etcd-2=f; windows none
one is another: lead; slices etcd=e+f api=; pods none; windows etcd start; slices etcd=e+g; windows etcd renewed, etcd recovery
one is gone: lead; slices etcd=e+f api=; pods none; windows etcd start; slices etcd=e; windows etcd renewed, etcd recovery
of another Service: lead; slices etcd=e+f api=; pods none; windows etcd start; slices api=e+f; windows etcd not_ready, api recovery
nothing is listed: lead; slices etcd=e+f api=; pods none; windows etcd start; slices none; windows etcd not_ready
what cannot be read stays: lead; slices etcd=e api=f; pods none; windows api start, etcd start; slices etcd=unreadable; windows api not_ready; etcd unready; windows etcd not_ready
",
    );
}

#[test]
fn unobserved_state_deletes_nothing() {
    tell(
        "
pods are listed again first: leading; crash 1, 2; etcd unready; pods lost; slices lost; slices etcd=e; windows etcd recovery; 1 s; pods 2; deletes 2
a Service that is not seen: recovered; slices lost; crash 1; windows etcd recovery; slices etcd=; windows etcd not_ready
a retry waits for sight: recovered; crash 1; tries 1: retry; pods lost; 20 s; deletes nothing; next 280 s; pods 1; deletes 1
what cannot be read in a list stays: leading; crash 1, 2, 3; pods 1, 2 unreadable, 4; etcd ready; deletes 1 2 4
",
    );
}

#[test]
fn standby_keeps_its_windows() {
    tell(
        "
a recovery is used for the time that is left: slices etcd=; pods 1; etcd ready; 17 s; rests; lead; deletes 1; windows etcd recovery; waits 283 s; windows etcd over
an older one is a start: slices etcd=; pods 1; etcd ready; 300 s; lead; deletes 1; windows etcd start
so is what was ready when it was listed first: slices etcd=e; pods 1; 100 s; lead; deletes 1; windows etcd start; waits 300 s; windows etcd over
a Service that is down again opens nothing: slices etcd=; pods 1; etcd ready; 1 s; etcd unready; 1 s; lead; windows none; rests
other endpoints are a recovery: slices etcd=; pods 1; slices etcd=e two/etcd=f; slices etcd=e two/etcd=g; 1 s; lead; deletes 1; windows etcd recovery, etcd recovery
terminations count: slices etcd=; pods 1; crash 1 terminated c:1; etcd ready; 4 s; lead; deletes 1
nothing is left: slices etcd=; pods 1; etcd ready; 300 s; etcd unready; etcd ready; 300 s; etcd unready; etcd removed; gone 1; rests; holds 0 namespaces
",
    );
}

#[test]
fn config_change_is_no_recovery() {
    tell(
        "
a new limit counts the deleted: recovered; limit 1; crash 1, 2, 3; deletes 1; limit 2; deletes 2; windows etcd recovery
a new watchDuration holds later: recovered; watch 60 s; windows etcd recovery; waits 300 s; windows etcd over; api ready; windows api recovery; waits 60 s
other Services end all windows: recovered; crash 1; drop; deletes nothing; windows etcd recovery, etcd dropped; rests
a standby has none to end: slices etcd=; etcd ready; drop; windows none
",
    );
}

#[test]
fn pods_are_deleted_once() {
    tell(
        "
a successor is another pod: recovered; crash a=1; deletes 1; crash a=1; deletes nothing; gone a; crash a=2; sends 2; crash a=3; answer 2 gone; deletes 3
a pod that others deleted is done with: recovered; crash 1; tries 1: gone; waits 300 s; deletes nothing
a changed pod waits for the watch: recovered; limit 1; crash 1; tries 1: changed; 60 s; deletes nothing; crash 1 version 2; sends 1; crash 1 version 3; answer 1 changed; sends 1; answer 1 changed; gone 1; deletes nothing
an outage outlasts the window: recovered; crash 1; sends 1; 600 s; answer 1 retry; rests
",
    );
}

#[test]
fn failures_wait_longer() {
    tell(
        "
twice as long each time: recovered; crash 1; tries 1: retry; waits 0.5 s; tries 1: retry; waits 1 s; tries 1: retry; waits 2 s; tries 1: retry; waits 4 s; tries 1: retry; waits 8 s; tries 1: retry; waits 10 s; tries 1: retry; waits 10 s; tries 1: retry; 300 s; rests
a minute at most, also in a new window: recovered; crash 1; tries 1: retry in 40 s; waits 40 s; tries 1: retry in 3600 s; etcd unready; etcd ready; waits 60 s; deletes 1
",
    );
}

#[test]
fn limit_of_an_owner_holds() {
    tell(
        "
in each window: recovered; limit 2; crash 1, other alone; deletes 1 other; crash 2, 3; deletes 2; etcd unready; etcd ready; deletes 3
for what was deleted: recovered; limit 1; crash 1; sends 1; crash 2; deletes nothing; answer 1 deleted; deletes nothing; gone 1; deletes nothing
not for what others deleted: recovered; limit 1; crash 1; sends 1; crash 2; deletes nothing; answer 1 gone; deletes 2; gone 1; deletes nothing
not for what has changed: recovered; limit 1; crash 1; sends 1; crash 2; deletes nothing; answer 1 changed; deletes 2; gone 1; deletes nothing
for what may have been deleted, though it is gone afterwards: recovered; limit 1; crash 1; sends 1; crash 2; deletes nothing; answer 1 unknown; 1 s; sends 1; crash 2; deletes nothing; answer 1 retry; 1 s; sends 1; crash 2; deletes nothing; answer 1 gone; deletes nothing; gone 1; deletes nothing
a pod that crashes again meanwhile counts once: recovered; limit 1; crash 1; sends 1; gone 1; crash 1 version 2; deletes nothing; answer 1 changed; deletes 1; crash 2; deletes nothing
a late answer makes no room: recovered; limit 1; crash 1; sends 1; etcd unready; etcd ready; crash 2; deletes 2; answer 1 gone; crash 3; deletes nothing
two Services give more room: recovered; limit 1; crash 1 on etcd+api; deletes 1; 1 s; crash 2 on etcd+api; deletes nothing; api ready; deletes 2
each for its own pods: recovered; limit 1; api ready; crash 1; deletes 1; crash 2 on api; deletes 2
",
    );
}

#[test]
fn replacements_wait_longer() {
    tell(
        "
all replicas are deleted at once: leading; crash 1; 1 s; crash 2; 1 s; crash 3; 1 s; etcd ready; deletes 1 2 3; 1 s; crash 4, 5, 6; waits 9 s; deletes 4 5 6; 1 s; crash 7; etcd unready; etcd ready; deletes 7
another Service lets nobody wait: recovered; crash 1 on etcd+api; deletes 1; 1 s; crash 2 on etcd+api; deletes nothing; api ready; deletes 2
nor does what others deleted: recovered; crash 0; sends 0; 1 s; crash 1; deletes nothing; answer 0 gone; sends 1; 1 s; crash 2; waits 9 s; sends 2; 1 s; crash 3; deletes nothing; next 19 s; answer 2 changed; deletes 3; 1 s; crash 4; waits 19 s; deletes 4; 1 s; crash 5; answer 1 gone; waits 19 s; deletes 5
another limit shortens no wait: recovered; limit 1; crash 1; deletes 1; 1 s; crash 2; deletes nothing; next 299 s; limit 2; waits 9 s; deletes 2
",
    );
    let mut seed = begin("leading; watch 3600 s; etcd ready; crash 0; deletes 0");
    // Each crashes a second after its predecessor was deleted, and beside it one of another owner.
    for (number, wait) in [9, 19, 39, 79, 159, 299, 299].into_iter().enumerate() {
        seed.then(&format!(
            "1 s; crash a=next-{number}, other-{number} alone; deletes other-{number}"
        ));
        seed.then(&format!("waits {wait} s; deletes next-{number}"));
    }
}

#[test]
fn terminated_for_4_s_is_deleted() {
    tell(
        "
since it was seen first: recovered; crash 1 terminated c:1; waits 4 s; deletes 1; waits 296 s
before a window, too: leading; crash 1 terminated c:1, 2 terminated c:1; rests; 2 s; crash 2 terminated c:2; 2 s; etcd ready; deletes 1; waits 2 s; deletes 2
not if it restarts before: recovered; crash 1 terminated c:1; deletes nothing; 3.999999999 s; deletes nothing; gone 1; 4 s; deletes nothing; crash 1 terminated c:2; deletes nothing; 3.999999999 s; deletes nothing; gone 1; 4 s; deletes nothing
a change of the pod is no other end: recovered; crash a=1 terminated c:1; 2 s; crash a=1 version 2 terminated c:1; pods a=1 version 2 terminated c:1; waits 2 s; deletes 1
one more restart is: recovered; crash a=1 terminated c:1; 2 s; crash a=1 terminated c:2; pods a=1 terminated c:2; waits 4 s; deletes 1
so is a successor: recovered; crash a=1 terminated c:1; 2 s; crash a=2 terminated c:1; pods a=2 terminated c:1; waits 4 s; deletes 2
not one more container: recovered; crash a=1 terminated c:1; 2 s; crash a=1 terminated b:1+c:1; pods a=1 terminated b:1+c:1; waits 2 s; deletes 1
but another one: recovered; crash a=1 terminated c:1; 2 s; crash a=1 terminated b:1; pods a=1 terminated b:1; waits 4 s; deletes 1
what is reported meanwhile is believed: recovered; crash 1 terminated c:1; deletes nothing; crash 1; deletes 1
a restart during the DELETE wins: leading; crash 1 terminated c:1; 4 s; etcd ready; tries 1: changed; gone 1; 4 s; deletes nothing; crash 1 terminated c:2; waits 4 s; deletes 1
a new window keeps the time, and failures: recovered; crash 1; tries 1: retry; etcd unready; crash 1 terminated c:1; deletes nothing; etcd ready; waits 4 s; tries 1: retry; waits 1 s; deletes 1
time goes on unseen: recovered; crash 1 terminated c:1; pods lost; 4 s; deletes nothing; next 296 s; pods 1 terminated c:1; deletes 1
",
    );
}

#[test]
fn refused_deletes_wait_longer() {
    tell(
        "
one is tried each time: leading; 33 recover in shoot; 8 tried: refused; waits 10 s; 1 tried: refused; waits 20 s; 1 tried: refused; waits 40 s; 1 tried: refused; waits 60 s; 1 tried: refused; waits 60 s; 1 tried: refused; waits 60 s; 1 tried: refused; waits 50 s; rests
a right that is back is used, and elsewhere none waits: leading; limit 1; 3 recover in one; tries one/00 one/01 one/02: refused; waits 10 s; 1 tried: refused; waits 20 s; 1 tried: refused; waits 40 s; 1 tried: refused; 2 recover in two; deletes two/00 two/01; waits 60 s; 1 tried: deleted; 2 tried: deleted
a refusal lets others be tried: recovered; crash a alone; tries a: refused; crash b alone; waits 10 s; deletes b; tries a: refused
",
    );
}

#[test]
fn no_change_shortens_the_wait() {
    let mut seed = begin("leading; 33 recover in shoot; 8 tried: refused");
    for (version, wait) in [10, 20, 40, 60, 60, 60].into_iter().enumerate() {
        seed.then(&format!(
            "33 crash in shoot version {version}; etcd unready; etcd ready; deletes nothing"
        ));
        seed.then(&format!("waits {wait} s; 1 tried: refused"));
    }
}
