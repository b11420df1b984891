//! Nodes come page by page from one snapshot.

use std::time::Duration;

use api_server::protobuf::wire::{bytes, message, text};
use api_server::{Fault, When};

use super::shoot::{LEASES, NODES, TestShoot, list, words};

/// The queries of the requests for nodes.
fn pages(shoot: &TestShoot) -> Vec<String> {
    let nodes = shoot
        .api
        .requests()
        .all()
        .into_iter()
        .filter(|record| record.path == NODES);
    nodes.map(|record| record.query).collect()
}

#[tokio::test]
async fn more_nodes_than_a_page_holds_are_listed_to_the_end() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..1100);
    let seen = shoot.nodes().await.expect("a complete answer");
    let mut names: Vec<&str> = seen.items.iter().map(|node| node.name.as_str()).collect();
    names.dedup();
    assert_eq!(names.len(), 1100);
    let pages = pages(&shoot);
    assert_eq!(pages.len(), 6);
    assert!(
        pages.iter().all(|query| query.contains("limit=200")),
        "{pages:?}"
    );
    assert_eq!(
        pages
            .iter()
            .map(|query| query.contains("continue="))
            .collect::<Vec<_>>(),
        [vec![false], vec![true; 5]].concat()
    );
}

#[tokio::test]
async fn a_full_page_is_followed_by_none() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..100);
    assert_eq!(
        shoot.nodes().await.expect("a complete answer").items.len(),
        100
    );
    assert_eq!(pages(&shoot).len(), 1);
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
    let gone =
        || When::matches(|record| record.path == NODES && record.query.contains("continue="));
    shoot.api.faults().add(gone().once(), Fault::status(410));
    assert_eq!(
        shoot.nodes().await.expect("a complete answer").items.len(),
        300
    );
    let continued: Vec<bool> = pages(&shoot)
        .iter()
        .map(|query| query.contains("continue="))
        .collect();
    assert_eq!(continued, [false, true, false, true]);

    shoot.api.requests().clear();
    shoot.api.faults().add(gone(), Fault::status(410));
    let error = shoot.nodes().await.expect_err("no complete answer");
    assert_eq!(words(&error), ("nodes", "gone"));
    assert_eq!(pages(&shoot).len(), 4);
}

#[tokio::test]
async fn a_list_that_breaks_off_between_the_pages_is_no_list() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..600);
    let second = When::matches(|record| record.path == NODES && record.query.contains("continue="));
    shoot.api.faults().add(second, Fault::status(500));
    let error = shoot.nodes().await.expect_err("a partial list");
    assert_eq!(words(&error), ("nodes", "server"));
}

/// A page that is as long as wanted by a field that nobody reads.
fn page(kind: &str, items: &[Vec<u8>], next: &str, length: usize) -> Fault {
    let metadata = message(1, &[text(2, "7"), text(3, next)]);
    list(
        kind,
        &[metadata, items.concat(), bytes(90, &vec![0; length])],
    )
}

/// An item with a name.
fn named(name: &str) -> Vec<u8> {
    message(2, &[message(1, &[text(1, name)])])
}

fn continued(path: &'static str, is_continued: bool) -> When {
    When::matches(move |record| {
        record.path == path && record.query.contains("continue=") == is_continued
    })
}

#[tokio::test]
async fn pages_without_an_end_are_given_up_by_what_all_of_them_hold() {
    // Fault 80: each page is within bounds.
    const MIB: usize = 1 << 20;
    for (kind, path, items, length, pages) in [
        ("LeaseList", LEASES, vec![], 5 * MIB / 2, 4),
        ("LeaseList", LEASES, vec![named(""); 8_000], 0, 3),
        ("NodeList", NODES, vec![named(""); 8_000], 0, 3),
        (
            "LeaseList",
            LEASES,
            vec![named(&"x".repeat(1000)); 400],
            0,
            3,
        ),
        ("NodeList", NODES, vec![named(&"x".repeat(1000)); 400], 0, 3),
    ] {
        let mut shoot = TestShoot::start().await;
        // Large bodies take their time in a debug build.
        shoot.timeout = Duration::from_secs(60);
        shoot.api.faults().add(
            When::request("GET", path),
            page(kind, &items, "more", length),
        );
        let error = shoot.nodes().await.expect_err("no complete answer");
        assert_eq!(error.cause.category(), "too_large", "{error}");
        // A page that takes more than 0.5 s is asked for twice (D-58).
        let asked = shoot.asked().iter().filter(|asked| *asked == path).count();
        assert!(
            (pages..=2 * pages).contains(&asked),
            "{kind} of {} items: {asked} requests",
            items.len()
        );
    }
}

#[tokio::test]
async fn pages_of_nodes_may_hold_more_together_than_one_answer_may() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_secs(60);
    let nodes = |next| page("NodeList", &[named("n")], next, 5 << 20);
    shoot
        .api
        .faults()
        .add(continued(NODES, false), nodes("more"));
    shoot.api.faults().add(continued(NODES, true), nodes(""));
    assert_eq!(
        shoot.nodes().await.expect("a complete answer").items.len(),
        2
    );
}

#[tokio::test]
async fn a_list_that_begins_again_has_all_its_room_again() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_secs(60);
    let leases = |next| page("LeaseList", &[], next, 7 << 19);
    shoot
        .api
        .faults()
        .add(continued(LEASES, true).once(), Fault::status(410));
    shoot
        .api
        .faults()
        .add(continued(LEASES, false), leases("more"));
    shoot.api.faults().add(continued(LEASES, true), leases(""));
    shoot.leases().await.expect("a complete answer");
    // A page that takes more than 0.5 s is asked for twice (D-58).
    assert!(
        (4..=8).contains(
            &shoot
                .asked()
                .iter()
                .filter(|asked| *asked == LEASES)
                .count()
        )
    );
}
