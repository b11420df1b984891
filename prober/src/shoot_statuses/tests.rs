use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::gauges::UNKNOWN;
use super::*;
use crate::core::verdict::{HoldReason, Scope};

fn shown(statuses: &ShootStatuses) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(statuses.clone()));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

fn kcm() -> ResourceRef {
    ResourceRef { api_version: "apps/v1".into(), kind: "Deployment".into(), name: "kube-controller-manager".into() }
}

#[tokio::test(start_paused = true)]
async fn shoots_that_are_held_down_are_counted_by_what_their_last_probes_concluded() {
    let clock = Clock::start();
    let statuses = ShootStatuses::new(clock, false);
    let expect = |verdict: &str, count: u32| {
        let text = shown(&statuses);
        let line = format!("dwd_held_down_shoots{{verdict=\"{verdict}\"}} {count}.0");
        assert!(text.lines().any(|shown| shown == line), "{line} is missing in {text}");
    };
    for verdict in Verdict::ALL.map(Verdict::as_str).into_iter().chain([UNKNOWN]) {
        expect(verdict, 0);
    }
    let free = statuses.register("shoot--a--free".into(), clock.now());
    let found = |verdict| Some(Arc::new(Finding { verdict, ..Finding::default() }));
    free.update(|status| status.finding = found(Verdict::ScaleUp(Scope::All)));
    let held = statuses.register("shoot--a--held".into(), clock.now());
    held.update(|status| status.set_held_down([&kcm()], clock.now()));
    expect("scale_up", 0);
    expect(UNKNOWN, 1);
    held.update(|status| status.finding = found(Verdict::Hold(HoldReason::SingleCandidate)));
    expect("hold_single_candidate", 1);
    expect(UNKNOWN, 0);
    drop(held);
    expect("hold_single_candidate", 0);
}
