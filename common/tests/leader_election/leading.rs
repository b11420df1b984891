//! How a candidate comes to lead, keeps its Lease and loses or releases it, on tokio's paused clock.

use std::time::Duration;

use api_server::Fault;
use common::events::Events;
use common::leader_election::{Lost, campaign};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::bed::{Bed, GARDEN, LEASE, LEASE_DURATION, MOMENT, RETRY_PERIOD, settings, soon};
use crate::events::messages;

#[tokio::test(start_paused = true)]
async fn a_leader_renews_by_put_alone_and_needs_no_reads() {
    let bed = Bed::start().await;
    let one = bed.leader().await;
    let created = bed.lease();
    bed.asked("update", 5).await;
    let asked = ["get", "create", "watch", "list", "patch"].map(|verb| bed.count(verb));
    assert_eq!(asked, [1, 1, 0, 0, 0], "one look before it is created");
    let lease = bed.lease();
    assert_eq!(
        (&*bed.holder(), &lease["leaseTransitions"]),
        ("one", &json!(0))
    );
    assert_eq!(lease["acquireTime"], created["acquireTime"]);
    one.end().await;
    assert_eq!(bed.holder(), "");
    // The last one may still be under way.
    sleep(RETRY_PERIOD).await;
    let said = ["one became leader", "one stopped leading"];
    assert_eq!(messages(&bed, GARDEN), said);
    bed.check();
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_within_a_retry_period_and_read_no_more_often() {
    let bed = Bed::start().await;
    let one = bed.leader().await;
    let two = bed.replica("two");
    let before = bed.count("get");
    bed.asked("update", 20).await;
    let reads = bed.count("get") - before;
    assert!((18..=21).contains(&reads), "{reads}");
    one.end().await;
    let taken = timeout(RETRY_PERIOD + MOMENT, two.election.elected()).await;
    taken.expect("within a retry period");
    two.end().await;
    bed.check();
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_silent_after_three_periods_and_replaced_after_its_lease() {
    let bed = Bed::start().await;
    let one = bed.leader().await;
    let two = bed.replica("two");
    bed.asked("update", 20).await;
    let silent_from = || {
        let silent_from = two.election.leader_silent_from();
        silent_from.expect("a Lease was seen")
    };
    // Not while it renews.
    let begin = Instant::now();
    while begin.elapsed() < 4 * LEASE_DURATION {
        sleep(RETRY_PERIOD / 7).await;
        let left = silent_from() - Instant::now();
        assert!(left > RETRY_PERIOD, "{left:?}");
    }
    bed.asked("update", 1).await;
    let renewed = Instant::now();
    one.link.cut(true);
    while Instant::now() < silent_from() {
        sleep_until(silent_from()).await;
    }
    let (waited, silence) = (renewed.elapsed(), 3 * RETRY_PERIOD + Duration::from_secs(1));
    let most = silence + RETRY_PERIOD + MOMENT;
    assert!(waited >= silence && waited < most, "{waited:?}");
    two.leads().await;
    let waited = renewed.elapsed();
    let most = LEASE_DURATION + 2 * RETRY_PERIOD + MOMENT;
    assert!(waited >= LEASE_DURATION && waited <= most, "{waited:?}");
    two.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_vanishes_while_another_holds_it_is_made_again_only_after_his_time() {
    let bed = Bed::start().await;
    let hold = |renewals: u32| {
        let lease = format!(
            r#"{{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {{"namespace": "garden", "name": "{LEASE}"}},
                "spec": {{"holderIdentity": "other", "leaseDurationSeconds": 20, "renewTime": "2026-01-01T00:00:0{renewals}.000000Z"}}}}"#
        );
        bed.server.store().apply(lease.parse().unwrap()).unwrap();
    };
    hold(0);
    let one = bed.replica("one");
    bed.asked("get", 1).await;
    bed.delete();
    // A holder that makes it again is respected.
    sleep(Duration::from_secs(15)).await;
    hold(1);
    let begin = Instant::now();
    let early = timeout(Duration::from_secs(19), one.election.elected()).await;
    early.expect_err("it is respected");
    bed.delete();
    one.leads().await;
    let waited = begin.elapsed();
    let most = Duration::from_secs(20) + 2 * RETRY_PERIOD + MOMENT;
    assert!(waited.as_secs() >= 20 && waited < most, "{waited:?}");
    assert_eq!(bed.lease()["leaseTransitions"], 0);
    one.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_kept_and_renewed_until_the_work_has_ended() {
    let bed = Bed::start().await;
    let (elector, election) = bed.link("one").candidate(settings(10), Events::none());
    let work = async {
        election.elected().await;
        sleep(2 * LEASE_DURATION).await;
        assert_eq!((&*bed.holder(), election.leads()), ("one", true));
    };
    campaign(elector, work).await.unwrap();
    assert_eq!((&*bed.holder(), election.leads()), ("", false));
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_deleted_makes_it_again_and_leads_on() {
    let bed = Bed::start().await;
    let one = bed.leader().await;
    for _ in 0..2 {
        bed.delete();
        bed.asked("create", 1).await;
        bed.asked("update", 2).await;
        assert_eq!((&*bed.holder(), one.election.leads()), ("one", true));
    }
    one.end().await;
    bed.check();
}

#[tokio::test(start_paused = true)]
async fn a_leader_survives_failures_that_are_shorter_than_its_deadline() {
    for (fault, times) in [
        (Fault::status(500), 3),
        (Fault::CloseAfter, 3),
        (Fault::Truncate, 3),
        (Fault::StallAfter, 1),
    ] {
        let bed = Bed::start().await;
        let one = bed.leader().await;
        let failed = bed.fails("update", times, &fault);
        // Somebody else's change costs nothing either.
        bed.patch(r#"{"metadata": {"labels": {"a": "b"}}, "spec": {"preferredHolder": "x"}}"#);
        bed.asked("update", 6).await;
        assert!(one.election.leads(), "{fault:?}");
        assert_eq!(bed.server.faults().hits(failed), times);
        // It gives its Lease up whatever becomes of its release, or of a renewal without an answer.
        let last = bed.fails("update", 1, &fault);
        if times == 1 {
            soon(bed.server.faults().met(last, 1)).await;
        }
        one.end().await;
        let left = (bed.holder(), bed.lease()["preferredHolder"].take());
        assert_eq!(left, (String::new(), json!("x")), "{fault:?}");
        bed.check();
    }
    let one = Bed::start().await.leader().await;
    one.link.cut(true);
    let end = timeout(Duration::from_secs(5), one.end()).await;
    end.expect("an end in time without an answer");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_at_its_deadline() {
    for fault in [Fault::status(403), Fault::Stall, Fault::CloseBefore] {
        let bed = Bed::start().await;
        let one = bed.leader().await;
        bed.asked("update", 2).await;
        let last = Instant::now();
        bed.fails("update", u64::MAX, &fault);
        let lost = one.ended().await.unwrap_err();
        assert!(matches!(lost, Lost::Expired(_)), "{fault:?}: {lost}");
        let held = last.elapsed().as_secs_f64();
        assert!((9.9..10.1).contains(&held), "{fault:?}: {held:?}");
    }
    // At once if another one holds the Lease.
    let bed = Bed::start().await;
    let one = bed.leader().await;
    bed.patch(r#"{"spec": {"holderIdentity": "other"}}"#);
    let lost = timeout(LEASE_DURATION / 3, one.ended()).await.unwrap();
    assert!(matches!(lost, Err(Lost::Taken(holder)) if holder == "other"));
    assert_eq!(bed.holder(), "other");
}
