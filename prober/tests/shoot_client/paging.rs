//! Nodes come page by page from one snapshot.

use std::time::Duration;

use api_server::protobuf::wire::{bytes, message, text};
use api_server::{Fault, When};

use super::shoot::{TestShoot, list};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn more_nodes_than_a_page_holds_are_listed_to_the_end() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..1100);
    shoot.timeout = Duration::from_secs(20);
    let mut nodes = shoot.nodes().await.expect("a complete answer").items;
    nodes.dedup_by(|one, other| one.name == other.name);
    assert_eq!(nodes.len(), 1100);
    // In pages of 200.
    let pages = "leases/1 nodes/1 nodes+/1 nodes+/1 nodes+/1 nodes+/1 nodes+/1";
    assert_eq!(shoot.asked(), pages);
}

#[tokio::test]
async fn what_changes_between_the_pages_does_not_show() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..600);
    let store = shoot.api.store().clone();
    // Met by no request: it only deletes a node of a later page when the second one is asked for.
    let change = When::matches(move |record| {
        if record.query.contains("continue=") {
            let _ = store.delete("nodes", "", "node-0550");
        }
        false
    });
    shoot.api.faults().add(change, Fault::Stall);
    shoot
        .tell("probe nodes: 600 by leases/1 nodes/1 nodes+/1 nodes+/1")
        .await;
    assert!(shoot.api.store().get("nodes", "", "node-0550").is_none());
}

#[tokio::test]
async fn a_snapshot_that_is_gone_between_the_pages_begins_again_once() {
    let mut shoot = TestShoot::start().await;
    shoot.add_nodes(3..300);
    shoot
        .tell(
            "nodes+ 410 once; probe nodes: 300 by leases/1 nodes/1 nodes+/1 nodes/1 nodes+/1; \
             nodes+ 410; probe nodes: gone at nodes by leases/1 nodes/1 nodes+/1 nodes/1 nodes+/1; \
             faults end; nodes+ 500; probe nodes: server at nodes by leases/1 nodes/1 nodes+/1",
        )
        .await;
}

/// A page that is as long as wanted by a field that nobody reads.
fn page(kind: &str, items: &[u8], next: &str, length: usize) -> Fault {
    let metadata = message(1, &[text(2, "7"), text(3, next)]);
    let filler = bytes(90, &vec![0; length]);
    list(kind, &[metadata, items.to_vec(), filler])
}

/// So many items with a name.
fn named(name: &str, count: usize) -> Vec<u8> {
    message(2, &[message(1, &[text(1, name)])]).repeat(count)
}

#[tokio::test]
async fn pages_without_an_end_are_given_up_by_what_all_of_them_hold() {
    // Fault 80: each page is within bounds.
    let (short, long) = (named("", 8_000), named(&"x".repeat(1000), 400));
    for (kind, path, items, length, pages) in [
        ("LeaseList", "leases", &vec![], 0, 100),
        ("LeaseList", "leases", &vec![], 5 * MIB / 2, 4),
        ("LeaseList", "leases", &short, 0, 3),
        ("NodeList", "nodes", &short, 0, 3),
        ("LeaseList", "leases", &long, 0, 3),
        ("NodeList", "nodes", &long, 0, 3),
    ] {
        let mut shoot = TestShoot::start().await;
        // Large bodies take their time in a debug build.
        shoot.timeout = Duration::from_secs(60);
        shoot.meets(path, page(kind, items, "more", length));
        let error = shoot.nodes().await.expect_err("no complete answer");
        assert_eq!(error.cause.category(), "too_large", "{error}");
        // A page that takes more than 0.5 s is asked for twice (D-58).
        let asked = shoot.asked().matches(path).count();
        assert!(
            (pages..=2 * pages).contains(&asked),
            "{kind} of {}: {asked}",
            items.len()
        );
    }
    // Together they may hold more than one answer may, also when they begin again.
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_secs(60);
    for (kind, path, more, length) in [
        ("NodeList", "nodes", "nodes+", 5 * MIB),
        ("LeaseList", "leases", "leases+", 7 * MIB / 2),
    ] {
        let page = |next| page(kind, &named("n", 1), next, length);
        shoot.meets_once(more, Fault::status(410));
        shoot.meets(more, page(""));
        shoot.meets(path, page("more"));
    }
    let seen = shoot.nodes().await.expect("a complete answer");
    assert_eq!(seen.items.len(), 2);
}
