//! How a candidate comes to lead.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_server::{Fault, PATIENCE, When};
use chrono::Utc;
use common::logging::{LevelFilter, ZapLayer};
use tokio::time::Instant;
use tracing::instrument::WithSubscriber;
use tracing_subscriber::layer::SubscriberExt;

use crate::bed::{ElectionBed, GARDEN, LEASE, LEASES, quick, soon};

#[tokio::test]
async fn a_lease_that_does_not_exist_is_created() {
    let bed = ElectionBed::start().await;
    let replica = bed.replica("one", quick());
    replica.leads().await;
    let lease = bed.lease();
    assert_eq!(
        (
            &lease["holderIdentity"],
            &lease["leaseDurationSeconds"],
            &lease["leaseTransitions"]
        ),
        (
            &"one".into(),
            &quick().lease_duration.as_secs().into(),
            &0.into()
        )
    );
    assert_eq!(lease["acquireTime"], lease["renewTime"]);
    assert_eq!((bed.count("create"), bed.count("update")), (1, 0));
    replica.end().await;
    bed.check();
}

#[tokio::test]
async fn a_candidate_whose_creation_was_not_answered_leads_by_it() {
    let bed = ElectionBed::start().await;
    bed.server
        .faults()
        .add(When::verb("create", LEASES).once(), Fault::CloseAfter);
    let replica = bed.replica("one", quick());
    replica.leads().await;
    assert_eq!((bed.holder(), bed.count("create")), ("one".into(), 1));
    replica.end().await;
}

#[tokio::test]
async fn of_two_candidates_one_leads_and_the_other_watches() {
    let bed = ElectionBed::start().await;
    let (one, two) = (bed.replica("one", quick()), bed.replica("two", quick()));
    bed.asked("watch", 1).await;
    bed.asked("update", 20).await;
    assert!(one.fence.is_open() != two.fence.is_open());
    let (leader, other) = if one.fence.is_open() {
        (one, two)
    } else {
        (two, one)
    };
    // What it does not learn from its watch it does not ask for.
    assert!(bed.count("get") <= 4, "{:?}", bed.server.requests().all());
    other.end().await;
    leader.end().await;
    bed.check();
}

#[tokio::test]
async fn a_lease_that_is_given_up_is_taken_at_once_by_the_one_that_waits() {
    let bed = ElectionBed::start().await;
    let slow = || {
        let mut slow = quick();
        (slow.lease_duration, slow.renew_deadline, slow.retry_period) =
            (PATIENCE * 4, PATIENCE * 3, PATIENCE * 2);
        slow
    };
    let one = bed.replica("one", slow());
    one.leads().await;
    let two = bed.replica("two", slow());
    bed.asked("watch", 1).await;
    one.end().await;
    two.leads().await;
    assert_eq!(
        (bed.holder(), &bed.lease()["leaseTransitions"]),
        ("two".into(), &1.into())
    );
    two.end().await;
    bed.check();
}

#[tokio::test]
async fn a_holder_whose_clock_is_wrong_is_left_alone_for_its_lease_duration_as_seen_from_here() {
    for stamp in ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let bed = ElectionBed::start().await;
        bed.hold("other", 2, stamp);
        let begin = Instant::now();
        let replica = bed.replica("one", quick());
        replica.leads().await;
        let waited = begin.elapsed();
        assert!(waited >= Duration::from_secs(2), "{waited:?}");
        let lease = bed.lease();
        assert_eq!(
            (&lease["leaseTransitions"], &lease["strategy"]),
            (&5.into(), &"not ours".into())
        );
        replica.end().await;
        bed.check();
    }
}

#[tokio::test]
async fn a_lease_that_vanishes_while_another_holds_it_is_made_again_only_after_his_time() {
    let bed = ElectionBed::start().await;
    bed.hold("other", 2, "2026-01-01T00:00:00.000000Z");
    let begin = Instant::now();
    let replica = bed.replica("one", quick());
    bed.asked("watch", 1).await;
    bed.delete();
    replica.leads().await;
    assert!(
        begin.elapsed() >= Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(bed.lease()["leaseTransitions"], 0);
    assert!(
        bed.server.requests().total() < 10,
        "{:?}",
        bed.server.requests().all()
    );
    replica.end().await;
}

#[tokio::test]
async fn a_holder_that_makes_a_vanished_lease_again_is_respected() {
    let bed = ElectionBed::start().await;
    bed.hold("other", 2, "2026-01-01T00:00:00.000000Z");
    let replica = bed.replica("one", quick());
    bed.asked("watch", 1).await;
    bed.delete();
    let mut renewed = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        renewed += 1;
        bed.hold("other", 2, &format!("2026-01-01T00:00:00.{renewed:06}Z"));
        assert!(
            tokio::time::timeout(Duration::from_millis(200), replica.fence.opened())
                .await
                .is_err(),
            "two lead"
        );
    }
    replica.leads().await;
    replica.end().await;
    bed.check();
}

#[tokio::test]
async fn without_a_watch_the_lease_is_looked_at_in_the_rhythm_of_the_retry_period() {
    for fault in [Fault::status(500), Fault::Stall, Fault::CloseBefore] {
        let bed = ElectionBed::start().await;
        bed.server
            .faults()
            .add(When::verb("watch", LEASES), fault.clone());
        let one = bed.replica("one", quick());
        one.leads().await;
        let two = bed.replica("two", quick());
        bed.asked("watch", 1).await;
        one.end().await;
        two.leads().await;
        assert!(
            bed.count("get") < 60,
            "{fault:?}: {:?}",
            bed.server.requests().all()
        );
        two.end().await;
    }
}

#[tokio::test]
async fn broken_watches_and_forgotten_versions_do_not_hide_a_free_lease() {
    let bed = ElectionBed::start().await;
    let one = bed.replica("one", quick());
    one.leads().await;
    let two = bed.replica("two", quick());
    bed.asked("watch", 1).await;
    bed.server.store().break_watches();
    bed.asked("watch", 2).await;
    bed.server.cut_connections();
    bed.asked("watch", 3).await;
    bed.server.store().compact();
    assert!(!two.fence.is_open());
    one.end().await;
    two.leads().await;
    two.end().await;
    bed.check();
}

#[tokio::test]
async fn a_candidate_that_never_led_leaves_the_lease_as_it_is() {
    let bed = ElectionBed::start().await;
    bed.hold("other", 3600, "2026-01-01T00:00:00.000000Z");
    let before = bed.server.store().get(LEASES, GARDEN, LEASE);
    let replica = bed.replica("one", quick());
    bed.asked("watch", 1).await;
    soon(replica.end()).await;
    assert_eq!(bed.server.store().get(LEASES, GARDEN, LEASE), before);
    assert_eq!(bed.server.requests().writes(), 0);
}

#[tokio::test]
async fn a_lease_that_cannot_be_read_is_logged_with_the_causes() {
    let bed = ElectionBed::start().await;
    bed.server
        .faults()
        .add(When::verb("get", LEASES).once(), Fault::CloseBefore);
    let lines = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&lines);
    let sink = move |line: Vec<u8>| {
        heard
            .lock()
            .unwrap()
            .push_str(std::str::from_utf8(&line).unwrap())
    };
    // With a single logger tracing asks that of whichever test is first whether a line is wanted,
    // and remembers it for all.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let log =
        tracing_subscriber::registry().with(ZapLayer::new(LevelFilter::DEBUG, sink, Utc::now));
    let (mut elector, _fence) = bed.candidate("one", quick());
    soon(elector.acquire().with_subscriber(log)).await;
    let lines = lines.lock().unwrap().clone();
    assert!(
        lines.contains("Lease cannot be read or written") && lines.contains("(SendRequest): "),
        "{lines}"
    );
}
