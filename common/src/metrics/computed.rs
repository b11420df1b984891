//! Gauges that are computed when they are asked for.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

struct Computed<V> {
    name: &'static str,
    help: &'static str,
    value: V,
}

/// Shows what `value` answers, at once and from memory; nothing while it answers none.
pub fn register_computed(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    value: impl Fn() -> Option<u64> + Send + Sync + 'static,
) {
    registry.register_collector(Box::new(Computed { name, help, value }));
}

/// `dwd_seed_known`: whether what an agent works by is known. An agent that is blind does nothing,
/// and nothing else shows it. A replica that waits for the lead watches, too, and shows what is so
/// for it.
pub fn register_seed_known(
    registry: &mut Registry,
    is_known: impl Fn() -> bool + Send + Sync + 'static,
) {
    let help = "Whether all is known of the seed that this process works by (1) or not (0).";
    register_computed(registry, "dwd_seed_known", help, move || {
        Some(is_known().into())
    });
}

impl<V> fmt::Debug for Computed<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<V: Fn() -> Option<u64> + Send + Sync + 'static> Collector for Computed<V> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Some(value) = (self.value)() else {
            return Ok(());
        };
        ConstGauge::new(value).encode(encoder.encode_descriptor(
            self.name,
            self.help,
            None,
            MetricType::Gauge,
        )?)
    }
}
