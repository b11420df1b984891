//! What a leader does with its Lease, and how it gives it up.

use std::time::Duration;

use api_server::{Fault, PATIENCE, When};
use common::flags::LeaderElection;
use common::leader_election::campaign;
use serde_json::json;
use tokio::time::Instant;

use crate::bed::{ElectionBed, GARDEN, LEASE, LEASES, quick, soon};

#[tokio::test]
async fn a_leader_renews_by_put_alone_and_needs_no_reads() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    let first = bed.lease();
    bed.server.requests().clear();
    bed.asked("update", 5).await;
    let requests = bed.server.requests().all();
    assert!(
        requests
            .iter()
            .all(|record| record.verb == "update" || record.resource == "events"),
        "{requests:?}"
    );
    let lease = bed.lease();
    assert!(lease["renewTime"].as_str() > first["renewTime"].as_str());
    assert_eq!(
        (&lease["acquireTime"], &lease["leaseTransitions"]),
        (&first["acquireTime"], &first["leaseTransitions"])
    );
    replica.end().await;
    bed.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_work_computes_for_long_renews_all_the_same() {
    let bed = ElectionBed::start().await;
    let (elector, fence) = bed.candidate("one", quick());
    #[expect(
        clippy::disallowed_methods,
        reason = "work that does not let go of its thread"
    )]
    let work = async {
        fence.opened().await;
        let (begin, before) = (Instant::now(), bed.count("update"));
        while bed.count("update") < before + 5 {
            assert!(fence.is_open() && begin.elapsed() < PATIENCE);
            std::thread::sleep(quick().retry_period / 10);
        }
    };
    soon(campaign(elector, work)).await.unwrap();
    assert_eq!(bed.holder(), "", "given up after the work");
    bed.check();
}

#[tokio::test]
async fn the_lease_is_kept_until_the_work_has_ended() {
    let bed = ElectionBed::start().await;
    let (elector, fence) = bed.candidate("one", quick());
    let work = async {
        fence.opened().await;
        let renewed = bed.count("update") + 3;
        bed.asked("update", renewed).await;
        assert_eq!((bed.holder().as_str(), fence.is_open()), ("one", true));
    };
    soon(campaign(elector, work)).await.unwrap();
    assert_eq!((bed.holder().as_str(), fence.is_open()), ("", false));
}

#[tokio::test]
async fn a_campaign_that_is_dropped_ends_the_renewals() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    bed.asked("update", 1).await;
    let fence = replica.fence.clone();
    replica.kill().await;
    soon(fence.while_open(std::future::pending::<()>())).await;
    assert_eq!(
        bed.holder(),
        "one",
        "it was not given up, and it has run out"
    );
    bed.check();
}

#[tokio::test]
async fn a_lease_that_is_given_up_says_so_in_client_gos_words() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    bed.asked("update", 1).await;
    let fence = replica.fence.clone();
    replica.end().await;
    assert!(!fence.is_open());
    let lease = bed.lease();
    assert_eq!(
        (
            &lease["holderIdentity"],
            &lease["leaseDurationSeconds"],
            &lease["leaseTransitions"]
        ),
        (&"".into(), &1.into(), &0.into())
    );
    bed.check();
}

#[tokio::test]
async fn somebody_elses_change_of_the_lease_costs_neither_the_lead_nor_the_change() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"preferredHolder": "x"}});
    bed.server
        .store()
        .patch(LEASES, GARDEN, LEASE, &patch)
        .unwrap();
    let before = bed.count("update");
    bed.asked("update", before + 3).await;
    assert!(replica.fence.is_open());
    replica.end().await;
    let lease = bed.server.store().get(LEASES, GARDEN, LEASE).unwrap();
    assert_eq!(
        (
            &lease["metadata"]["labels"]["a"],
            &lease["spec"]["preferredHolder"]
        ),
        (&"b".into(), &"x".into())
    );
    bed.check();
}

#[tokio::test]
async fn a_leader_whose_lease_is_deleted_makes_it_again_and_leads_on() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    for round in 2..4 {
        bed.delete();
        bed.asked("create", round).await;
        let before = bed.count("update");
        bed.asked("update", before + 2).await;
        assert!(replica.fence.is_open());
    }
    assert_eq!(bed.holder(), "one");
    replica.end().await;
    assert_eq!(bed.holder(), "");
    bed.check();
}

#[tokio::test]
async fn a_leader_survives_failures_that_are_shorter_than_its_deadline() {
    for fault in [
        Fault::status(500),
        Fault::throttle(1),
        Fault::CloseBefore,
        Fault::CloseAfter,
        Fault::Garbage,
        Fault::Truncate,
    ] {
        let bed = ElectionBed::start().await;
        let replica = bed.replica("one", quick());
        replica.leads().await;
        let id = bed
            .server
            .faults()
            .add(When::verb("update", LEASES).times(3), fault.clone());
        let before = bed.count("update");
        bed.asked("update", before + 6).await;
        assert!(replica.fence.is_open(), "{fault:?}");
        assert_eq!(bed.server.faults().hits(id), 3);
        replica.end().await;
        assert_eq!(bed.holder(), "", "{fault:?}");
        bed.check();
    }
}

#[tokio::test]
async fn a_lease_is_given_up_even_when_the_end_comes_in_the_middle_of_a_renewal() {
    // Of the renewal that never gets its answer, the server has applied nothing, or all.
    for fault in [Fault::Stall, Fault::StallAfter] {
        let bed = ElectionBed::start().await;
        let replica = bed.replica("one", quick());
        replica.leads().await;
        let id = bed
            .server
            .faults()
            .add(When::verb("update", LEASES).once(), fault.clone());
        soon(bed.server.faults().met(id, 1)).await;
        replica.end().await;
        assert_eq!(
            (bed.holder(), &bed.lease()["leaseDurationSeconds"]),
            ("".into(), &1.into()),
            "{fault:?}"
        );
        bed.check();
    }
}

#[tokio::test]
async fn a_lease_is_given_up_although_the_answer_to_that_gets_lost() {
    let bed = ElectionBed::start().await;
    // No renewal comes before the end.
    let replica = bed.replica(
        "one",
        LeaderElection {
            retry_period: Duration::from_secs(1),
            ..quick()
        },
    );
    replica.leads().await;
    bed.server
        .faults()
        .add(When::verb("update", LEASES).once(), Fault::CloseAfter);
    soon(replica.end()).await;
    assert_eq!(bed.holder(), "");
    bed.check();
}

#[tokio::test]
async fn the_end_does_not_wait_for_long_for_an_api_server_that_does_not_answer() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    bed.server.set_network(api_server::Network::Silent);
    let begin = tokio::time::Instant::now();
    replica.stop.cancel();
    soon(replica.task).await.unwrap().unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
}
