use std::cell::RefCell;
use std::num::NonZeroU32;
use std::sync::Arc;

use common::events::Events;
use common::leader_election::{Fence, Role};
use common::metrics::Registry;

use super::*;
use crate::clock::Clock;
use crate::config;
use crate::observability::metrics::Metrics;
use crate::observability::shoot_statuses::ShootStatuses;
use crate::seed::Seed;
use crate::seed::watch_scope::WatchScope;
use crate::shoot_client::resources::Resources;
use crate::suspend_detector::SuspendDetector;
use crate::write::Writer;

const CONFIG: &str = "\
kubeConfigSecretName: s
dependentResourceInfos:
- ref: {kind: Deployment, name: d, apiVersion: apps/v1}
  scaleUp: {}
  scaleDown: {}
";

fn manager_with(config: &str) -> Manager {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let client =
        kube::Client::try_from(kube::Config::new("https://127.0.0.1:1".parse().unwrap())).unwrap();
    let clock = Clock::start();
    let config = Arc::new(config::parse(config).unwrap().config);
    let suspend_detector = SuspendDetector::new(clock);
    let seed = Arc::new(Seed::new(client, WatchScope::Seed));
    let shared = Shared {
        clock,
        resources: Arc::new(Resources::of_system()),
        seed: Arc::clone(&seed),
        config: tokio::sync::watch::channel(config).1,
        writer: Arc::new(Writer::new(
            seed,
            1.0,
            NonZeroU32::MIN,
            Fence::always_open(),
            suspend_detector.clone(),
        )),
        suspend_detector,
        metrics: Metrics::register(&mut Registry::default()),
        statuses: ShootStatuses::new(clock, false),
        events: Events::none(),
        role: Role::Alone,
    };
    Manager::new(shared)
}

const ZERO: Duration = Duration::ZERO;

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_starts_again_and_harms_no_other() {
    // For how long it goes on each time before it panics, and how many seconds later it starts
    // again.
    let runs = [
        (ZERO, 1),
        (ZERO, 2),
        (ZERO, 4),
        (ZERO, 8),
        (ZERO, 16),
        (ZERO, 32),
        (ZERO, 60),
        (CALM / 2, 60),
        (CALM, 1),
        (ZERO, 2),
    ];
    let (mut registry, cancelled, began) = (
        Registry::default(),
        CancellationToken::new(),
        RefCell::new(Vec::new()),
    );
    let panics = Metrics::register(&mut registry).panics;
    let sick = || {
        began.borrow_mut().push(Instant::now());
        let run = runs.get(began.borrow().len() - 1);
        async move {
            let Some((calm, _)) = run else {
                return Vec::new();
            };
            sleep(*calm).await;
            panic!("on purpose")
        }
    };
    let well = || async {
        sleep(10 * CALM).await;
        Vec::new()
    };
    let start = Instant::now();
    let sick = restarted_on_panic(sick, &panics, &cancelled);
    tokio::join!(sick, restarted_on_panic(well, &panics, &cancelled));
    assert!(
        start.elapsed() >= 10 * CALM,
        "the other one goes on to its end"
    );
    for (times, (calm, wait)) in began.borrow().windows(2).zip(runs) {
        let waited = (times[1] - times[0] - calm).as_millis();
        assert_eq!(waited / 1000, wait, "after {calm:?}");
    }
    assert_eq!(began.borrow().len(), runs.len() + 1);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("dwd_panics_total 10"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_waits_after_panics_ends_at_once() {
    let (panics, cancelled, begin) = (Counter::default(), CancellationToken::new(), Instant::now());
    let sick = || async { panic!("on purpose") };
    tokio::join!(restarted_on_panic(sick, &panics, &cancelled), async {
        cancelled.cancel()
    });
    assert_eq!((panics.get(), begin.elapsed()), (1, ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_know_its_shoots_yet_says_that_they_are_ours_for_as_long_as_is_tolerated()
 {
    let manager = manager_with(&format!(
        "{CONFIG}ownerCheck: {{name: o, value: v, tolerance: 5m}}\n"
    ));
    let ownership = || {
        crate::owner_check::ownership(&manager.shared, "shoot--a--b")
            .0
            .as_u16()
    };
    assert_eq!(ownership(), 200);
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(ownership(), 200);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(ownership(), 503);
    let without = manager_with(CONFIG);
    assert_eq!(
        crate::owner_check::ownership(&without.shared, "shoot--a--b")
            .0
            .as_u16(),
        404
    );
}
