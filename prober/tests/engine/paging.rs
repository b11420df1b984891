//! Nodes come page by page from one snapshot.

use memory_api::{Fault, When};

use super::shoot::{NODES, Shoot, words};

/// The queries of the requests for nodes.
fn pages(shoot: &Shoot) -> Vec<String> {
    let nodes = shoot.api.requests().all().into_iter().filter(|record| record.path == NODES);
    nodes.map(|record| record.query).collect()
}

#[tokio::test]
async fn more_nodes_than_a_page_holds_are_listed_to_the_end() {
    let mut shoot = Shoot::start().await;
    shoot.add_nodes(3..1100);
    let seen = shoot.nodes().await.expect("a complete answer");
    let mut names: Vec<&str> = seen.items.iter().map(|node| node.name.as_str()).collect();
    names.dedup();
    assert_eq!(names.len(), 1100);
    let pages = pages(&shoot);
    assert_eq!(pages.len(), 3);
    assert!(pages.iter().all(|query| query.contains("limit=500")), "{pages:?}");
    assert_eq!(pages.iter().map(|query| query.contains("continue=")).collect::<Vec<_>>(), [false, true, true]);
}

#[tokio::test]
async fn a_full_page_is_followed_by_none() {
    let mut shoot = Shoot::start().await;
    shoot.add_nodes(3..500);
    assert_eq!(shoot.nodes().await.expect("a complete answer").items.len(), 500);
    assert_eq!(pages(&shoot).len(), 1);
}

#[tokio::test]
async fn what_changes_between_the_pages_does_not_show() {
    let mut shoot = Shoot::start().await;
    shoot.add_nodes(3..600);
    let store = shoot.api.store().clone();
    // Seen by every request and met by none: it changes the nodes when the second page is asked for.
    let change = When::matches(move |record| {
        if record.path == NODES && record.query.contains("continue=") {
            store.delete("nodes", "", "node-0550").expect("it was there");
        }
        false
    });
    shoot.api.faults().add(change, Fault::Stall);
    let seen = shoot.nodes().await.expect("a complete answer");
    assert_eq!(seen.items.len(), 600);
    assert!(shoot.api.store().get("nodes", "", "node-0550").is_none());
}

#[tokio::test]
async fn a_snapshot_that_is_gone_between_the_pages_begins_anew_once() {
    let mut shoot = Shoot::start().await;
    shoot.add_nodes(3..1100);
    let gone = || When::matches(|record| record.path == NODES && record.query.contains("continue="));
    shoot.api.faults().add(gone().once(), Fault::status(410));
    assert_eq!(shoot.nodes().await.expect("a complete answer").items.len(), 1100);
    let continued: Vec<bool> = pages(&shoot).iter().map(|query| query.contains("continue=")).collect();
    assert_eq!(continued, [false, true, false, true, true]);

    shoot.api.requests().clear();
    shoot.api.faults().add(gone(), Fault::status(410));
    let error = shoot.nodes().await.expect_err("no complete answer");
    assert_eq!(words(&error), ("nodes", "gone"));
    assert_eq!(pages(&shoot).len(), 4);
}

#[tokio::test]
async fn a_list_that_breaks_off_between_the_pages_is_no_list() {
    let mut shoot = Shoot::start().await;
    shoot.add_nodes(3..600);
    let second = When::matches(|record| record.path == NODES && record.query.contains("continue="));
    shoot.api.faults().add(second, Fault::status(500));
    let error = shoot.nodes().await.expect_err("a partial list");
    assert_eq!(words(&error), ("nodes", "server"));
}
