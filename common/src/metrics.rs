//! `/metrics`: what is counted, for Prometheus.
//!
//! Metrics are registered once, at start, and encoded at each scrape, always as OpenMetrics.
//! Scrapers choose their parser by the content type of the answer, and to a reader of Prometheus'
//! older text format all that is new in it are comments.

mod computed;
mod requests;
mod unreadable;

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use self::computed::register_metric;
pub use self::computed::{register_computed, register_seed_known};
pub use self::requests::RequestCounter;
pub use self::unreadable::UnreadableObjects;
use crate::logging::dropped_lines;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A registry with what every process shows of itself: `dwd_tasks`, `dwd_log_lines_dropped_total`
/// and `dwd_build_info`.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    // A number of tasks that only grows is a leak.
    register_computed(
        &mut registry,
        "dwd_tasks",
        "Tasks of the runtime that have not ended.",
        || Some(Handle::try_current().ok()?.metrics().num_alive_tasks() as u64),
    );
    register_metric(
        &mut registry,
        "dwd_log_lines_dropped",
        "Lines of the log that were not written, because too many waited for whoever reads it.",
        || Some(ConstCounter::new(dropped_lines())),
    );
    let build = Family::<Vec<(&str, String)>, Gauge>::default();
    build
        .get_or_create(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())])
        .set(1);
    registry.register(
        "dwd_build_info",
        "The version of this program, always 1",
        build,
    );
    registry
}

pub(crate) fn router(registry: Registry) -> Router {
    let registry = Arc::new(registry);
    Router::new().route("/metrics", get(async move || answer(&registry)))
}

fn answer(registry: &Registry) -> impl IntoResponse + use<> {
    let mut body = String::new();
    // Writing to a String does not fail.
    let _ = encode(&mut body, registry);
    ([(CONTENT_TYPE, OPEN_METRICS)], body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metrics of every process.
    fn shown() -> String {
        let mut text = String::new();
        encode(&mut text, &registry()).unwrap();
        text
    }

    #[tokio::test]
    async fn tasks_that_have_not_ended_are_counted() {
        let tasks: Vec<_> = (0..3)
            .map(|_| tokio::spawn(std::future::pending::<()>()))
            .collect();
        let text = shown();
        assert!(text.contains("\ndwd_tasks 3\n"), "{text}");
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[test]
    fn outside_of_a_runtime_no_tasks_are_shown() {
        assert!(!shown().contains("dwd_tasks"));
    }
}
