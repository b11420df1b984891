//! Which pods are deleted, when, and how often.

use super::*;

#[test]
fn successor_is_another_pod() {
    let mut seed = recovered();
    seed.crashes("a=1").deletes("1");
    seed.crashes("a=1").deletes("").heals("a");
    seed.crashes("a=2").sends("2").crashes("a=3");
    seed.answers("2", Outcome::Gone).deletes("3");
}

#[test]
fn gone_pod_is_done_with() {
    recovered()
        .crashes("1")
        .tries("1", Outcome::Gone)
        .waits(WATCH)
        .deletes("");
}

#[test]
fn failures_wait_longer() {
    let mut seed = recovered();
    seed.crashes("1").tries("1", Outcome::Retry(None));
    for seconds in [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0] {
        seed.waits(seconds).tries("1", Outcome::Retry(None));
    }
    seed.pass(WATCH).rests();
}

#[test]
fn asked_wait_is_a_minute_at_most() {
    let mut seed = recovered();
    seed.crashes("1");
    for (asked, granted) in [(40, 40.0), (3600, 60.0)] {
        let wait = Duration::from_secs(asked);
        seed.tries("1", Outcome::Retry(Some(wait))).waits(granted);
    }
    seed.tries("1", Outcome::Retry(Some(Duration::from_secs(40))));
    seed.unready(ETCD).ready(ETCD).deletes("1");
}

#[test]
fn limit_of_an_owner_holds() {
    let mut seed = recovered_with(Some(2));
    seed.crashes("1")
        .shows(pod("other").alone())
        .deletes("1 other");
    seed.crashes("2").crashes("3").deletes("2");
    seed.unready(ETCD).ready(ETCD).deletes("3");
}

#[test]
fn only_what_may_be_deleted_counts() {
    for (answers, next) in [
        (&[Outcome::Deleted][..], ""),
        (&[Outcome::Gone], "2"),
        (&[Outcome::Changed], "2"),
        // Its absence afterwards does not prove that somebody else deleted it.
        (&[Outcome::Unknown, Outcome::Retry(None), Outcome::Gone], ""),
    ] {
        let mut seed = recovered_with(Some(1));
        seed.crashes("1");
        for answer in answers {
            seed.sends("1")
                .crashes("2")
                .deletes("")
                .answers("1", *answer);
            if let Outcome::Unknown | Outcome::Retry(_) = answer {
                seed.pass(1.0);
            }
        }
        seed.deletes(next).heals("1").deletes("");
    }
}

#[test]
fn changed_pod_waits_for_the_watch() {
    let mut seed = recovered_with(Some(1));
    let version = |version| pod("1").version(version);
    seed.shows(version("1"))
        .tries("1", Outcome::Changed)
        .pass(60.0)
        .deletes("");
    seed.shows(version("2"));
    assert_eq!(seed.send()[0].resource_version, "2");
    // The watch is faster than the answer.
    seed.shows(version("3")).answers("1", Outcome::Changed);
    assert_eq!(seed.send()[0].resource_version, "3");
    seed.answers("1", Outcome::Changed).heals("1").deletes("");
}

#[test]
fn crashing_again_counts_once() {
    let mut seed = recovered_with(Some(1));
    seed.crashes("1").sends("1").heals("1");
    seed.shows(pod("1").version("2")).deletes("");
    seed.answers("1", Outcome::Changed).deletes("1");
    seed.crashes("2").deletes("");
}

#[test]
fn two_services_give_more_room() {
    let both = |uid| pod(uid).on(&[ETCD, API]);
    for limit in [None, Some(1)] {
        let mut seed = recovered_with(limit);
        seed.shows(both("1")).deletes("1").pass(1.0);
        seed.shows(both("2")).deletes("").ready(API).deletes("2");
    }
    let mut seed = recovered_with(Some(1));
    seed.ready(API).crashes("1").deletes("1");
    seed.shows(pod("2").on(&[API])).deletes("2");
}

#[test]
fn late_answer_makes_no_room() {
    let mut seed = recovered_with(Some(1));
    seed.crashes("1").sends("1").unready(ETCD).ready(ETCD);
    seed.crashes("2").deletes("2").answers("1", Outcome::Gone);
    seed.crashes("3").deletes("");
}

#[test]
fn outage_outlasts_the_window() {
    let mut seed = recovered();
    seed.crashes("1").sends("1").pass(2.0 * WATCH);
    seed.answers("1", Outcome::Retry(None)).rests();
}

#[test]
fn listed_pods_are_known() {
    let mut seed = leading();
    seed.crashes("1").crashes("2").crashes("3");
    let pods = [("1", true), ("2", false), ("4", true)];
    seed.pods(listed(pods.map(|(name, is_readable)| {
        (key(name), is_readable.then(|| pod(name).candidate))
    })));
    seed.ready(ETCD).deletes("1 2 4");
}
