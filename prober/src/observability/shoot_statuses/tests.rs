use prober_core::replicas::DependentState;

use super::*;
use crate::config;
use crate::observability::outage::OutageEnd;
use crate::observability::snapshot::SeedFacts;
use crate::observability::status::ProberStatus;
use crate::tests::CONFIG;

#[tokio::test(start_paused = true)]
async fn a_shoot_that_has_stood_down_is_never_overdue() {
    let statuses = ShootStatuses::new(Clock::start());
    statuses.set_state("shoot--a--b", Some(ShootState::Probed));
    let handle = statuses.register("shoot--a--b".into(), Moment::START);
    let config = config::parse(CONFIG).expect("a config").config;
    let limit = TimeDelta::from_std(config.probe_timeout).expect("30 s");
    let shown = || {
        let facts = |_: &str| SeedFacts {
            dependents: vec![DependentState::Unknown],
            ..SeedFacts::default()
        };
        let status = ProberStatus::default().with_shoots(&statuses, &config, facts);
        status.shoots.into_iter().next().expect("a shoot")
    };
    let is_overdue = || (statuses.overdue(limit).is_some(), shown().is_overdue());
    // On the page a second later.
    for (after, expected) in [(30, (false, false)), (1, (true, false)), (1, (true, true))] {
        tokio::time::advance(std::time::Duration::from_secs(after)).await;
        assert_eq!(is_overdue(), expected);
    }
    let resource = config.dependents[0].resource.clone();
    handle.update(|status| {
        status.owner = Some(Standing::Unresolved);
        status.intended = vec![(resource, 0)];
    });
    assert_eq!(is_overdue(), (false, false));
    // What a dry run would do is shown with the dependent.
    let (_, why) = shown().dependents[0].why();
    assert!(
        why.ends_with("; without the dry run it would be scaled to 0"),
        "{why}"
    );
}

/// A record that goes on.
fn outage(namespace: &str, began: &str) -> Outage {
    let record = serde_json::json!({
        "namespace": namespace, "began": began, "foundUnderWay": true, "writes": [], "heldDown": [], "nodes": [], "overdueNodes": 0,
    });
    serde_json::from_value(record).unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_shoot_keeps_its_last_outages_and_all_together_no_more_than_the_whole() {
    let statuses = ShootStatuses::new(Clock::start());
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
