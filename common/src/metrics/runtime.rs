//! The asynchronous runtime: a number of tasks that only grows is a leak.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::runtime::Handle;

#[derive(Debug)]
pub struct RuntimeCollector;

impl Collector for RuntimeCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Ok(runtime) = Handle::try_current() else { return Ok(()) };
        let tasks = ConstGauge::new(runtime.metrics().num_alive_tasks() as u64);
        tasks.encode(encoder.encode_descriptor(
            "dwd_tasks",
            "Tasks of the runtime that have not ended.",
            None,
            MetricType::Gauge,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[tokio::test]
    async fn tasks_that_have_not_ended_are_counted() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(RuntimeCollector));
        let tasks: Vec<_> = (0..3).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
        let mut text = String::new();
        encode(&mut text, &registry).expect("a text");
        assert!(text.contains("\ndwd_tasks 3\n"), "{text}");
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[test]
    fn outside_of_a_runtime_nothing_is_shown() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(RuntimeCollector));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a text");
        assert!(!text.contains("dwd_tasks"), "{text}");
    }
}
