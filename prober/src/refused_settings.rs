//! Annotations on namespaces that cannot be read: the inherited value is used, and log, Event and
//! metric say so.

use std::sync::Arc;

use common::events::Events;
use common::metrics::{Registry, register_computed};
use prober_core::options::Refused;

use crate::seed::Seed;

pub(crate) fn report(events: &Events, namespace: &str, refused: &Refused) {
    let Refused { annotation, reason } = refused;
    tracing::error!(
        namespace,
        annotation,
        reason,
        "invalid annotation ignored, using the inherited value"
    );
    events.warning(namespace, "SettingRefused", &refused.to_string());
}

/// Counts those that are refused as they are now.
pub(crate) fn register(registry: &mut Registry, seed: Arc<Seed>) {
    let help = "Annotations on namespaces whose values are invalid as they are now, so that the inherited ones are used.";
    register_computed(registry, "dwd_settings_refused", help, move || {
        Some(seed.refused().len() as u64)
    });
}
