use common::events::Recorder;
use common::metrics::Registry;
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use prober_core::replicas::{Marks, Observed, Write};
use prober_core::shoot::{Shoot, Start};
use serde_json::Value;
use tower::{BoxError, service_fn};

use super::*;
use crate::gardener::SeedRef;
use crate::observability::metrics::Metrics;
use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::tests::{CONFIG, at, shared};

const NAMESPACE: &str = "shoot--a--b";
/// The only dependent.
const D: DependentId = DependentId(0);

fn context(shared: Shared) -> ShootContext {
    let cluster = ClusterState {
        uid: "uid".to_owned(),
        seed: SeedRef::default(),
        shoot: None,
        lifecycle: None,
        settings: Default::default(),
    };
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
        probe_began: at(0.0),
    }
}

fn marks(held_down: bool) -> Marks {
    Marks {
        held_down,
        ..Marks::default()
    }
}

/// It was written so, with this many replicas before.
fn written(replicas: i32, before: Marks, write: Write) -> Report {
    let base = Arc::new(Observed {
        replicas,
        marks: before,
        ..Observed::default()
    });
    Report::Written {
        dependent: D,
        direction: Direction::Up,
        change: PlannedWrite { base, write },
        took: None,
        turn: chrono::TimeDelta::zero(),
        without_lead: false,
    }
}

fn restored(used_default_replicas: bool) -> Report {
    let write = Write {
        replicas: Some(2),
        used_default_replicas,
        ..Write::default()
    };
    written(0, marks(true), write)
}

fn only_marked(held_down: bool) -> Report {
    let write = Write {
        marks: marks(held_down),
        ..Write::default()
    };
    written(2, marks(!held_down), write)
}

#[tokio::test]
async fn each_report_has_its_counter() {
    let mut registry = Registry::default();
    let context = context(Shared {
        metrics: Metrics::register(&mut registry),
        ..shared(CONFIG)
    });
    let mut reporter = AgentReporter::new(&context.shared.statuses, NAMESPACE, at(0.0));
    let mut counted = |series: &str, report: Option<Report>| {
        let count = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            let value = text.lines().find_map(|line| line.strip_prefix(series));
            value.expect(series).trim().to_owned()
        };
        assert_eq!(count(), "0", "{series}");
        match report {
            Some(report) => reporter.report(&context, report),
            None => reporter.probe_failed(
                &context,
                &ProbeError {
                    stage: ProbeStep::Leases,
                    cause: Cause::Throttled { retry_after: None },
                },
            ),
        }
        assert_eq!(count(), "1", "{series}");
    };
    for direction in [Direction::Up, Direction::Down] {
        let label = format!("{{direction=\"{}\"}}", direction.into_str());
        let series = |name: &str| format!("{name}{label}");
        counted(
            &series("dwd_cancelled_scalings_total"),
            Some(Report::Abandoned(direction)),
        );
        counted(
            &series("dwd_owner_prevented_total"),
            Some(Report::NotOwner(direction)),
        );
    }
    counted("dwd_not_ready_in_time_total", Some(Report::NotReady(D)));
    counted(
        "dwd_restores_with_default_replicas_total",
        Some(restored(true)),
    );
    counted("dwd_throttles_total", None);
}

#[tokio::test(start_paused = true)]
async fn each_report_has_its_event() {
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
    let (events, recorder) = Recorder::new(
        kube::Client::new(api, "garden"),
        namespace_reference("garden"),
    );
    let context = context(Shared {
        events,
        ..shared(CONFIG)
    });
    let mut reporter = AgentReporter::new(&context.shared.statuses, NAMESPACE, at(0.0));
    let all = [
        (restored(false), "ScaledUp", "Normal"),
        (only_marked(false), "ProtectionRemoved", "Normal"),
        (only_marked(true), "ProtectionMarked", "Normal"),
        (Report::KeepsChanging(D), "KeepsChanging", "Warning"),
    ];
    let expected: Vec<_> = all
        .iter()
        .map(|(_, reason, kind)| (*reason, *kind))
        .collect();
    recorder
        .beside(async {
            for (report, ..) in all.clone() {
                reporter.report(&context, report);
            }
        })
        .await;
    let sent = sent.lock();
    let said: Vec<_> = sent
        .iter()
        .filter_map(|object| Some((object["reason"].as_str()?, object["type"].as_str()?)))
        .collect();
    assert_eq!(said, expected);
}
