//! Nodes come page by page from one snapshot.

use std::time::Duration;

use api_server::protobuf::wire::{message, text};

use super::shoot::{TestShoot, list};

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

#[tokio::test]
async fn pages_without_an_end_are_given_up_by_what_all_of_them_hold() {
    // Fault 80: each page is within bounds.
    let long = message(2, &[message(1, &[text(1, &"x".repeat(1000))])]).repeat(400);
    for (kind, path, items, pages) in [
        ("LeaseList", "leases", vec![], 100),
        ("LeaseList", "leases", long.clone(), 3),
        ("NodeList", "nodes", long, 3),
    ] {
        let mut shoot = TestShoot::start().await;
        // Large bodies take their time in a debug build.
        shoot.timeout = Duration::from_secs(60);
        let metadata = message(1, &[text(2, "7"), text(3, "more")]);
        shoot.meets(path, list(kind, &[metadata, items]));
        let error = shoot.nodes().await.expect_err("no complete answer");
        assert_eq!(error.cause.category(), "too_large", "{error}");
        // A page that takes more than 0.5 s is asked for twice (D-58).
        let asked = shoot.asked().matches(path).count();
        assert!((pages..=2 * pages).contains(&asked), "{kind}: {asked}");
    }
}
