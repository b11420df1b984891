use prober_core::judgement::Finding;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::super::gauges::UNKNOWN;
use super::*;
use crate::observability::outage::OutageEnd;
use crate::observability::zones::LostZone;
use crate::owner_records::record::Unresolved;
use crate::tests::{found_with_grace, nothing_found, outcome};

fn shown(statuses: &ShootStatuses) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(statuses.clone()));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

fn assert_shown(statuses: &ShootStatuses, lines: &[String]) {
    let text = shown(statuses);
    for line in lines {
        let mut lines = text.lines();
        assert!(
            lines.any(|shown| shown == line),
            "{line} is missing in {text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_zone_is_counted_and_named_only_where_shoots_are_distinguished() {
    for per_shoot in [false, true] {
        let statuses = ShootStatuses::new(Clock::start(), per_shoot);
        assert_shown(&statuses, &["dwd_lost_zone_shoots 0.0".into()]);
        let handle = statuses.register("shoot--a--b".into(), Moment::START);
        let lost = LostZone {
            zone: "eu-1a".into(),
            candidates: 5,
            expired: 4,
        };
        let outcome = ProbeOutcome {
            lost_zones: vec![lost],
            ..outcome(nothing_found())
        };
        handle.update(|status| status.outcome = Some(Arc::new(outcome)));
        assert_shown(&statuses, &["dwd_lost_zone_shoots 1.0".into()]);
        let series = "dwd_shoot_lost_zone_leases{shoot=\"shoot--a--b\",zone=\"eu-1a\"} 4.0";
        assert_eq!(shown(&statuses).contains(series), per_shoot);
    }
}

#[tokio::test(start_paused = true)]
async fn shoots_whose_grace_is_too_short_are_counted() {
    let statuses = ShootStatuses::new(Clock::start(), false);
    let _handles = [("shoot--a--b", 10), ("shoot--a--c", 20)].map(|(name, seconds)| {
        let outcome = Some(Arc::new(outcome(found_with_grace(seconds))));
        let handle = statuses.register(name.into(), Moment::START);
        handle.update(|status| status.outcome = outcome);
        handle
    });
    assert_shown(&statuses, &["dwd_short_grace_shoots 1.0".into()]);
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_has_stood_down_is_never_overdue() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    let handle = statuses.register("shoot--a--b".into(), clock.now());
    tokio::time::advance(std::time::Duration::from_secs(100)).await;
    assert!(statuses.overdue(TimeDelta::seconds(90)).is_some());
    handle.update(|status| status.owner = Some(Ownership::Unresolved(Unresolved::Timeout)));
    assert!(statuses.overdue(TimeDelta::seconds(90)).is_none());
}

#[tokio::test(start_paused = true)]
async fn shoots_that_are_held_down_are_counted_by_what_their_last_probes_concluded() {
    let statuses = ShootStatuses::new(Clock::start(), false);
    let [held, free] = ["held", "free"].map(|name| statuses.register(name.into(), Moment::START));
    let find = |handle: &StatusHandle, verdict| {
        let finding = Finding {
            verdict,
            ..nothing_found()
        };
        handle.update(|status| status.outcome = Some(Arc::new(outcome(finding))));
    };
    // The verdict under which one is counted.
    let assert_counted = |counted: Option<&str>| {
        let words = Verdict::WORDS.iter().copied().chain([UNKNOWN]);
        let lines = words.map(|word| {
            let count = u32::from(counted == Some(word));
            format!("dwd_held_down_shoots{{verdict=\"{word}\"}} {count}.0")
        });
        assert_shown(&statuses, &lines.collect::<Vec<_>>());
    };
    assert_counted(None);
    find(&free, Verdict::ScaleUp);
    held.update(|status| status.set_held_down([&ResourceRef::default()], Moment::START));
    assert_counted(Some(UNKNOWN));
    find(&held, Verdict::HoldSingleCandidate);
    assert_counted(Some("hold_single_candidate"));
    drop(held);
    assert_counted(None);
}

/// A record that goes on.
pub(crate) fn outage(namespace: &str, began: &str) -> Outage {
    let record = serde_json::json!({
        "namespace": namespace, "began": began, "foundHeldDown": true, "writes": [], "heldDown": [], "nodes": [], "overdueNodes": 0,
    });
    serde_json::from_value(record).unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_shoot_keeps_its_last_outages_and_all_together_no_more_than_the_whole() {
    let statuses = ShootStatuses::new(Clock::start(), false);
    let handle = statuses.register("loud".into(), Moment::START);
    handle.keep(outage("quiet", "2026-01-01T00:00:00Z"));
    for minute in 10..10 + PER_SHOOT + 3 {
        handle.keep(outage("loud", &format!("2026-01-02T00:{minute}:00Z")));
    }
    let outages = statuses.outages();
    assert_eq!(
        outages.len(),
        PER_SHOOT + 1,
        "what the quiet shoot has stays"
    );
    assert_eq!(
        outages[PER_SHOOT - 1].began.to_rfc3339(),
        "2026-01-02T00:13:00+00:00",
        "the oldest are left out"
    );
    for number in 0..IN_ALL {
        handle.keep(outage(&format!("shoot-{number}"), "2026-01-03T00:00:00Z"));
    }
    let outages = statuses.outages();
    assert!(outages.len() == IN_ALL && outages.iter().all(|outage| outage.namespace != "loud"));
}

#[test]
fn what_a_later_version_says_of_an_outage_can_be_read() {
    let ended = "2026-01-02T00:01:30Z";
    let mut later = serde_json::to_value(outage("shoot--a--b", "2026-01-02T00:00:00Z")).unwrap();
    later.as_object_mut().unwrap().extend([
        ("end".into(), "eclipsed".into()),
        ("ended".into(), ended.into()),
        ("colour".into(), 1.into()),
    ]);
    let outage: Outage = serde_json::from_value(later).unwrap();
    assert_eq!(
        (outage.end, outage.seconds()),
        (Some(OutageEnd::Other), Some(90.0))
    );
    assert_eq!(
        serde_json::from_value::<Outage>(serde_json::to_value(&outage).unwrap()).unwrap(),
        outage
    );
}
