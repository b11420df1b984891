//! Nodes come page by page from one snapshot.

use std::time::Duration;

use api_server::protobuf::wire::{bytes, message, text};
use api_server::{Fault, When};

use super::shoot::{LEASES, NODES, TestShoot, list, words};

const MIB: usize = 1 << 20;

/// Whether each request for nodes continued a list.
fn continued(shoot: &TestShoot) -> Vec<bool> {
    let nodes = shoot.requests(NODES).into_iter();
    nodes
        .map(|record| record.query.contains("continue="))
        .collect()
}

/// Requests for a list, from its beginning or for what follows.
fn page_of(path: &'static str, is_continued: bool) -> When {
    When::matches(move |record| {
        record.path == path && record.query.contains("continue=") == is_continued
    })
}

#[tokio::test]
async fn more_nodes_than_a_page_holds_are_listed_to_the_end() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_secs(20);
    shoot.add_nodes(3..1100);
    let seen = shoot.nodes().await.expect("a complete answer");
    let mut names: Vec<&str> = seen.items.iter().map(|node| &*node.name).collect();
    names.dedup();
    assert_eq!(names.len(), 1100);
    assert_eq!(continued(&shoot), [vec![false], vec![true; 5]].concat());
    let pages = shoot.requests(NODES);
    assert!(
        pages.iter().all(|page| page.query.contains("limit=200")),
        "{pages:?}"
    );
}

#[tokio::test]
async fn what_changes_between_the_pages_does_not_show() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..600);
    let store = shoot.api.store().clone();
    // Listing by every request and met by none: it changes the nodes when the second page is asked
    // for.
    let change = When::matches(move |record| {
        if record.path == NODES && record.query.contains("continue=") {
            // For the pages after it, too.
            let _ = store.delete("nodes", "", "node-0550");
        }
        false
    });
    shoot.api.faults().add(change, Fault::Stall);
    let seen = shoot.nodes().await.expect("a complete answer");
    assert_eq!(seen.items.len(), 600);
    assert!(shoot.api.store().get("nodes", "", "node-0550").is_none());
}

#[tokio::test]
async fn a_snapshot_that_is_gone_between_the_pages_begins_again_once() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..300);
    let gone = || page_of(NODES, true);
    shoot.api.faults().add(gone().once(), Fault::status(410));
    let seen = shoot.nodes().await.expect("a complete answer");
    assert_eq!(seen.items.len(), 300);
    assert_eq!(continued(&shoot), [false, true, false, true]);

    for (fault, category, pages) in [(410, "gone", 4), (500, "server", 2)] {
        shoot.asked();
        shoot.api.faults().clear();
        shoot.api.faults().add(gone(), Fault::status(fault));
        let error = shoot.nodes().await.expect_err("a partial list");
        assert_eq!(words(&error), ("nodes", category));
        assert_eq!(continued(&shoot).len(), pages);
    }
}

/// A page that is as long as wanted by a field that nobody reads.
fn page(kind: &str, items: &[Vec<u8>], next: &str, length: usize) -> Fault {
    let metadata = message(1, &[text(2, "7"), text(3, next)]);
    let filler = bytes(90, &vec![0; length]);
    list(kind, &[metadata, items.concat(), filler])
}

/// An item with a name.
fn named(name: &str) -> Vec<u8> {
    message(2, &[message(1, &[text(1, name)])])
}

#[tokio::test]
async fn pages_without_an_end_are_given_up_by_what_all_of_them_hold() {
    // Fault 80: each page is within bounds.
    let (short, long) = (vec![named(""); 8_000], vec![named(&"x".repeat(1000)); 400]);
    for (kind, path, items, length, pages) in [
        ("LeaseList", LEASES, &vec![], 0, 100),
        ("LeaseList", LEASES, &vec![], 5 * MIB / 2, 4),
        ("LeaseList", LEASES, &short, 0, 3),
        ("NodeList", NODES, &short, 0, 3),
        ("LeaseList", LEASES, &long, 0, 3),
        ("NodeList", NODES, &long, 0, 3),
    ] {
        let mut shoot = TestShoot::start().await;
        // Large bodies take their time in a debug build.
        shoot.timeout = Duration::from_secs(60);
        shoot.meets(path, page(kind, items, "more", length));
        let error = shoot.nodes().await.expect_err("no complete answer");
        assert_eq!(error.cause.category(), "too_large", "{error}");
        // A page that takes more than 0.5 s is asked for twice (D-58).
        let asked = shoot.requests(path).len();
        let expected = pages..=2 * pages;
        assert!(
            expected.contains(&asked),
            "{kind} of {}: {asked}",
            items.len()
        );
    }
}

#[tokio::test]
async fn pages_may_hold_more_together_than_one_answer_may_also_when_they_begin_again() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_secs(60);
    for (kind, path, length) in [
        ("NodeList", NODES, 5 * MIB),
        ("LeaseList", LEASES, 7 * MIB / 2),
    ] {
        let page = |next| page(kind, &[named("n")], next, length);
        let faults = shoot.api.faults();
        faults.add(page_of(path, true).once(), Fault::status(410));
        faults.add(page_of(path, false), page("more"));
        faults.add(page_of(path, true), page(""));
    }
    let seen = shoot.nodes().await.expect("a complete answer");
    assert_eq!(seen.items.len(), 2);
    // A page that takes more than 0.5 s is asked for twice (D-58).
    assert!((4..=8).contains(&shoot.requests(LEASES).len()));
}
