//! What the prober counts. Labels come from fixed sets or from the config file, never from a shoot.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use crate::config::ResourceRef;
use crate::core::plan::Direction;
use crate::shoot_client::error::{Cause, ProbeError};

#[derive(Clone, Debug)]
pub struct Metrics {
    probes: Family<ProbeLabels, Counter>,
    probe_duration: Histogram,
    throttles: Counter,
    scale_operations: Family<ScaleLabels, Counter>,
    dry_run_writes: Family<DryRunLabels, Counter>,
    decision_to_write: Family<DirectionLabels, Histogram>,
    memory_fallbacks: Counter,
    not_ready: Counter,
    abandoned_flows: Family<DirectionLabels, Counter>,
    probes_ended_while_held_down: Counter,
    without_lead: Family<DirectionLabels, Counter>,
    panics: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProbeLabels {
    stage: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScaleLabels {
    direction: &'static str,
    kind: String,
    name: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DryRunLabels {
    direction: &'static str,
    kind: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    direction: &'static str,
}

/// From 5 ms to 41 s, by factors of 2: a healthy probe takes a few milliseconds, probeTimeout is 30 s by default.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 14))
}

fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            probes: register(registry, "dwd_probes", "Probes by the stage they ended in and their result", Family::default()),
            probe_duration: register(registry, "dwd_probe_duration_seconds", "How long complete probes took", seconds()),
            throttles: register(registry, "dwd_throttles", "Probes that an API server answered with 429", Counter::default()),
            scale_operations: register(
                registry,
                "dwd_scale_operations",
                "Attempts to scale a resource, by result",
                Family::default(),
            ),
            dry_run_writes: register(registry, "dwd_dry_run_writes", "Writes that a dry run would have made", Family::default()),
            decision_to_write: register(
                registry,
                "dwd_decision_to_write_seconds",
                "From the turn of a resource in a flow to the answer to its write, configured delays included",
                Family::new_with_constructor(seconds),
            ),
            memory_fallbacks: register(
                registry,
                "dwd_memory_fallbacks",
                "Resources restored to 1 replica because the remembered number could not be used",
                Counter::default(),
            ),
            not_ready: register(
                registry,
                "dwd_not_ready_in_time",
                "Restored resources that were not ready 5 s after their write, so that the next level went on without them",
                Counter::default(),
            ),
            abandoned_flows: register(
                registry,
                "dwd_abandoned_flows",
                "Scale flows given up because the verdict turned or the shoot was paused",
                Family::default(),
            ),
            probes_ended_while_held_down: register(
                registry,
                "dwd_probes_ended_while_held_down",
                "Shoots whose probe ended while resources were held down; these stay at 0",
                Counter::default(),
            ),
            without_lead: register(
                registry,
                "dwd_protected_without_lead",
                "Writes by this replica while it did not lead: the leader did not act",
                Family::default(),
            ),
            panics: register(registry, "dwd_panics", "Tasks of shoots that panicked and were started anew", Counter::default()),
        };
        // Both series are there from the beginning, so that the first event of each is seen as an increase.
        for direction in [Direction::Up, Direction::Down] {
            let labels = DirectionLabels { direction: direction.as_str() };
            drop(metrics.abandoned_flows.get_or_create(&labels));
            drop(metrics.decision_to_write.get_or_create(&labels));
            drop(metrics.without_lead.get_or_create(&labels));
        }
        metrics
    }

    pub fn probe_complete(&self, nodes_listed: bool, took: Duration) {
        let stage = if nodes_listed { "nodes" } else { "leases" };
        self.probes.get_or_create(&ProbeLabels { stage, result: "complete" }).inc();
        self.probe_duration.observe(took.as_secs_f64());
    }

    pub fn probe_failed(&self, error: &ProbeError) {
        self.probes.get_or_create(&ProbeLabels { stage: error.stage.as_str(), result: error.cause.category() }).inc();
        if matches!(error.cause, Cause::Throttled { .. }) {
            self.throttles.inc();
        }
    }

    /// A resource was written, or could not be: `result` is `written` or the error's category.
    pub fn scaled(&self, direction: Direction, resource: &ResourceRef, result: &'static str) {
        let (kind, name) = (resource.kind.clone(), resource.name.clone());
        self.scale_operations.get_or_create(&ScaleLabels { direction: direction.as_str(), kind, name, result }).inc();
    }

    pub fn dry_run_write(&self, direction: Direction, resource: &ResourceRef) {
        let (kind, name) = (resource.kind.clone(), resource.name.clone());
        self.dry_run_writes.get_or_create(&DryRunLabels { direction: direction.as_str(), kind, name }).inc();
    }

    /// A write was answered this long after its resource's turn in the flow began.
    pub fn decided_and_written(&self, direction: Direction, after: Duration) {
        self.decision_to_write.get_or_create(&DirectionLabels { direction: direction.as_str() }).observe(after.as_secs_f64());
    }

    pub fn memory_fell_back(&self) {
        self.memory_fallbacks.inc();
    }

    /// A restored resource was not ready in time (rule 69).
    pub fn not_ready_in_time(&self) {
        self.not_ready.inc();
    }

    pub fn flow_abandoned(&self, direction: Direction) {
        self.abandoned_flows.get_or_create(&DirectionLabels { direction: direction.as_str() }).inc();
    }

    /// A probe ended while resources were held down (D-49).
    pub fn ended_while_held_down(&self) {
        self.probes_ended_while_held_down.inc();
    }

    /// A resource was written although this replica does not lead (D-50).
    pub fn protected_without_lead(&self, direction: Direction) {
        self.without_lead.get_or_create(&DirectionLabels { direction: direction.as_str() }).inc();
    }

    pub fn panicked(&self) {
        self.panics.inc();
    }
}
