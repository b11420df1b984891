use std::io::{BufRead, BufReader, pipe};
use std::sync::Arc;

use common::events::Events;
use common::logging::{LevelFilter, layer};
use common::metrics::Registry;
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use prober_core::replicas::{Marks, Observed, Write};
use prober_core::shoot::{Action, Input, Shoot, Start};
use serde_json::Value;
use tower::{BoxError, service_fn};
use tracing_subscriber::layer::SubscriberExt;

use super::*;
use crate::gardener::SeedRef;
use crate::observability::metrics::Metrics;
use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::tests::{CONFIG, at, shared};

const NAMESPACE: &str = "shoot--a--b";
/// The only dependent.
const D: DependentId = DependentId(0);

fn cluster() -> ClusterState {
    ClusterState {
        uid: "uid".to_owned(),
        seed: SeedRef::default(),
        shoot: None,
        lifecycle: None,
        settings: Default::default(),
    }
}

fn context(shared: Shared) -> ShootContext {
    let cluster = cluster();
    let config = Arc::clone(&shared.config.borrow());
    let start = Start {
        eligible: at(0.0),
        in_operation: true,
    };
    let shoot = Shoot::new(
        start,
        &shared.environment(NAMESPACE, &config, &cluster, None),
        at(0.0),
    );
    ShootContext {
        namespace: NAMESPACE.to_owned(),
        shared,
        config,
        shoot,
        decree: None,
        probe_began: at(0.0),
    }
}

/// A write was answered that restored or marked it, if it was not before.
fn written(replicas: Option<i32>, held_down: bool, used_default_replicas: bool) -> Report {
    let marks = |held_down| Marks {
        held_down,
        ..Marks::default()
    };
    let base = Arc::new(Observed {
        replicas: if replicas.is_some() { 0 } else { 2 },
        marks: marks(!held_down),
        ..Observed::default()
    });
    let write = Write {
        marks: marks(held_down),
        replicas,
        used_default_replicas,
    };
    Report::Written {
        dependent: D,
        direction: Direction::Up,
        change: PlannedWrite { base, write },
        took: None,
        since_due: chrono::TimeDelta::zero(),
        without_lead: false,
    }
}

#[tokio::test(start_paused = true)]
async fn each_report_has_its_counter_and_its_event() {
    let sent = Arc::new(Mutex::new(Vec::<Value>::new()));
    let takes = Arc::clone(&sent);
    // An API server that answers with what it is sent.
    let api = service_fn(move |request: http::Request<Body>| {
        let takes = Arc::clone(&takes);
        async move {
            let body = request.into_body().collect().await?.to_bytes();
            takes.lock().push(serde_json::from_slice(&body)?);
            Ok::<_, BoxError>(http::Response::new(Body::from(body)))
        }
    });
    let client = kube::Client::new(api, "garden");
    let (events, _recorder) = Events::start(client, "garden", "lease");
    let mut registry = Registry::default();
    let context = context(Shared {
        events,
        metrics: Metrics::register(&mut registry),
        ..shared(CONFIG)
    });
    let mut reporter = Reporter::new(
        &context.shared.statuses,
        NAMESPACE,
        &context.config,
        at(0.0),
        None,
    );
    let (up, down) = (Direction::Up, Direction::Down);
    let not_owned = |direction| Report::Waits(D, direction, Waits::new(Reason::NotOwned));
    // How often each is reported, and what counts that.
    let rows = [
        (
            6,
            written(Some(1), false, true),
            "dwd_restores_with_default_replicas_total 6",
        ),
        (1, written(None, false, false), ""),
        (1, written(None, true, false), ""),
        (1, Report::KeepsChanging(D), ""),
        (
            3,
            not_owned(up),
            "dwd_owner_prevented_total{direction=\"up\"} 3",
        ),
        (
            4,
            not_owned(down),
            "dwd_owner_prevented_total{direction=\"down\"} 4",
        ),
        (5, Report::NotReady(D), "dwd_not_ready_in_time_total 5"),
    ];
    for (times, report, _) in &rows {
        for _ in 0..*times {
            reporter.report(&context, report.clone());
        }
    }
    let stage = ProbeStep::Leases;
    let cause = Cause::Throttled { retry_after: None };
    reporter.probe_failed(&context, &ProbeError { stage, cause });
    // All are written before the clock goes on.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("metrics");
    for series in rows
        .iter()
        .map(|(.., series)| series)
        .chain([&"dwd_throttles_total 1"])
    {
        assert!(text.contains(series), "{series}: {text}");
    }
    let sent = sent.lock();
    let said = |event: &Value| {
        Some((
            event["reason"].as_str()?.to_owned(),
            event["type"].as_str()?.to_owned(),
        ))
    };
    let mut said: Vec<_> = sent.iter().filter_map(said).collect();
    said.dedup();
    let expected = [
        ("ScaledUp", "Normal"),
        ("ProtectionRemoved", "Normal"),
        ("ProtectionMarked", "Normal"),
        ("KeepsChanging", "Warning"),
    ];
    assert_eq!(
        said,
        expected.map(|(reason, kind)| (reason.to_owned(), kind.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn decree_is_neither_probe_nor_outage() {
    for (decree, counted) in [(None, true), (Some(Verdict::ScaleDown), false)] {
        let (mut registry, cluster) = (Registry::default(), cluster());
        let shared = Shared {
            metrics: Metrics::register(&mut registry),
            ..shared(CONFIG)
        };
        let statuses = shared.statuses.clone();
        registry.register_collector(Box::new(statuses.clone()));
        statuses.set_cluster(NAMESPACE, Some(&cluster));
        let mut context = ShootContext {
            decree,
            ..context(shared.clone())
        };
        let config = Arc::clone(&context.config);
        let mut reporter = Reporter::new(&statuses, NAMESPACE, &config, at(0.0), decree);
        let env = shared.environment(NAMESPACE, &config, &cluster, None);
        let input = Input::Decreed(Verdict::ScaleDown);
        for action in context.shoot.input(input, &env, at(0.0)) {
            if let Action::Report(report) = action {
                reporter.report(&context, report);
            }
        }
        reporter.updated(&context);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("metrics");
        for series in [
            "dwd_probes_total{",
            "dwd_probe_duration_seconds_count 1",
            "dwd_verdicts{",
        ] {
            assert_eq!(text.contains(series), counted, "{series}: {text}");
        }
        assert_eq!(reporter.outage.is_some(), counted);
    }
}

#[tokio::test(start_paused = true)]
async fn end_of_rehearsals_mends_nothing() {
    let (logged, writer) = pipe().unwrap();
    let log = tracing_subscriber::registry().with(layer(LevelFilter::INFO, Arc::new(writer)));
    let log = tracing::subscriber::set_default(log);
    let context = context(shared(CONFIG));
    let statuses = &context.shared.statuses;
    statuses.set_cluster(NAMESPACE, Some(&cluster()));
    let reporter = Reporter::new(statuses, NAMESPACE, &context.config, at(0.0), None);
    let refused = || Some(BTreeMap::from([(D, "no".to_owned())]));
    for rehearsed in [refused(), None, refused(), Some(BTreeMap::new())] {
        reporter.rehearsed(&context, rehearsed);
    }
    drop(log);
    let lines = BufReader::new(logged).lines().map_while(Result::ok);
    let said = lines.map(|line| {
        let line: Value = serde_json::from_str(&line).unwrap();
        line["message"].as_str().unwrap().to_owned()
    });
    let expected = [
        "protection would be refused in an outage",
        "protection would be refused in an outage",
        "protection is not known to be refused any more",
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}
