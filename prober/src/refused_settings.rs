//! Annotations on namespaces that cannot be read: what is set outside of them holds, and log, Event and metric say so.

use std::fmt;
use std::sync::Arc;

use common::events::Events;
use k8s_openapi::api::core::v1::ObjectReference;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::core::options::Refused;
use crate::seed::Seed;

pub fn report(events: &Events, namespace: &str, refused: &Refused) {
    let Refused { annotation, reason } = refused;
    tracing::error!(namespace, annotation, reason, "annotation of a namespace is refused, what is set outside of it holds");
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Namespace".to_owned()),
        name: Some(namespace.to_owned()),
        ..ObjectReference::default()
    };
    events.warning(&about, "SettingRefused", refused.to_string());
}

/// Counts those that are refused as they are now.
pub struct RefusedSettings(pub Arc<Seed>);

impl fmt::Debug for RefusedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RefusedSettings").field(&self.0.refused()).finish()
    }
}

impl Collector for RefusedSettings {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let help =
            "Annotations on namespaces whose values are refused as they are now, so that what is set outside of them holds.";
        let metric = encoder.encode_descriptor("dwd_settings_refused", help, None, MetricType::Gauge)?;
        ConstGauge::new(self.0.refused().len() as f64).encode(metric)
    }
}
