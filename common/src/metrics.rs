//! `/metrics`: what is counted, for Prometheus.
//!
//! Metrics are registered once, at start, and encoded at each scrape, always as OpenMetrics.
//! Scrapers choose their parser by the content type of the answer, and to a reader of Prometheus'
//! older text format all that is new in it are comments.

mod computed;
mod requests;

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
pub use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use self::computed::register_computed;
pub(crate) use self::computed::register_condition;
pub use self::computed::register_seed_known;
pub use self::requests::RequestCounter;
use crate::logging::dropped_lines;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counters by the value of one label. Clones count together.
pub type LabelledCounters = Family<[(&'static str, &'static str); 1], Counter>;

/// A registry with what every process shows of itself: `dwd_tasks`, `dwd_log_lines_dropped_total`
/// and `dwd_build_info`. To be called within the runtime.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::default();
    let runtime = Handle::current().metrics();
    // A number of tasks that only grows is a leak.
    let help = "Tasks of the runtime that have not ended.";
    register_computed(&mut registry, "dwd_tasks", help, move || {
        ConstGauge::new(runtime.num_alive_tasks() as u64)
    });
    register_computed(
        &mut registry,
        "dwd_log_lines_dropped",
        "Lines of the log that were not written, because too many waited for whoever reads it.",
        || ConstCounter::new(dropped_lines()),
    );
    let version = ("version".into(), env!("CARGO_PKG_VERSION").into());
    registry.sub_registry_with_label(version).register(
        "dwd_build_info",
        "The version of this program, always 1",
        ConstGauge::new(1_u64),
    );
    registry
}

pub(crate) fn router(registry: Registry) -> Router {
    let registry = Arc::new(registry);
    let answer = async move || {
        let mut body = String::new();
        // Writing to a String does not fail.
        let _ = encode(&mut body, &registry);
        ([(CONTENT_TYPE, OPEN_METRICS)], body)
    };
    Router::new().route("/metrics", get(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn process_shows_its_tasks_and_version() {
        let registry = registry();
        tokio::spawn(std::future::pending::<()>());
        let mut shown = String::new();
        encode(&mut shown, &registry).unwrap();
        for line in ["dwd_tasks 1", "dwd_log_lines_dropped_total 0"] {
            assert!(shown.lines().any(|shown| shown == line), "{shown}");
        }
        assert!(shown.contains("\ndwd_build_info{version=\""), "{shown}");
    }
}
