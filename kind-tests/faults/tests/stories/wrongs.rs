//! Each wrong is found by the oracle as what it is.

use std::collections::BTreeMap;

use faults::oracle::leaks::leaks;
use faults::script::tell;

#[test]
#[rustfmt::skip]
fn what_is_done_wrong_is_found_as_what_it_is() {
    tell(1, &[
        ("a healthy shoot is scaled down", "prober; 20 s; patches prober kcm 0 2 held; found WrongScaleDowns"),
        ("one whose API server was away, for its nodes too, and is just back",
         "prober; 20 s; shoot refused; api away; 9 s; api back; over; patches prober kcm 0 2 held; found WrongScaleDowns"),
        ("one whose nodes have long been back", "prober; 20 s; cut; 4 s; heal; 8 s; patches prober kcm 0 2 held; found WrongScaleDowns"),
        ("an outage is too young", "prober; 20 s; cut; 1 s; patches prober kcm 0 2 held; found WrongScaleDowns"),
        ("a shoot is restored in an outage", "prober; 20 s; cut; all held; 8 s; patches prober kcm 2; found WrongRestores"),
        ("0 is remembered", "prober; 20 s; cut; all held; patches prober kcm 0 0 held; found WrongMemories"),
        ("the marker is missing", "prober; 20 s; cut; 6.5 s; patches prober kcm 0 2; found WrongMemories"),
        ("a shoot is written that is to be left alone", "prober; 20 s; hands off; 3 s; patches prober kcm 0 2 held; found DisobedientWrites"),
        ("without the lead is restored what carries no marker",
         "prober; 10 s; standby; 20 s; others kcm 0; patches standby kcm 1; found LeaderlessWrites"),
        ("without the lead is restored soon after an outage",
         "prober; 10 s; standby; 20 s; cut; all held; 8 s; hang prober; heal; 3 s; patches standby kcm 2; found LeaderlessWrites"),
        ("an outage is missed", "prober; 20 s; hang prober; cut; 40 s; found MissedOutages"),
        ("one soon after a start is missed", "prober; hang prober; cut; 40 s; found MissedOutages"),
        ("a shoot is not restored", "prober; 20 s; cut; all held; hang prober; heal; 60 s; found NotRestored"),
        ("a pod is deleted that must stay", "weeder; 20 s; deletes weeder bare; found WrongDeletions"),
        ("one is deleted without the lead", "weeder; 20 s; hang weeder; 12 s; deletes weeder bare; found LeaderlessWrites; found WrongDeletions"),
        ("a crash-looping pod is left alone", "weeder; 20 s; service 0 down; pods 0 crash; 4 s; hang weeder; service 0 up; 11 s; found NotWeeded"),
        ("a request is forbidden", "only get pods; prober; 10 s; found ForbiddenRequests"),
        ("a shoot's task panics, and is started again", "says probe panicked; found ProcessFailures"),
        ("a credential is logged", "says soak-prober-a-token; found ProcessFailures"),
    ]);
}

#[test]
fn what_a_process_uses_more_and_more_is_a_leak() {
    for (what, grows_by, is_leak) in [
        ("files", 3, false),
        ("files", 12, true),
        ("resident_kib", 3_000, false),
        ("resident_kib", 9_000, true),
    ] {
        let [first, last] = [20_000, 20_000 + grows_by].map(|used| BTreeMap::from([(what, used)]));
        let usage = BTreeMap::from([(("prober-a", 1, true), [first, last])]);
        assert_eq!(
            leaks(&usage).len(),
            usize::from(is_leak),
            "{what}: {grows_by}"
        );
    }
}
