//! Which pods are deleted, when, and how often.

use super::*;

#[test]
fn a_deleted_pod_is_not_deleted_again_and_its_successor_is() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
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
fn the_end_of_a_deletion_says_nothing_about_the_successor_of_the_pod() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    let first = seed.due();
    seed.pod("a", "2", &[ETCD]);
    seed.namespaces.ended(&first[0], Outcome::Gone, seed.now);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn a_pod_that_was_gone_or_replaced_is_done_with() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Gone), ["1"]);
    seed.pass(60 * SECOND);
    assert!(seed.deleted().is_empty());
}

#[test]
fn failures_are_tried_again_after_growing_waits_while_the_window_is_open() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
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
fn the_api_server_says_how_long_to_wait_and_a_new_window_does_not() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Retry(Some(40 * SECOND))), ["1"]);
    assert_eq!(seed.skip(), 40 * SECOND);
    assert_eq!(seed.deletes(Outcome::Retry(Some(40 * SECOND))), ["1"]);
    seed.slice("s", ETCD, &[]);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn each_owner_loses_at_most_so_many_pods_in_one_window() {
    let mut seed = TestSeed::leading(Some(2));
    seed.slice("s", ETCD, &["e"]);
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
    seed.slice("s", ETCD, &[]);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["3"], "another window, another count");
}

#[test]
fn deletions_that_did_not_happen_do_not_count() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    seed.pod("b", "2", &[ETCD]);
    let first = seed.due();
    assert_eq!(first.len(), 1, "one on its way counts");
    seed.namespaces.ended(&first[0], Outcome::Gone, seed.now);
    assert_eq!(seed.deleted(), ["2"]);
    seed.pod("c", "3", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn a_deletion_that_may_have_happened_stays_counted_and_can_be_tried_again() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
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
    seed.slice("s", ETCD, &[]);
    seed.slice("s", ETCD, &["e"]);
    assert_eq!(seed.deleted(), ["2"], "another window, another count");
}

#[test]
fn what_an_answer_that_was_lost_counts_for_one_pod_it_does_not_count_for_its_successor() {
    let mut seed = TestSeed::leading(Some(2));
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Unknown), ["1"]);
    seed.pod("a", "2", &[ETCD]);
    assert_eq!(seed.deletes(Outcome::Unknown), ["2"]);
    seed.pod("a", "3", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn a_pod_that_has_changed_is_deleted_only_as_the_watch_shows_it_then() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
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
    seed.namespaces.ended(&due[0], Outcome::Changed, seed.now);
    let due = seed.due();
    assert_eq!((due.len(), due[0].resource_version.as_str()), (1, "3"));
    seed.namespaces.ended(&due[0], Outcome::Changed, seed.now);
    seed.pod_is_fine("a");
    assert!(seed.deleted().is_empty());
}

#[test]
fn a_pod_that_gets_well_and_crashes_again_is_not_sent_before_its_delete_has_ended_and_counts_once()
{
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    let first = seed.due();
    seed.pod_is_fine("a");
    seed.show("a", candidate_at("2", "1", "owner", &[ETCD]));
    assert!(seed.due().is_empty());
    seed.namespaces.ended(&first[0], Outcome::Changed, seed.now);
    let second = seed.due();
    assert_eq!(
        (second.len(), second[0].resource_version.as_str()),
        (1, "2")
    );
    seed.namespaces
        .ended(&second[0], Outcome::Deleted, seed.now);
    seed.pod("b", "2", &[ETCD]);
    assert!(seed.deleted().is_empty());
}

#[test]
fn a_pod_that_waits_for_two_services_has_the_room_of_either() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD, API]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.pod("a", "2", &[ETCD, API]);
    assert!(seed.deleted().is_empty());
    seed.slice("t", API, &["f"]);
    assert_eq!(seed.deleted(), ["2"]);
}

#[test]
fn an_outage_longer_than_the_window_ends_in_nothing() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    let flying = seed.due();
    seed.pass(2 * WATCH_DURATION);
    seed.namespaces
        .ended(&flying[0], Outcome::Retry(None), seed.now);
    assert!(seed.deleted().is_empty());
    assert_eq!(seed.next(), None);
}

#[test]
fn pods_are_known_again_after_a_list_and_those_that_cannot_be_read_stay() {
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
fn a_deletion_that_did_not_happen_makes_no_room_in_a_later_window() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("s", ETCD, &["e"]);
    seed.pod("a", "1", &[ETCD]);
    let first = seed.due();
    seed.slice("s", ETCD, &[]);
    seed.slice("s", ETCD, &["e"]);
    seed.pod("b", "2", &[ETCD]);
    assert_eq!(seed.deleted(), ["2"]);
    seed.namespaces.ended(&first[0], Outcome::Gone, seed.now);
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
