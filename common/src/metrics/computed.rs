//! Metrics that are computed when they are scraped.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

struct Computed<C> {
    name: &'static str,
    help: &'static str,
    compute: C,
}

/// A metric of what `compute` returns, at once and from memory.
pub(crate) fn register_computed<M: EncodeMetric + 'static>(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    compute: impl Fn() -> M + Send + Sync + 'static,
) {
    registry.register_collector(Box::new(Computed {
        name,
        help,
        compute,
    }));
}

/// A gauge that is 1 while something holds, else 0.
pub(crate) fn register_condition(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    holds: impl Fn() -> bool + Send + Sync + 'static,
) {
    register_computed(registry, name, help, move || {
        ConstGauge::new(u64::from(holds()))
    });
}

/// `dwd_seed_known`: whether what an agent works by is known. An agent that is blind does nothing,
/// and nothing else shows it. A replica that waits for leadership watches, too, and shows it as
/// well.
pub fn register_seed_known(
    registry: &mut Registry,
    is_known: impl Fn() -> bool + Send + Sync + 'static,
) {
    let help = "Whether all is known of the seed that this process works by (1) or not (0).";
    register_condition(registry, "dwd_seed_known", help, is_known);
}

impl<C> fmt::Debug for Computed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<M: EncodeMetric, C: Fn() -> M + Send + Sync + 'static> Collector for Computed<C> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let metric = (self.compute)();
        let kind = metric.metric_type();
        metric.encode(encoder.encode_descriptor(self.name, self.help, None, kind)?)
    }
}
