use std::num::NonZeroU32;
use std::sync::Arc;

use common::events::Events;
use common::leader_election::{Fence, Role};
use common::metrics::Registry;

use super::*;
use crate::clock::Clock;
use crate::config::Config;
use crate::core::moment::Moment;
use crate::metrics::Metrics;
use crate::seed::Seed;
use crate::seed::reach::Reach;
use crate::shoot_statuses::ShootStatuses;
use crate::suspend_detector::SuspendDetector;
use crate::write::Writer;

const CONFIG: &str = "\
kubeConfigSecretName: s
dependentResourceInfos:
- ref: {kind: Deployment, name: d, apiVersion: apps/v1}
  scaleUp: {}
  scaleDown: {}
";

/// A manager whose probes wait for a lead that never comes.
fn manager() -> (Manager, Registry) {
    manager_with(CONFIG)
}

fn manager_with(config: &str) -> (Manager, Registry) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = kube::Client::try_from(kube::Config::new("https://127.0.0.1:1".parse().unwrap())).unwrap();
    let (clock, mut registry) = (Clock::start(), Registry::default());
    let config = Arc::new(Config::parse(config).unwrap().config);
    let suspend_detector = SuspendDetector::new(clock);
    let shared = Shared {
        clock,
        seed: Arc::new(Seed::new(client.clone(), &config, Reach::Seed)),
        config: watch::channel(config).1,
        writer: Arc::new(Writer::new(client, 1.0, NonZeroU32::MIN, Fence::always_open(), suspend_detector.clone())),
        suspend_detector,
        metrics: Metrics::register(&mut registry),
        statuses: ShootStatuses::new(clock, false),
        events: Events::none(),
        dry_run: false,
        lead: Fence::always_open(),
        role: Role::Alone,
    };
    (Manager::new(shared), registry)
}

fn began(eligible: Moment, panics: u32) -> Began {
    Began { start: Start { eligible, in_operation: false }, panics }
}

fn task(manager: &Manager, namespace: &str) -> Id {
    manager.probes[namespace].task
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_starts_again_and_harms_no_other() {
    let (mut manager, registry) = manager();
    let now = manager.shared.clock.now();
    for namespace in ["sick", "well"] {
        manager.start(namespace, "uid".into(), ShootSettings::default(), began(now, 0));
    }
    let well = task(&manager, "well");
    for (calm, panics_told) in [(Duration::ZERO, 1), (Duration::ZERO, 2), (CALM / 2, 3), (CALM, 1)] {
        tokio::time::advance(calm).await;
        // Nothing in a probe panics by design: a task that does takes its place.
        let panics = manager.tasks.spawn(async { panic!("on purpose") }).id();
        let old = task(&manager, "sick");
        manager.probes.get_mut("sick").unwrap().task = panics;
        let ended = manager.tasks.join_next_with_id().await.unwrap();
        assert!(ended.as_ref().is_err_and(|error| error.is_panic() && error.id() == panics));
        manager.ended(ended);
        assert_eq!(manager.probes["sick"].began.panics, panics_told);
        assert!(![panics, old].contains(&task(&manager, "sick")), "another task");
        assert_eq!(task(&manager, "well"), well);
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("dwd_panics_total 4"), "{text}");
    manager.stop("sick", "test").await;
    manager.stop("well", "test").await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_waits_after_panics_ends_at_once() {
    let (mut manager, _) = manager();
    let now = manager.shared.clock.now();
    manager.start("sick", "uid".into(), ShootSettings::default(), began(now, u32::MAX));
    // It has begun to wait.
    tokio::task::yield_now().await;
    let begin = tokio::time::Instant::now();
    manager.stop("sick", "test").await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[test]
fn a_probe_that_panics_again_and_again_does_so_at_most_once_a_minute() {
    let waits: Vec<u64> = [0, 1, 2, 3, 7, 8, u32::MAX].map(|panics| after_panics(panics).as_secs()).into();
    assert_eq!(waits, [0, 1, 2, 4, 60, 60, 60]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_know_its_shoots_yet_says_that_they_are_ours_for_as_long_as_is_tolerated() {
    let (manager, _) = manager_with(&format!("{CONFIG}ownerCheck: {{name: o, value: v, tolerance: 5m}}\n"));
    let ownership = || crate::owner_check::ownership(&manager.shared, "shoot--a--b").0.as_u16();
    assert_eq!(ownership(), 200);
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(ownership(), 200);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(ownership(), 503);
    let (without, _) = manager_with(CONFIG);
    assert_eq!(crate::owner_check::ownership(&without.shared, "shoot--a--b").0.as_u16(), 404);
}
