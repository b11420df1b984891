//! `leader_election_master_status`: whether this replica leads, under client-go's name and label.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::leader_election::Fence;

#[derive(Debug)]
pub struct LeaderStatus {
    pub name: &'static str,
    /// Open while this process leads.
    pub fence: Fence,
}

impl Collector for LeaderStatus {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let help = "Whether this process leads (1) or waits (0).";
        let mut metric = encoder.encode_descriptor("leader_election_master_status", help, None, MetricType::Gauge)?;
        ConstGauge::new(u64::from(self.fence.is_open())).encode(metric.encode_family(&[("name", self.name)])?)
    }
}
