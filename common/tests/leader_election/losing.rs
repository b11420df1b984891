//! How leadership is lost, and that nothing is written after that.

use api_server::{Fault, Network, When};
use common::leader_election::{Lost, campaign};
use serde_json::json;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;

use crate::bed::{ElectionBed, GARDEN, LEASE, LEASES, quick, soon};

/// When the last request that renewed the Lease came.
fn last_renewal(bed: &ElectionBed) -> Instant {
    let requests = bed.server.requests().all();
    let good = |record: &&api_server::Record| {
        record.resource == LEASES
            && matches!(record.verb.as_str(), "create" | "update")
            && matches!(record.status, Some(200 | 201))
    };
    requests
        .iter()
        .rfind(good)
        .and_then(|record| record.at)
        .unwrap()
}

#[tokio::test]
async fn a_leader_that_cannot_renew_stops_at_its_deadline() {
    let faults = [
        Fault::status(500),
        Fault::status(403),
        Fault::throttle(1),
        Fault::Stall,
        Fault::CloseBefore,
        Fault::Garbage,
    ];
    for fault in faults {
        let bed = ElectionBed::start().await;
        let replica = bed.replica("one", quick());
        replica.leads().await;
        bed.asked("update", 2).await;
        bed.server
            .faults()
            .add(When::verb("update", LEASES), fault.clone());
        let lost = soon(replica.task).await.unwrap().unwrap_err();
        let (ended, last) = (Instant::now(), last_renewal(&bed));
        assert!(matches!(lost, Lost::Expired(_)), "{fault:?}: {lost}");
        assert!(!replica.fence.is_open());
        if !matches!(fault, Fault::Garbage) {
            let held = ended - last;
            // The deadline counts from when it was sent, which on a busy machine is well before it
            // came.
            assert!(held > quick().renew_deadline / 2, "{fault:?}: {held:?}");
            assert!(held < quick().lease_duration, "{fault:?}: {held:?}");
        }
    }
}

#[tokio::test]
async fn a_leader_behind_a_silent_network_stops_before_another_can_lead() {
    let bed = ElectionBed::start().await;
    let one = bed.replica("one", quick());
    one.leads().await;
    bed.asked("update", 2).await;
    bed.server.set_network(Network::Silent);
    let closed = one.fence.while_open(std::future::pending::<()>());
    assert_eq!(soon(closed).await, None);
    assert!(Instant::now() - last_renewal(&bed) < quick().lease_duration);
    assert!(matches!(
        soon(one.task).await.unwrap(),
        Err(Lost::Expired(_))
    ));
    bed.server.set_network(Network::Up);
    let two = bed.replica("two", quick());
    two.leads().await;
    two.end().await;
}

#[tokio::test]
async fn a_leader_that_finds_another_holder_stops_at_once() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    bed.server
        .store()
        .patch(
            LEASES,
            GARDEN,
            LEASE,
            &json!({"spec": {"holderIdentity": "other"}}),
        )
        .unwrap();
    let lost = soon(replica.task).await.unwrap().unwrap_err();
    assert!(
        matches!(&lost, Lost::Taken(holder) if holder == "other"),
        "{lost}"
    );
    assert!(!replica.fence.is_open());
    assert_eq!(bed.holder(), "other");
    bed.check();
}

#[tokio::test]
async fn a_process_that_was_held_up_beyond_its_deadline_renews_nothing() {
    let bed = ElectionBed::start().await;
    let (mut elector, fence) = bed.candidate("one", quick());
    soon(elector.acquire()).await;
    let before = bed.server.requests().total();
    // As after SIGSTOP: time has passed, and nothing of ours has run.
    tokio::time::pause();
    tokio::time::advance(quick().renew_deadline).await;
    tokio::time::resume();
    assert!(!fence.is_open());
    assert!(matches!(soon(elector.renew()).await, Lost::Expired(_)));
    assert_eq!(bed.server.requests().total(), before);
}

#[tokio::test]
async fn work_ends_with_the_lead() {
    let bed = ElectionBed::start().await;
    let (elector, fence) = bed.candidate("one", quick());
    let (work, mut ended) = tokio::sync::oneshot::channel::<()>();
    let campaign = campaign(elector, async move {
        let _until_dropped = work;
        std::future::pending().await
    });
    let campaign = tokio::spawn(campaign);
    soon(fence.opened()).await;
    assert_eq!(ended.try_recv(), Err(TryRecvError::Empty));
    bed.server
        .store()
        .patch(
            LEASES,
            GARDEN,
            LEASE,
            &json!({"spec": {"holderIdentity": "other"}}),
        )
        .unwrap();
    assert!(soon(campaign).await.unwrap().is_err());
    assert_eq!(ended.try_recv(), Err(TryRecvError::Closed));
}
