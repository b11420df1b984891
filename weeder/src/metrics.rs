//! What is counted of the weeder's work. Every label is one of a few fixed words.

use common::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::core::news::{Cause, End, Event};
use crate::delete::Answer;

/// The weeder's metrics. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    opened: Family<Why, Counter>,
    closed: Family<Why, Counter>,
    open: Gauge,
    deletions: Family<Result, Counter>,
    namespaces: Gauge,
    restarts: Family<What, Counter>,
    unreadable: Family<What, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct What {
    resource: &'static str,
}

impl Metrics {
    pub fn register(&self, registry: &mut Registry) {
        let mut add = |name: &str, help: &str, metric: &Family<Why, Counter>| registry.register(name, help, metric.clone());
        add("dwd_weeder_windows_opened", "Times in which crash-looping dependants are deleted: begun, by reason", &self.opened);
        add("dwd_weeder_windows_closed", "Times in which crash-looping dependants are deleted: ended, by reason", &self.closed);
        registry.register(
            "dwd_weeder_windows_open",
            "Services whose crash-looping dependants are being deleted",
            self.open.clone(),
        );
        registry.register("dwd_weeder_deletions", "DELETEs of crash-looping pods, by result", self.deletions.clone());
        let help = "Namespaces in which a configured Service or a crash-looping dependant is known";
        registry.register("dwd_weeder_namespaces", help, self.namespaces.clone());
        registry.register("dwd_weeder_watch_restarts", "Watches that broke and began again with a list", self.restarts.clone());
        let help = "Objects that could not be understood; what was known of them stays";
        registry.register("dwd_weeder_unreadable_objects", help, self.unreadable.clone());
        // All series are there from the beginning, so that the first event of each kind is seen as an increase.
        for cause in [Cause::Start, Cause::Recovery] {
            drop(self.opened.get_or_create(&Why { reason: cause.as_str() }));
        }
        for end in [End::Over, End::NotReady, End::Renewed, End::Dropped] {
            drop(self.closed.get_or_create(&Why { reason: end.as_str() }));
        }
        for result in Answer::WORDS {
            drop(self.deletions.get_or_create(&Result { result }));
        }
        for resource in ["endpointslices", "pods"] {
            drop(self.restarts.get_or_create(&What { resource }));
            drop(self.unreadable.get_or_create(&What { resource }));
        }
    }

    pub fn window(&self, event: Event) {
        match event {
            Event::Opened(cause) => self.opened.get_or_create(&Why { reason: cause.as_str() }).inc(),
            Event::Closed(end) => self.closed.get_or_create(&Why { reason: end.as_str() }).inc(),
        };
    }

    pub fn windows_open(&self, count: usize) {
        self.open.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub fn deletion(&self, answer: Answer) {
        self.deletions.get_or_create(&Result { result: answer.as_str() }).inc();
    }

    pub fn namespaces(&self, count: usize) {
        self.namespaces.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub fn restart(&self, resource: &'static str) {
        self.restarts.get_or_create(&What { resource }).inc();
    }

    pub fn unreadable(&self, resource: &'static str) {
        self.unreadable.get_or_create(&What { resource }).inc();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_is_documented_and_every_documented_metric_exists() {
        let mut registry = Registry::default();
        Metrics::default().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let described = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let shown: BTreeSet<String> =
            described.map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() }).collect();
        let document = include_str!("../../docs/metrics.md");
        let section = document.split("\n## ").find(|section| section.starts_with("Weeder")).unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
        assert_eq!(shown, rows.map(str::to_owned).collect());
    }
}
