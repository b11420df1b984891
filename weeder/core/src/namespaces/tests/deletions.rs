//! Which pods are deleted, when, and how often.

use super::*;

#[test]
fn deleted_pods_successor_is_due() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.pod("a", "1", &[ETCD]);
    assert!(
        seed.deleted().is_empty(),
        "an event that was on its way already"
    );
    seed.pod("a", "2", &[ETCD]);
    assert_eq!(seed.deleted(), ["2"], "the same name and another pod");
}

#[test]
fn late_end_concerns_no_successor() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    let first = seed.due();
    seed.pod("a", "2", &[ETCD]);
    seed.ended(&first[0], Outcome::Gone);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn gone_pod_is_done_with() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Gone), ["1"]);
    seed.pass(60 * SECOND);
    assert!(seed.deleted().is_empty());
}

#[test]
fn failures_wait_longer() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Retry(None)), ["1"]);
    let mut waits = Vec::new();
    while seed.now < seed.next().expect("the end of the window") {
        waits.push(seed.skip().as_millis());
        if seed.deletes(Outcome::Retry(None)).is_empty() {
            break;
        }
    }
    assert_eq!(waits[..5], [500, 1000, 2000, 4000, 8000]);
    assert_eq!(
        seed.next(),
        None,
        "the window is over, and so are the tries"
    );
    assert!(waits.iter().sum::<u128>() == WATCH_DURATION.as_millis());
}

#[test]
fn new_window_ends_retry_after() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Retry(Some(40 * SECOND))), ["1"]);
    assert_eq!(seed.skip(), 40 * SECOND);
    assert_eq!(seed.deletes(Outcome::Retry(Some(40 * SECOND))), ["1"]);
    seed.flap();
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn limit_of_an_owner_holds() {
    let mut seed = TestSeed::recovered(Some(2));
    for uid in ["1", "2", "3"] {
        seed.pod("a", uid, &[ETCD]);
        seed.show(
            &format!("other-{uid}"),
            candidate(&format!("other-{uid}"), uid, &[ETCD]),
        );
        let expected: &[&str] = if uid == "3" {
            &["other-3"]
        } else {
            &[uid, &format!("other-{uid}")]
        };
        assert_eq!(seed.deleted(), expected);
    }
    seed.flap();
    assert_eq!(seed.deleted(), ["3"], "another window, another count");
}

#[test]
fn no_deletion_does_not_count() {
    let mut seed = TestSeed::recovered(Some(1));
    seed.pod("a", "1", &[ETCD]);
    seed.pod("b", "2", &[ETCD]);
    let first = seed.due();
    assert_eq!(first.len(), 1, "one on its way counts");
    seed.ended(&first[0], Outcome::Gone);
    assert_eq!(seed.deleted(), ["2"]);
    seed.pod("c", "3", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn possible_deletion_counts() {
    let mut seed = TestSeed::recovered(Some(1));
    seed.pod("a", "1", &[ETCD]);
    seed.pod("b", "2", &[ETCD]);
    // The pod's absence afterwards does not prove that somebody else deleted it.
    for outcome in [
        Outcome::Unknown,
        Outcome::Unknown,
        Outcome::Retry(None),
        Outcome::Gone,
    ] {
        assert_eq!(seed.deletes(outcome), ["1"], "and not the other one");
        if outcome != Outcome::Gone {
            seed.skip();
        }
    }
    assert!(seed.deleted().is_empty());
    seed.pod_is_fine("a");
    assert!(seed.deleted().is_empty());
    seed.flap();
    assert_eq!(seed.deleted(), ["2"], "another window, another count");
}

#[test]
fn lost_answer_counts_for_one_pod() {
    let mut seed = TestSeed::recovered(Some(2));
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Unknown), ["1"]);
    seed.pod("a", "2", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Unknown), ["2"]);
    seed.pod("a", "3", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn changed_pod_waits_for_the_watch() {
    let mut seed = TestSeed::recovered(Some(1));
    let show =
        |seed: &mut TestSeed, version| seed.show("a", candidate_at(version, "1", "owner", &[ETCD]));
    show(&mut seed, "1");
    assert_eq!(seed.deletes(Outcome::Changed), ["1"]);
    seed.pass(60 * SECOND);
    assert!(seed.due().is_empty(), "the watch has not shown it yet");
    show(&mut seed, "2");
    let due = seed.due();
    assert_eq!(
        (due.len(), due[0].resource_version.as_str()),
        (1, "2"),
        "and it was not counted"
    );
    // The watch is faster than the response.
    show(&mut seed, "3");
    seed.ended(&due[0], Outcome::Changed);
    let due = seed.due();
    assert_eq!((due.len(), due[0].resource_version.as_str()), (1, "3"));
    seed.ended(&due[0], Outcome::Changed);
    seed.pod_is_fine("a");
    assert!(seed.deleted().is_empty());
}

#[test]
fn crashing_again_counts_once() {
    let mut seed = TestSeed::recovered(Some(1));
    seed.pod("a", "1", &[ETCD]);
    let first = seed.due();
    seed.pod_is_fine("a");
    seed.show("a", candidate_at("2", "1", "owner", &[ETCD]));
    assert!(seed.due().is_empty());
    seed.ended(&first[0], Outcome::Changed);
    let second = seed.due();
    assert_eq!(
        (second.len(), second[0].resource_version.as_str()),
        (1, "2")
    );
    seed.ended(&second[0], Outcome::Deleted);
    seed.pod("b", "2", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn two_services_give_more_room() {
    let mut seed = TestSeed::recovered(Some(1));
    seed.pod("a", "1", &[ETCD, API]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.pod("a", "2", &[ETCD, API]);
    assert!(seed.deleted().is_empty());
    seed.slice("t", API, &["f"]);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn outage_outlasts_the_window() {
    let mut seed = TestSeed::recovered(None);
    seed.pod("a", "1", &[ETCD]);
    let flying = seed.due();
    seed.pass(2 * WATCH_DURATION);
    seed.ended(&flying[0], Outcome::Retry(None));
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.next(), None);
}

#[test]
fn listed_pods_are_known() {
    let mut seed = TestSeed::leading(None);
    seed.pod("a", "1", &[ETCD]);
    seed.pod("b", "2", &[ETCD]);
    seed.pod("c", "3", &[ETCD]);
    let pods = [
        ("a", Some(candidate("1", "owner", &[ETCD]))),
        ("b", None),
        ("d", Some(candidate("4", "owner", &[ETCD]))),
    ];
    seed.namespaces
        .apply_pods(Change::Listed(listed(pods)), seed.now);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1", "2", "4"]);
}

#[test]
fn no_deletion_makes_no_room_later() {
    let mut seed = TestSeed::recovered(Some(1));
    seed.pod("a", "1", &[ETCD]);
    let first = seed.due();
    seed.flap();
    seed.pod("b", "2", &[ETCD]);
    assert_eq!(seed.deleted(), ["2"]);
    seed.ended(&first[0], Outcome::Gone);
    seed.pod("c", "3", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn open_windows_are_counted() {
    let mut seed = TestSeed::leading(None);
    seed.slice("one/s", ETCD, &["e"]);
    seed.slice("two/s", ETCD, &["e"]);
    assert_eq!(
        seed.namespaces.open_windows(),
        0,
        "no time has passed for them"
    );
    seed.due();
    assert_eq!(seed.namespaces.open_windows(), 2);
    seed.slice("one/s", ETCD, &[]);
    assert_eq!(seed.namespaces.open_windows(), 1);
    seed.pass(WATCH_DURATION);
    seed.due();
    assert_eq!(seed.namespaces.open_windows(), 0);
}
