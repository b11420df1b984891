use std::sync::Arc;

use common::events::Events;
use common::metrics::Registry;
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use prober_core::replicas::{DependentState, Marks, Observed, Write};
use prober_core::shoot::{Action, Input, Shoot, Start};
use serde_json::Value;
use tower::{BoxError, service_fn};

use super::*;
use crate::gardener::SeedRef;
use crate::observability::metrics::Metrics;
use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::tests::{CONFIG, NAMESPACE, assignment, at, shared};

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

fn context(shared: Shared, decree: Option<Verdict>) -> ShootContext {
    let assigned = assignment(Arc::new(cluster()), decree);
    let (config, settings) = (shared.config.borrow().clone(), &assigned.cluster.settings);
    let env = shared.environment(&assigned, config, settings, None);
    let start = Start {
        eligible: at(0.0),
        in_operation: true,
    };
    ShootContext {
        assigned,
        shared,
        shoot: Shoot::new(start, &env, at(0.0)),
        env,
        probe_began: at(0.0),
    }
}

fn reporter(context: &ShootContext) -> Reporter {
    let statuses = &context.shared.statuses;
    statuses.set_cluster(NAMESPACE, Some(&cluster()));
    Reporter::new(
        statuses,
        NAMESPACE,
        &context.env.config,
        at(0.0),
        context.assigned.decree,
    )
}

/// A write was answered that restored or marked it, if it was not before.
fn written(replicas: Option<i32>, held_down: bool) -> Report {
    let marks = |held_down| Marks {
        held_down,
        ..Marks::default()
    };
    let base = Arc::new(Observed {
        replicas: 2,
        marks: marks(!held_down),
        ..Observed::default()
    });
    let write = Write {
        marks: marks(held_down),
        replicas,
        used_default_replicas: replicas == Some(1),
    };
    Report::Written {
        dependent: D,
        direction: Direction::Up,
        change: PlannedWrite { base, write },
        since_due: TimeDelta::zero(),
        without_lead: false,
    }
}

fn encoded(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).expect("metrics");
    text
}

#[tokio::test(start_paused = true)]
async fn each_report_has_its_counter_and_its_event() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let takes = Arc::clone(&sent);
    // An API server that answers with what it is sent.
    let api = service_fn(move |request: http::Request<Body>| {
        let takes = Arc::clone(&takes);
        async move {
            let body = request.into_body().collect().await?.to_bytes();
            let event: Value = serde_json::from_slice(&body)?;
            takes
                .lock()
                .push(format!("{} {}", event["type"], event["reason"]));
            Ok::<_, BoxError>(http::Response::new(Body::from(body)))
        }
    });
    let client = kube::Client::new(api, "garden");
    let (events, _recorder) = Events::start(client, "garden", "lease");
    let mut registry = Registry::default();
    let shared = Shared {
        events,
        metrics: Metrics::register(&mut registry),
        ..shared(CONFIG)
    };
    let context = context(shared, None);
    let mut reporter = reporter(&context);
    for (report, event) in [
        (written(Some(1), false), "Normal ScaledUp"),
        (written(None, false), "Normal ProtectionRemoved"),
        (written(None, true), "Normal ProtectionMarked"),
        (written(Some(0), true), "Warning ScaledDown"),
        (Report::KeepsChanging(D), "Warning KeepsChanging"),
    ] {
        reporter.report(&context, report);
        // It is written before the clock goes on.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let sent: String = sent.lock().drain(..).collect();
        assert_eq!(sent.replace('"', ""), event);
    }
    let metrics = encoded(&registry);
    assert!(
        metrics.contains("dwd_restores_with_default_replicas_total 1"),
        "{metrics}"
    );
}

/// A shoot's metrics after an input, and whether its outage is recorded.
fn after(input: Input, decree: Option<Verdict>, dependent: DependentState) -> (String, bool) {
    let mut registry = Registry::default();
    let shared = Shared {
        metrics: Metrics::register(&mut registry),
        ..shared(CONFIG)
    };
    let mut context = context(shared, decree);
    registry.register_collector(Box::new(context.shared.statuses.clone()));
    let mut reporter = reporter(&context);
    context.env.dependents = vec![dependent];
    for action in context.shoot.input(input, &context.env, at(0.0)) {
        if let Action::Report(report) = action {
            reporter.report(&context, report);
        }
    }
    reporter.updated(&context);
    (encoded(&registry), reporter.outage.is_some())
}

#[tokio::test(start_paused = true)]
async fn decree_is_neither_probe_nor_outage() {
    for (decree, counted) in [(None, true), (Some(Verdict::ScaleDown), false)] {
        let input = Input::Decreed(Verdict::ScaleDown);
        let (metrics, recorded) = after(input, decree, DependentState::Unknown);
        assert_eq!(metrics.contains("dwd_probes_total{"), counted);
        assert_eq!(metrics.contains("dwd_verdicts{"), counted);
        assert_eq!(recorded, counted);
    }
}

#[tokio::test(start_paused = true)]
async fn marker_alone_is_not_held_down() {
    for (replicas, held) in [(0, true), (2, false)] {
        let marks = Marks {
            held_down: true,
            ..Marks::default()
        };
        let observed = Observed {
            replicas,
            marks,
            ..Observed::default()
        };
        let dependent = DependentState::Present(Arc::new(observed));
        let (metrics, recorded) = after(Input::Woken, None, dependent);
        assert_eq!(metrics.contains("dwd_held_down{"), held);
        assert_eq!(recorded, held);
    }
}
