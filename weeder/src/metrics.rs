//! The weeder's metrics. Every label value is from a fixed set.

use common::api_failure::ApiFailure;
use common::metrics::Registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use strum::VariantNames;
use weeder_core::window::{CloseReason, OpenReason};

use crate::delete::RESULTS;

pub(crate) type LabelledCounters = Family<[(&'static str, &'static str); 1], Counter>;

/// The weeder's metrics. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct WeederMetrics {
    pub(crate) opened: LabelledCounters,
    pub(crate) closed: LabelledCounters,
    pub(crate) deletions: LabelledCounters,
    pub(crate) restarts: LabelledCounters,
    pub(crate) unreadable: LabelledCounters,
    pub windows_open: Gauge,
    pub namespaces: Gauge,
}

const WATCHED: &[&str] = &["endpointslices", "pods"];

impl WeederMetrics {
    pub fn register(&self, registry: &mut Registry) {
        let help = "Services whose crash-looping dependants are being deleted";
        registry.register("dwd_weeder_windows_open", help, self.windows_open.clone());
        let help = "Namespaces in which a configured Service or a crash-looping dependant is known";
        registry.register("dwd_weeder_namespaces", help, self.namespaces.clone());
        let results = [&RESULTS, ApiFailure::VARIANTS].concat();
        let labelled = [
            (
                "dwd_weeder_windows_opened",
                "Times in which crash-looping dependants are deleted: begun, by reason",
                &self.opened,
                "reason",
                OpenReason::VARIANTS,
            ),
            (
                "dwd_weeder_windows_closed",
                "Times in which crash-looping dependants are deleted: ended, by reason",
                &self.closed,
                "reason",
                CloseReason::VARIANTS,
            ),
            (
                "dwd_weeder_deletions",
                "DELETEs of crash-looping pods, by result",
                &self.deletions,
                "result",
                &results,
            ),
            (
                "dwd_weeder_watch_restarts",
                "Watches that broke and began again with a list",
                &self.restarts,
                "resource",
                WATCHED,
            ),
            (
                "dwd_weeder_unreadable_objects",
                "Objects that could not be understood; what was known of them stays",
                &self.unreadable,
                "resource",
                WATCHED,
            ),
        ];
        for (name, help, counters, label, values) in labelled {
            registry.register(name, help, counters.clone());
            // All series exist from the start, so that the first event of each kind shows as an
            // increase.
            for value in values {
                drop(counters.get_or_create(&[(label, *value)]));
            }
        }
    }
}

/// Counts an event of a kind.
pub(crate) fn count(counters: &LabelledCounters, label: &'static str, value: &'static str) {
    counters.get_or_create(&[(label, value)]).inc();
}
