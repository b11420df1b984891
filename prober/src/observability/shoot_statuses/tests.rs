use super::*;
use crate::observability::outage::OutageEnd;
use crate::owner_records::record::Unresolved;

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

/// A record that goes on.
pub(crate) fn outage(namespace: &str, began: &str) -> Outage {
    let record = serde_json::json!({
        "namespace": namespace, "began": began, "foundUnderWay": true, "writes": [], "heldDown": [], "nodes": [], "overdueNodes": 0,
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
