//! How a candidate comes to lead, keeps its Lease and loses or releases it, on tokio's paused clock.

use std::time::Duration;

use api_server::{Fault, When};
use common::leader_election::{Lost, campaign};
use serde_json::json;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::{Instant, advance, timeout};

use crate::bed::{ElectionBed, LEASES, settings, soon};

fn updates() -> When {
    When::verb("update", LEASES)
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_by_put_alone_and_needs_no_reads() {
    let bed = ElectionBed::start().await;
    let replica = bed.leader().await;
    let created = bed.lease();
    assert_eq!((bed.count("create"), bed.count("update")), (1, 0));
    assert_eq!(
        (&created["holderIdentity"], &created["leaseTransitions"]),
        (&json!("one"), &json!(0))
    );
    bed.server.requests().clear();
    bed.asked("update", 5).await;
    let requests = bed.server.requests().all();
    let is_put = |verb: &str, resource: &str| verb == "update" || resource == "events";
    assert!(
        requests
            .iter()
            .all(|record| is_put(&record.verb, &record.resource)),
        "{requests:?}"
    );
    let lease = bed.lease();
    for field in ["acquireTime", "leaseTransitions"] {
        assert_eq!(lease[field], created[field]);
    }
    replica.end().await;
    assert_eq!(
        (
            bed.lease()["holderIdentity"].as_str(),
            &bed.lease()["leaseDurationSeconds"]
        ),
        (Some(""), &json!(1))
    );
    bed.check();
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_the_lease_is_looked_at_in_the_rhythm_of_the_retry_period() {
    // What a watch tells is not asked for.
    for (fault, gets) in [
        (None, 0..5),
        (Some(Fault::status(500)), 5..30),
        (Some(Fault::Stall), 5..30),
    ] {
        let bed = ElectionBed::start().await;
        if let Some(fault) = &fault {
            bed.fails(When::verb("watch", LEASES), fault);
        }
        let one = bed.leader().await;
        let two = bed.replica("two", settings());
        bed.asked("update", 20).await;
        assert!(gets.contains(&bed.count("get")), "{fault:?}");
        one.end().await;
        two.leads().await;
        two.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_vanishes_while_another_holds_it_is_made_again_only_after_his_time() {
    let bed = ElectionBed::start().await;
    bed.hold(20, 0);
    let replica = bed.replica("one", settings());
    bed.asked("watch", 1).await;
    let begin = Instant::now();
    bed.delete();
    // A holder that makes it again is respected.
    advance(Duration::from_secs(15)).await;
    bed.hold(20, 1);
    assert!(
        timeout(Duration::from_secs(19), replica.fence.opened())
            .await
            .is_err()
    );
    bed.delete();
    replica.leads().await;
    let waited = begin.elapsed().as_secs();
    assert!((35..37).contains(&waited), "{waited}");
    assert_eq!(bed.lease()["leaseTransitions"], 0);
    assert!(
        bed.server.requests().total() < 12,
        "{:?}",
        bed.server.requests().all()
    );
    replica.end().await;
    bed.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_work_computes_for_long_renews_all_the_same() {
    let bed = ElectionBed::start().await;
    let mut quick = settings();
    quick.retry_period = Duration::from_millis(100);
    let (elector, fence) = bed.candidate("one", quick);
    #[expect(
        clippy::disallowed_methods,
        reason = "work that does not let go of its thread"
    )]
    let work = async {
        fence.opened().await;
        let before = bed.count("update");
        while bed.count("update") < before + 5 {
            assert!(fence.is_open());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    soon(campaign(elector, work)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_kept_until_the_work_has_ended() {
    let bed = ElectionBed::start().await;
    let (elector, fence) = bed.candidate("one", settings());
    let work = async {
        fence.opened().await;
        bed.asked("update", 3).await;
        assert_eq!((&*bed.holder(), fence.is_open()), ("one", true));
    };
    soon(campaign(elector, work)).await.unwrap();
    assert_eq!((&*bed.holder(), fence.is_open()), ("", false));
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_deleted_makes_it_again_and_leads_on() {
    let bed = ElectionBed::start().await;
    let replica = bed.leader().await;
    for _ in 0..2 {
        bed.delete();
        bed.asked("create", 1).await;
        bed.asked("update", 2).await;
        assert_eq!((&*bed.holder(), replica.fence.is_open()), ("one", true));
    }
    replica.end().await;
    bed.check();
}

#[tokio::test(start_paused = true)]
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
        let replica = bed.leader().await;
        let id = bed.fails(updates().times(3), &fault);
        // Somebody else's change costs nothing either.
        bed.patch(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"preferredHolder": "x"}}));
        bed.asked("update", 6).await;
        assert!(replica.fence.is_open(), "{fault:?}");
        assert_eq!(bed.server.faults().hits(id), 3);
        replica.end().await;
        assert_eq!(
            (&*bed.holder(), &bed.lease()["preferredHolder"]),
            ("", &json!("x")),
            "{fault:?}"
        );
        bed.check();
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_up_whatever_becomes_of_the_last_requests() {
    // Of the renewal that gets no answer, the server has applied nothing, or all.
    for (fault, met) in [
        (Fault::Stall, 1),
        (Fault::StallAfter, 1),
        (Fault::CloseAfter, 0),
    ] {
        let bed = ElectionBed::start().await;
        let replica = bed.leader().await;
        let id = bed.fails(updates().once(), &fault);
        soon(bed.server.faults().met(id, met)).await;
        replica.end().await;
        assert_eq!(&*bed.holder(), "", "{fault:?}");
    }
    let bed = ElectionBed::start().await;
    let replica = bed.leader().await;
    bed.link.cut(true);
    let begin = Instant::now();
    replica.end().await;
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_at_its_deadline() {
    for fault in [
        Fault::status(500),
        Fault::status(403),
        Fault::throttle(1),
        Fault::Stall,
        Fault::CloseBefore,
    ] {
        let bed = ElectionBed::start().await;
        let replica = bed.leader().await;
        bed.asked("update", 2).await;
        let last = Instant::now();
        bed.fails(updates(), &fault);
        let lost = replica.loses().await;
        assert!(matches!(lost, Lost::Expired(_)), "{fault:?}: {lost}");
        let held = last.elapsed().as_secs_f64();
        assert!((9.9..10.1).contains(&held), "{fault:?}: {held:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn work_ends_with_the_lead() {
    let bed = ElectionBed::start().await;
    let (elector, fence) = bed.candidate("one", settings());
    let (work, mut ended) = tokio::sync::oneshot::channel::<()>();
    let campaign = tokio::spawn(campaign(elector, async move {
        let _until_dropped = work;
        std::future::pending().await
    }));
    soon(fence.opened()).await;
    assert_eq!(ended.try_recv(), Err(TryRecvError::Empty));
    bed.patch(json!({"spec": {"holderIdentity": "other"}}));
    let lost = soon(campaign).await.unwrap().unwrap_err();
    assert!(
        matches!(&lost, Lost::Taken(holder) if holder == "other"),
        "{lost}"
    );
    assert!(!fence.is_open());
    assert_eq!(ended.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(&*bed.holder(), "other");
    bed.check();
}
