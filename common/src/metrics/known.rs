//! `dwd_seed_known`: whether what an agent works by is known. An agent that is blind does nothing, and nothing else shows it.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// Shows 1 while all is known that this process works by, else 0. A replica that waits for the lead watches, too, and shows
/// what is so for it.
pub struct SeedKnown(Box<dyn Fn() -> bool + Send + Sync>);

impl SeedKnown {
    /// `is_known` answers at once, from memory.
    pub fn new(is_known: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Box::new(is_known))
    }
}

impl std::fmt::Debug for SeedKnown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SeedKnown").field(&(self.0)()).finish()
    }
}

impl Collector for SeedKnown {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let help = "Whether all is known of the seed that this process works by (1) or not (0).";
        let metric = encoder.encode_descriptor("dwd_seed_known", help, None, MetricType::Gauge)?;
        ConstGauge::new(u64::from((self.0)())).encode(metric)
    }
}
